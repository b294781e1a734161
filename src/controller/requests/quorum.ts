import type { NodeId } from '#base/units.ts'
import { CLUSTER_METADATA_TOPIC } from '#core/metadata/topic-name.ts'
import type { EpochAnswer } from '#core/raft/messages.ts'
import { KRAFT_VERSIONS, type Voter } from '#core/raft/quorum.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Controller } from '../controller.ts'

interface Topics<Partition> {
  readonly topics: readonly {
    readonly topicName: string
    readonly partitions: readonly (Partition & { readonly partitionIndex: number })[]
  }[]
}

/** What a request of raft says of the one partition of the one topic that it may be about; undefined for any other. */
export function metadataPartition<Partition>({ topics }: Topics<Partition>): Partition | undefined {
  const [topic, ...others] = topics
  if (topic === undefined || others.length > 0 || topic.topicName !== CLUSTER_METADATA_TOPIC) return undefined
  const [partition, ...more] = topic.partitions
  return more.length === 0 && partition?.partitionIndex === 0 ? partition : undefined
}

/** Why the whole of such a request is refused, if it is; it is well formed where it says who asks. */
export function refusal(
  controller: Controller,
  clusterId: string | null,
  from: NodeId | undefined,
): number | undefined {
  if (controller.isForeign(clusterId, from)) return ErrorCode.INCONSISTENT_CLUSTER_ID
  return from === undefined ? ErrorCode.INVALID_REQUEST : undefined
}

/** The answer of raft in the shape that its APIs share. The leader's address is in it from version 1 on. */
export function answered<Answer extends Omit<EpochAnswer, never>>(
  controller: Controller,
  version: number,
  answer: Answer,
): {
  readonly errorCode: number
  readonly topics: readonly {
    readonly topicName: string
    readonly partitions: readonly (Answer & { readonly partitionIndex: number })[]
  }[]
  readonly nodeEndpoints: readonly { readonly nodeId: NodeId; readonly host: string; readonly port: number }[]
} {
  const partitions = [{ partitionIndex: 0, ...answer }]
  return {
    errorCode: ErrorCode.NONE,
    topics: [{ topicName: CLUSTER_METADATA_TOPIC, partitions }],
    nodeEndpoints: version >= 1 ? controller.leaderNodes : [],
  }
}

/** Of a voter; more would only make the record of voters, which every controller holds, as large as somebody likes. */
const ENDPOINTS_MAX = 64
/** Of a host name (RFC 1035), and ample for a listener's. */
const NAME_LENGTH_MAX = 255

/** Why these cannot be the listeners of a voter, if they cannot. */
export function refuseListeners(
  { listenerName }: Controller,
  listeners: readonly { readonly name: string; readonly host: string; readonly port: number }[],
): string | undefined {
  if (listeners.length > ENDPOINTS_MAX) return `a voter has at most ${ENDPOINTS_MAX} endpoints`
  const isLong = listeners.some(({ name, host }) => name.length > NAME_LENGTH_MAX || host.length > NAME_LENGTH_MAX)
  if (isLong) return `names of listeners and hosts have at most ${NAME_LENGTH_MAX} characters`
  const own = listeners.find(({ name }) => name === listenerName)
  if (own === undefined) return `a voter needs an endpoint of the listener ${listenerName}`
  return own.host === '' || own.port === 0 ? 'the endpoint of a voter has a host and a port' : undefined
}

/** A voter as AddRaftVoter and UpdateRaftVoter name it. */
export function voterOf(request: {
  readonly voterId: NodeId
  readonly voterDirectoryId: string
  readonly listeners: readonly { readonly name: string; readonly host: string; readonly port: number }[]
  readonly kRaftVersionFeature?: { readonly minSupportedVersion: number; readonly maxSupportedVersion: number }
}): Voter {
  const { voterId: id, voterDirectoryId: directoryId, listeners, kRaftVersionFeature: range } = request
  const kraftVersion =
    range === undefined ? KRAFT_VERSIONS : { min: range.minSupportedVersion, max: range.maxSupportedVersion }
  return { id, directoryId, endpoints: listeners.map(({ name, host, port }) => ({ name, host, port })), kraftVersion }
}
