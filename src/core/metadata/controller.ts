import { assert } from '#base/assert.ts'
import type { Millis, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type * as allocate from '#protocol/messages/allocate-producer-ids.ts'
import type * as alterConfigsApi from '#protocol/messages/alter-configs.ts'
import type * as alterPartitionApi from '#protocol/messages/alter-partition.ts'
import type * as reassign from '#protocol/messages/alter-partition-reassignments.ts'
import type * as assign from '#protocol/messages/assign-replicas-to-dirs.ts'
import type * as heartbeat from '#protocol/messages/broker-heartbeat.ts'
import type * as registration from '#protocol/messages/broker-registration.ts'
import type * as controllerRegistration from '#protocol/messages/controller-registration.ts'
import type * as createPartitionsApi from '#protocol/messages/create-partitions.ts'
import type * as createTopicsApi from '#protocol/messages/create-topics.ts'
import type * as deleteTopicsApi from '#protocol/messages/delete-topics.ts'
import type * as elect from '#protocol/messages/elect-leaders.ts'
import type * as incremental from '#protocol/messages/incremental-alter-configs.ts'
import type * as listReassignments from '#protocol/messages/list-partition-reassignments.ts'
import type * as unregister from '#protocol/messages/unregister-broker.ts'
import type * as update from '#protocol/messages/update-features.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Decision, ReplicatedMachine } from '../machine.ts'
import {
  brokerHeartbeat,
  fenceBrokers,
  registerBroker,
  registerController,
  staleBrokers,
  unregisterBroker,
} from './brokers.ts'
import { alterConfigs, incrementalAlterConfigs } from './configs.ts'
import { type ControllerOptions, ControllerState } from './controller-state.ts'
import { electionsOfReached, electLeaders, leaderlessElections, preferredElections } from './elections.ts'
import { bootstrapRecords, ELR, updateFeatures } from './features.ts'
import { MetadataImage } from './image.ts'
import { Liveness } from './liveness.ts'
import { alterPartition, assignReplicasToDirs, createPartitions } from './partitions.ts'
import { allocateProducerIds } from './producer-ids.ts'
import { alterPartitionReassignments, listPartitionReassignments } from './reassignments.ts'
import { type FoldedRecord, type MetadataRecord, metadataRecord } from './record.ts'
import { createTopics, deleteTopics } from './topics.ts'

/** How many elections one tick makes to bring leaders back to their first replicas. */
const BALANCING_ELECTIONS_MAX = 1000

interface Api<Kind extends string, Request, Response> {
  readonly kind: Kind
  readonly request: Request
  readonly response: Response
}

/** The requests that the controller decides on, by the kind of their command. */
type Apis =
  | Api<
      'register-broker',
      registration.BrokerRegistrationRequest,
      InputOf<typeof registration.BrokerRegistrationResponse>
    >
  | Api<'broker-heartbeat', heartbeat.BrokerHeartbeatRequest, InputOf<typeof heartbeat.BrokerHeartbeatResponse>>
  | Api<'unregister-broker', unregister.UnregisterBrokerRequest, InputOf<typeof unregister.UnregisterBrokerResponse>>
  | Api<
      'register-controller',
      controllerRegistration.ControllerRegistrationRequest,
      InputOf<typeof controllerRegistration.ControllerRegistrationResponse>
    >
  | Api<'create-topics', createTopicsApi.CreateTopicsRequest, InputOf<typeof createTopicsApi.CreateTopicsResponse>>
  | Api<'delete-topics', deleteTopicsApi.DeleteTopicsRequest, InputOf<typeof deleteTopicsApi.DeleteTopicsResponse>>
  | Api<
      'create-partitions',
      createPartitionsApi.CreatePartitionsRequest,
      InputOf<typeof createPartitionsApi.CreatePartitionsResponse>
    >
  | Api<
      'incremental-alter-configs',
      incremental.IncrementalAlterConfigsRequest,
      InputOf<typeof incremental.IncrementalAlterConfigsResponse>
    >
  | Api<'alter-configs', alterConfigsApi.AlterConfigsRequest, InputOf<typeof alterConfigsApi.AlterConfigsResponse>>
  | Api<'update-features', update.UpdateFeaturesRequest, InputOf<typeof update.UpdateFeaturesResponse>>
  | Api<
      'allocate-producer-ids',
      allocate.AllocateProducerIdsRequest,
      InputOf<typeof allocate.AllocateProducerIdsResponse>
    >
  | Api<
      'alter-partition',
      alterPartitionApi.AlterPartitionRequest,
      InputOf<typeof alterPartitionApi.AlterPartitionResponse>
    >
  | Api<'elect-leaders', elect.ElectLeadersRequest, InputOf<typeof elect.ElectLeadersResponse>>
  | Api<
      'alter-partition-reassignments',
      reassign.AlterPartitionReassignmentsRequest,
      InputOf<typeof reassign.AlterPartitionReassignmentsResponse>
    >
  | Api<
      'list-partition-reassignments',
      listReassignments.ListPartitionReassignmentsRequest,
      InputOf<typeof listReassignments.ListPartitionReassignmentsResponse>
    >
  | Api<
      'assign-replicas-to-dirs',
      assign.AssignReplicasToDirsRequest,
      InputOf<typeof assign.AssignReplicasToDirsResponse>
    >

/** What the shell gives beside the request: what it draws by chance, and what only the log knows. */
interface Drawn {
  /** The offset at which the first entry of the decision will be written. */
  'register-broker': { readonly nextOffset: Offset }
  /** A fresh id for each topic of the request. */
  'create-topics': { readonly ids: readonly Uuid[] }
  /** The asking leader is silent, and may be cut off from all others. */
  'alter-partition': { readonly isDoubted?: boolean }
}

type CommandOf<A> =
  A extends Api<infer Kind, infer Request, unknown>
    ? { readonly kind: Kind; readonly request: Request; readonly version: number } & (Kind extends keyof Drawn
        ? Drawn[Kind]
        : unknown)
    : never

type AnswerOf<A> =
  A extends Api<infer Kind, unknown, infer Response> ? { readonly kind: Kind; readonly response: Response } : never

export type ControllerCommand =
  | CommandOf<Apis>
  /** This node has become the active controller: the first command of its term. Writes what an empty log begins with. */
  | { readonly kind: 'activate' }
  /** It is `wakeAt` or later. */
  | { readonly kind: 'tick' }
  /** A broker is known to be dead, before its session ends: its connection broke and another was refused. */
  | { readonly kind: 'broker-died'; readonly brokerId: NodeId; readonly brokerEpoch: Offset }
  /** A broker that lives cannot be dialled any more, or can again. */
  | {
      readonly kind: 'broker-reached'
      readonly brokerId: NodeId
      readonly brokerEpoch: Offset
      readonly isReached: boolean
    }

type CommandAs<Kind extends ControllerCommand['kind']> = Extract<ControllerCommand, { readonly kind: Kind }>

export type ControllerAnswer =
  | AnswerOf<Apis>
  | { readonly kind: 'activate' | 'tick' | 'broker-died' | 'broker-reached' }

/**
 * The controller: decides what is written to the metadata log, whose fold it is. It lives for one term as the active
 * controller, begun with `activate`; before that, and on the other voters, it only applies.
 */
export class ControllerMachine implements ReplicatedMachine<ControllerCommand, MetadataRecord, ControllerAnswer> {
  readonly image: MetadataImage
  readonly #options: ControllerOptions
  readonly #liveness: Liveness
  #isActive = false
  #nextBalancing: Millis | undefined
  /** Somebody may lead now who might not before: unclean elections are allowed, or who is eligible is told otherwise. */
  #rulesChanged = false

  /** `image` is what was folded so far, from a snapshot or by another machine on this node. */
  constructor(options: ControllerOptions, image: MetadataImage = new MetadataImage()) {
    this.#options = options
    this.#liveness = new Liveness(options.sessionTimeoutMs)
    this.image = image
  }

  /** `epoch` is that of the log's leader that wrote the record. */
  apply(record: FoldedRecord, at: Offset, epoch = 0): void {
    this.image.apply(record, at, epoch)
    if (record.type === 'BrokerRegistrationChange' && record.value.inControlledShutdown > 0) {
      this.#liveness.shuttingDown(record.value.brokerId, at)
    }
    if (record.type === 'Config' && record.value.name === 'unclean.leader.election.enable') this.#rulesChanged = true
    if (record.type === 'FeatureLevel' && record.value.name === ELR) this.#rulesChanged = true
  }

  wakeAt(): Millis | undefined {
    if (!this.#isActive) return undefined
    if (this.#rulesChanged) return 0
    const deadline = this.#liveness.nextDeadline(this.#unfenced())
    if (deadline === undefined || this.#nextBalancing === undefined) return deadline ?? this.#nextBalancing
    return Math.min(deadline, this.#nextBalancing)
  }

  decide(command: ControllerCommand, now: Millis): Decision<MetadataRecord, ControllerAnswer> {
    assert(this.#isActive || command.kind === 'activate', 'only an active controller decides')
    const state = new ControllerState(this.image, this.#options, this.#liveness)
    const { kind } = command
    switch (kind) {
      case 'activate':
        return { entries: this.#activate(state, now), answer: { kind } }
      case 'tick':
        return { entries: this.#tick(state, now), answer: { kind } }
      case 'broker-died': {
        const broker = this.image.broker(command.brokerId)
        const same = broker !== undefined && broker.epoch === command.brokerEpoch && !broker.fenced
        return { entries: same ? fenceBrokers(state, [broker]) : [], answer: { kind } }
      }
      case 'broker-reached':
        return { entries: this.#reached(state, command), answer: { kind } }
      case 'register-broker': {
        const { records, response } = registerBroker(state, command.request, command.nextOffset, now)
        return { entries: records, answer: { kind, response } }
      }
      case 'broker-heartbeat': {
        const { records, response } = brokerHeartbeat(state, command.request, now)
        return { entries: records, answer: { kind, response } }
      }
      case 'unregister-broker': {
        const { records, response } = unregisterBroker(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
      case 'register-controller': {
        const { records, response } = registerController(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
      case 'create-topics': {
        const { records, response } = createTopics(state, command.request, command.ids)
        return { entries: records, answer: { kind, response } }
      }
      case 'delete-topics': {
        const { records, response } = deleteTopics(state, command.request, command.version)
        return { entries: records, answer: { kind, response } }
      }
      case 'create-partitions': {
        const { records, response } = createPartitions(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
      case 'incremental-alter-configs': {
        const { records, response } = incrementalAlterConfigs(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
      case 'alter-configs': {
        const { records, response } = alterConfigs(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
      case 'update-features': {
        const { records, response } = updateFeatures(state, command.request, command.version)
        return { entries: records, answer: { kind, response } }
      }
      case 'allocate-producer-ids': {
        const { records, response } = allocateProducerIds(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
      case 'alter-partition': {
        const { records, response } = alterPartition(state, command.request, command)
        return { entries: records, answer: { kind, response } }
      }
      case 'elect-leaders': {
        const { records, response } = electLeaders(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
      case 'alter-partition-reassignments': {
        const { records, response } = alterPartitionReassignments(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
      case 'list-partition-reassignments':
        return { entries: [], answer: { kind, response: listPartitionReassignments(this.image, command.request) } }
      case 'assign-replicas-to-dirs': {
        const { records, response } = assignReplicasToDirs(state, command.request)
        return { entries: records, answer: { kind, response } }
      }
    }
  }

  *#unfenced(): Iterable<NodeId> {
    for (const broker of this.image.brokers.values()) if (!broker.fenced) yield broker.id
  }

  #activate(state: ControllerState, now: Millis): MetadataRecord[] {
    assert(!this.#isActive, 'a controller is activated once')
    this.#isActive = true
    for (const id of this.#unfenced()) this.#liveness.presume(id, now)
    this.#scheduleBalancing(now)
    const records: MetadataRecord[] = []
    if (this.image.inTransaction) {
      const reason = 'the controller that began it is gone'
      records.push(metadataRecord('AbortTransaction', this.image.metadataVersion, { reason }))
    }
    if (this.image.metadataVersion === 0)
      records.push(...bootstrapRecords(this.#options.configs.number('min.insync.replicas')))
    // The controller before may have allowed unclean elections, and gone before it held them.
    for (const record of leaderlessElections(state)) records.push(record)
    return records
  }

  #tick(state: ControllerState, now: Millis): MetadataRecord[] {
    const stale = staleBrokers(state, now)
    if (stale.length > 0) return fenceBrokers(state, stale)
    if (this.#rulesChanged) {
      this.#rulesChanged = false
      return leaderlessElections(state)
    }
    if (this.#nextBalancing === undefined || now < this.#nextBalancing) return []
    const records = preferredElections(state, BALANCING_ELECTIONS_MAX)
    // The rest at once, when these are applied.
    if (records.length < BALANCING_ELECTIONS_MAX) this.#scheduleBalancing(now)
    return records
  }

  #reached(
    state: ControllerState,
    { brokerId, brokerEpoch, isReached }: CommandAs<'broker-reached'>,
  ): MetadataRecord[] {
    if (state.brokerEpochError(brokerId, brokerEpoch) !== ErrorCode.NONE) return []
    this.#liveness.reached(brokerId, isReached)
    // What it led before comes back when leaders are balanced; what one leads still who cannot be dialled it may lead now.
    return electionsOfReached(state)
  }

  #scheduleBalancing(now: Millis): void {
    const interval = this.#options.leaderBalanceIntervalMs
    this.#nextBalancing = interval === undefined ? undefined : now + interval
  }
}
