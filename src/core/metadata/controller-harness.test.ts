import assert from 'node:assert/strict'
import type { Millis, NodeId, Offset } from '#base/units.ts'
import { type Uuid, uuidFromBytes } from '#base/uuid.ts'
import { decodeMessage, encodeToBuffer } from '#protocol/codec.ts'
import * as allocate from '#protocol/messages/allocate-producer-ids.ts'
import * as alterConfigs from '#protocol/messages/alter-configs.ts'
import * as alterPartition from '#protocol/messages/alter-partition.ts'
import * as reassign from '#protocol/messages/alter-partition-reassignments.ts'
import * as assign from '#protocol/messages/assign-replicas-to-dirs.ts'
import * as heartbeat from '#protocol/messages/broker-heartbeat.ts'
import * as registration from '#protocol/messages/broker-registration.ts'
import * as controllerRegistration from '#protocol/messages/controller-registration.ts'
import * as createPartitions from '#protocol/messages/create-partitions.ts'
import * as createTopics from '#protocol/messages/create-topics.ts'
import * as deleteTopics from '#protocol/messages/delete-topics.ts'
import * as elect from '#protocol/messages/elect-leaders.ts'
import * as incremental from '#protocol/messages/incremental-alter-configs.ts'
import * as listReassignments from '#protocol/messages/list-partition-reassignments.ts'
import * as unregister from '#protocol/messages/unregister-broker.ts'
import * as updateFeatures from '#protocol/messages/update-features.ts'
import { type InputOf, parseVersions, type Schema } from '#protocol/schema.ts'
import { BrokerConfigs } from '../config/broker-configs.ts'
import { type ControllerAnswer, type ControllerCommand, ControllerMachine } from './controller.ts'
import { SUPPORTED_FEATURES } from './features.ts'
import { MetadataImage } from './image.ts'
import { decodeMetadataRecord, encodeMetadataRecord, type MetadataRecord } from './record.ts'

export const CLUSTER_ID = 'MkU3OEVBNTcwNTJENDM2Qk'

const APIS: { readonly [kind: string]: { readonly request: Schema; readonly response: Schema } } = {
  'register-broker': {
    request: registration.BrokerRegistrationRequest,
    response: registration.BrokerRegistrationResponse,
  },
  'broker-heartbeat': { request: heartbeat.BrokerHeartbeatRequest, response: heartbeat.BrokerHeartbeatResponse },
  'unregister-broker': { request: unregister.UnregisterBrokerRequest, response: unregister.UnregisterBrokerResponse },
  'register-controller': {
    request: controllerRegistration.ControllerRegistrationRequest,
    response: controllerRegistration.ControllerRegistrationResponse,
  },
  'create-topics': { request: createTopics.CreateTopicsRequest, response: createTopics.CreateTopicsResponse },
  'delete-topics': { request: deleteTopics.DeleteTopicsRequest, response: deleteTopics.DeleteTopicsResponse },
  'create-partitions': {
    request: createPartitions.CreatePartitionsRequest,
    response: createPartitions.CreatePartitionsResponse,
  },
  'incremental-alter-configs': {
    request: incremental.IncrementalAlterConfigsRequest,
    response: incremental.IncrementalAlterConfigsResponse,
  },
  'alter-configs': { request: alterConfigs.AlterConfigsRequest, response: alterConfigs.AlterConfigsResponse },
  'update-features': { request: updateFeatures.UpdateFeaturesRequest, response: updateFeatures.UpdateFeaturesResponse },
  'allocate-producer-ids': {
    request: allocate.AllocateProducerIdsRequest,
    response: allocate.AllocateProducerIdsResponse,
  },
  'alter-partition': { request: alterPartition.AlterPartitionRequest, response: alterPartition.AlterPartitionResponse },
  'elect-leaders': { request: elect.ElectLeadersRequest, response: elect.ElectLeadersResponse },
  'alter-partition-reassignments': {
    request: reassign.AlterPartitionReassignmentsRequest,
    response: reassign.AlterPartitionReassignmentsResponse,
  },
  'list-partition-reassignments': {
    request: listReassignments.ListPartitionReassignmentsRequest,
    response: listReassignments.ListPartitionReassignmentsResponse,
  },
  'assign-replicas-to-dirs': {
    request: assign.AssignReplicasToDirsRequest,
    response: assign.AssignReplicasToDirsResponse,
  },
}

export interface Reaction {
  readonly records: readonly MetadataRecord[]
  readonly answer: ControllerAnswer
  /** The response as a client decodes it. */
  readonly response: Record<string, unknown>
}

/** A number as an id: readable in transcripts. */
export function testUuid(number: number): Uuid {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(0xabcd, 0)
  bytes.writeUInt32BE(number, 12)
  return uuidFromBytes(bytes)
}

export function topicUuid(number: number): Uuid {
  return testUuid(1_000_000 + number)
}

/** One controller over a log in memory; everything passes through the codecs on its way. */
export class ControllerHarness {
  machine: ControllerMachine
  /** What a broker would fold out of the same log. */
  readonly follower = new MetadataImage({ deltas: true })
  readonly log: { readonly offset: Offset; readonly epoch: number; readonly value: Buffer }[] = []
  now: Millis = 1000
  /** Who came back without having stopped properly; whoever looks takes them out. */
  readonly unclean = new Set<NodeId>()
  #nextOffset: Offset = 1
  #epoch = 1
  #topics = 0

  readonly #config: ReadonlyMap<string, string>

  constructor(config: ReadonlyMap<string, string> = new Map()) {
    this.#config = config
    this.machine = this.#newMachine(new MetadataImage())
    this.do({ kind: 'activate' })
  }

  #newMachine(image: MetadataImage): ControllerMachine {
    return new ControllerMachine(
      {
        nodeId: 1,
        clusterId: CLUSTER_ID,
        features: SUPPORTED_FEATURES,
        configs: new BrokerConfigs({ nodeId: 1, fixed: this.#config }),
        sessionTimeoutMs: 9000,
        leaderBalanceIntervalMs: 300_000,
      },
      image,
    )
  }

  get nextOffset(): Offset {
    return this.#nextOffset
  }

  /** Another term on another node: what it knows, it knows from the log. */
  failOver(): Reaction {
    this.#epoch++
    this.#nextOffset++
    const image = new MetadataImage()
    for (const { offset, epoch, value } of this.log) image.apply(decodeMetadataRecord(value), offset, epoch)
    this.machine = this.#newMachine(image)
    return this.do({ kind: 'activate' })
  }

  do(command: ControllerCommand): Reaction {
    const { entries, answer } = this.machine.decide(command, this.now)
    for (const record of entries) {
      const value = encodeMetadataRecord(record)
      this.log.push({ offset: this.#nextOffset, epoch: this.#epoch, value })
      const decoded = decodeMetadataRecord(value)
      this.machine.apply(decoded, this.#nextOffset, this.#epoch)
      this.follower.apply(decoded, this.#nextOffset, this.#epoch)
      this.#nextOffset++
    }
    return { records: entries, answer, response: 'response' in answer ? { ...answer.response } : {} }
  }

  /** Asks as a client does: what the version cannot carry is lost, in both directions. */
  /** `seen` is what the shell knows beside the request. */
  ask(
    kind: string,
    input: Record<string, unknown>,
    version?: number,
    seen: { readonly isDoubted?: boolean } = {},
  ): Reaction {
    const api = APIS[kind]
    assert.ok(api !== undefined, `no request ${kind}`)
    const asked = version ?? parseVersions(api.request.versions).last
    const request = decodeMessage(api.request, asked, encodeToBuffer(api.request, asked, input as InputOf<Schema>))
    const topics = Array.isArray(input['topics']) ? input['topics'].length : 0
    const drawn =
      kind === 'register-broker'
        ? { nextOffset: this.#nextOffset }
        : kind === 'create-topics'
          ? { ids: Array.from({ length: topics }, () => topicUuid(++this.#topics)) }
          : seen
    const reaction = this.do({ kind, request, version: asked, ...drawn } as unknown as ControllerCommand)
    const bytes = encodeToBuffer(api.response, asked, reaction.response as InputOf<Schema>)
    return { ...reaction, response: decodeMessage(api.response, asked, bytes) as Record<string, unknown> }
  }

  /** Time passes; what the machine wants to do meanwhile, it does. */
  pass(ms: Millis): MetadataRecord[] {
    const until = this.now + ms
    const records: MetadataRecord[] = []
    for (;;) {
      const wake = this.machine.wakeAt()
      if (wake === undefined || wake > until) break
      this.now = Math.max(wake, this.now)
      records.push(...this.do({ kind: 'tick' }).records)
    }
    this.now = until
    return records
  }

  epochOf(id: NodeId): Offset {
    return this.machine.image.broker(id)?.epoch ?? -1
  }

  register(id: NodeId, more: Record<string, unknown> = {}): Reaction {
    const before = this.epochOf(id)
    // Without eligible leader replicas nobody asks how a broker stopped: who was in sync stays so.
    const isAsked = this.machine.image.feature('eligible.leader.replicas.version') > 0
    const reaction = this.#register(id, more)
    const isOther = before >= 0 && this.epochOf(id) !== before
    if (isAsked && isOther && more['previousBrokerEpoch'] !== before) this.unclean.add(id)
    return reaction
  }

  #register(id: NodeId, more: Record<string, unknown>): Reaction {
    return this.ask('register-broker', {
      brokerId: id,
      clusterId: CLUSTER_ID,
      incarnationId: testUuid(id),
      listeners: [{ name: 'PLAINTEXT', host: `host${id}`, port: 9092, securityProtocol: 0 }],
      features: [...SUPPORTED_FEATURES].map(([name, range]) => ({
        name,
        minSupportedVersion: range.min,
        maxSupportedVersion: range.max,
      })),
      rack: null,
      logDirs: [testUuid(1000 + id)],
      ...more,
    })
  }

  heartbeat(id: NodeId, more: Record<string, unknown> = {}): Reaction {
    return this.ask('broker-heartbeat', {
      brokerId: id,
      brokerEpoch: this.epochOf(id),
      currentMetadataOffset: this.#nextOffset - 1,
      ...more,
    })
  }

  /** A broker that is there and unfenced. */
  start(id: NodeId, more: Record<string, unknown> = {}): void {
    this.register(id, more)
    this.heartbeat(id)
  }
}

/** Everything that an image holds, to compare it. */
export function dumpImage(image: MetadataImage): unknown {
  return {
    topics: [...image.topics.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    names: [...image.topicIds].sort(),
    configs: [...image.configs()].map(({ type, name, values }) => [type, name, [...values].sort()]).sort(),
    brokers: [...image.brokers.values()].sort((a, b) => a.id - b.id),
    controllers: [...image.controllers.values()],
    features: [...image.features].sort(),
    producerIds: [image.nextProducerId, image.producerIdsOwner],
    quotas: [...image.quotas()],
    acls: [...image.acls],
    scram: [...image.scramCredentials()],
    tokens: [...image.tokens],
  }
}
