import type { NodeId } from '#base/units.ts'
import { DescribeClusterRequest, DescribeClusterResponse } from '#protocol/messages/describe-cluster.ts'
import { DescribeLogDirsRequest, DescribeLogDirsResponse } from '#protocol/messages/describe-log-dirs.ts'
import { UnregisterBrokerRequest, UnregisterBrokerResponse } from '#protocol/messages/unregister-broker.ts'
import type { Client } from '../client.ts'
import { brokerError, ClientError, throwIfError } from '../errors.ts'
import type { Broker } from '../metadata.ts'
import { byTopic, type TopicPartition } from '../per-leader.ts'

const DESCRIBE_CLUSTER = { request: DescribeClusterRequest, response: DescribeClusterResponse }
const UNREGISTER_BROKER = { request: UnregisterBrokerRequest, response: UnregisterBrokerResponse }
const DESCRIBE_LOG_DIRS = { request: DescribeLogDirsRequest, response: DescribeLogDirsResponse }

export interface ClusterDescription {
  readonly clusterId: string
  /** -1 while there is none. */
  readonly controllerId: NodeId
  readonly brokers: readonly (Broker & { readonly fenced: boolean })[]
}

/**
 * The brokers of the cluster, the fenced ones too where the cluster can tell. A broker that has no address of its own to
 * tell names itself as it was dialled.
 */
export async function describeCluster(client: Client, from: NodeId | 'any' = 'any'): Promise<ClusterDescription> {
  const version = (await client.retrying(() => client.channel(from))).versionFor(DescribeClusterRequest) ?? 0
  const answer = await client.ask(
    from,
    DESCRIBE_CLUSTER,
    { includeFencedBrokers: version >= 2 },
    { check: ({ errorCode, errorMessage }) => throwIfError(errorCode, 'the cluster', errorMessage) },
  )
  return {
    clusterId: answer.clusterId,
    controllerId: answer.controllerId,
    brokers: answer.brokers
      .map(({ brokerId: id, host, port, rack, isFenced: fenced }) => ({ id, host, port, rack, fenced }))
      .sort((a, b) => a.id - b.id),
  }
}

/** Forgets a broker that will not come back. It must be down, and have no replicas to be of no loss (KIP-631). */
export async function unregisterBroker(client: Client, brokerId: NodeId): Promise<void> {
  await client.ask(
    'any',
    UNREGISTER_BROKER,
    { brokerId },
    { check: ({ errorCode, errorMessage }) => throwIfError(errorCode, `broker ${brokerId}`, errorMessage) },
  )
}

export interface LogDir {
  readonly broker: NodeId
  readonly path: string
  readonly error: ClientError | undefined
  /** Of the file system; -1 where the broker is too old to tell. */
  readonly totalBytes: number
  readonly usableBytes: number
  readonly partitions: readonly (TopicPartition & { readonly bytes: number; readonly offsetLag: number })[]
}

/**
 * The data folders of all brokers and what is in them, or only what belongs to one topic or to these partitions. A broker
 * that does not answer has one entry, without a path, that says why.
 */
export async function describeLogDirs(client: Client, only?: string | readonly TopicPartition[]): Promise<LogDir[]> {
  await client.retrying(() => client.metadata.refresh([]))
  const partitions =
    typeof only === 'string'
      ? (await client.topic(only)).partitions.map(({ partition }) => ({ topic: only, partition }))
      : only
  const topics =
    partitions === undefined
      ? null
      : byTopic(partitions).map(([topic, list]) => ({ topic, partitions: list.map(({ partition }) => partition) }))
  const answers = await Promise.all(
    client.metadata.brokers.map(({ id }) =>
      describeLogDirsOf(client, id, topics).catch((error: unknown): LogDir[] => {
        if (!(error instanceof ClientError)) throw error
        return [{ broker: id, path: '', error, totalBytes: -1, usableBytes: -1, partitions: [] }]
      }),
    ),
  )
  return answers.flat()
}

async function describeLogDirsOf(
  client: Client,
  broker: NodeId,
  topics: { topic: string; partitions: number[] }[] | null,
): Promise<LogDir[]> {
  const check = ({ errorCode }: { readonly errorCode: number }) => throwIfError(errorCode, `broker ${broker}`)
  const { results } = await client.ask(broker, DESCRIBE_LOG_DIRS, { topics }, { check })
  return results.map(dir => ({
    broker,
    path: dir.logDir,
    error: brokerError(dir.errorCode, `folder ${dir.logDir} of broker ${broker}`),
    totalBytes: dir.totalBytes,
    usableBytes: dir.usableBytes,
    partitions: dir.topics.flatMap(({ name, partitions: list }) =>
      list
        .filter(({ isFutureKey }) => !isFutureKey)
        .map(each => ({
          topic: name,
          partition: each.partitionIndex,
          bytes: each.partitionSize,
          offsetLag: each.offsetLag,
        })),
    ),
  }))
}
