import type { NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { IsrAnswer, IsrProposal } from '#core/partition/in-sync-replicas.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName, errorOf } from '#protocol/errors.ts'
import type { AlterPartitionRequest } from '#protocol/messages/alter-partition.ts'
import type { InputOf, MessageOf } from '#protocol/schema.ts'
import type { Clock, Logger } from '#world/world.ts'
import type { ControllerLink } from '../metadata/controller-link.ts'
import type { Partition } from './partition.ts'

export interface IsrChangesOptions {
  readonly nodeId: NodeId
  readonly link: ControllerLink
  readonly clock: Clock
  readonly log: Logger
  /** Of this broker's registration. */
  readonly brokerEpoch: () => number
}

interface Change {
  readonly partition: Partition
  readonly proposal: IsrProposal
}

type Topics = NonNullable<InputOf<typeof AlterPartitionRequest>['topics']>

const TIMEOUT_MS = 10_000
/** Errors of one partition that say nothing of the change: another controller, or the same one later, may take it. */
const AGAIN: ReadonlySet<ErrorName> = new Set(['NOT_CONTROLLER', 'UNKNOWN_SERVER_ERROR', 'REQUEST_TIMED_OUT'])
/** Between one time that it is asked in vain and the next, but not before the second: another controller may be there. */
const AGAIN_MS = 50
/** In one request; a controller may refuse more. */
const CHANGES_AT_ONCE = 5000
/** Of all their parts, which a controller counts: with many replicas fewer changes are too many. */
const ELEMENTS_AT_ONCE = 50_000
const LEADER_RECOVERED = 0

/**
 * Takes the leaders' changes of who is in sync to the active controller: all of one turn in one AlterPartition, one
 * request at a time, again and again until each has an answer or is of no interest any more.
 */
export class IsrChanges {
  readonly #options: IsrChangesOptions
  /** One for each partition: a leader has at most one under way, and a new leader's takes the place of an older one's. */
  readonly #queue = new Map<Partition, IsrProposal>()
  #sending = false
  #planned = false
  #stopped = false

  constructor(options: IsrChangesOptions) {
    this.#options = options
  }

  propose(partition: Partition, proposal: IsrProposal): void {
    this.#queue.set(partition, proposal)
    if (this.#sending || this.#planned) return
    this.#planned = true
    this.#options.clock.soon(() => {
      this.#planned = false
      void this.#send()
    })
  }

  stop(): void {
    this.#stopped = true
    this.#queue.clear()
  }

  async #send(): Promise<void> {
    this.#sending = true
    let failures = 0
    while (this.#queue.size > 0 && !this.#stopped) {
      const changes = this.#take()
      if (changes.length === 0) continue
      const answer = await this.#ask(changes)
      if (this.#stopped) return
      const again = answer === undefined ? changes : this.#answered(changes, answer)
      for (const change of again) this.#again(change)
      if (again.length === 0) failures = 0
      // While a controller is known to be active the link rests for nothing, and what it refuses would be asked all the time.
      else await this.#options.link.rest(failures++ === 0 ? 0 : AGAIN_MS)
    }
    this.#sending = false
  }

  /** Those that still matter. */
  #take(): Change[] {
    const changes: Change[] = []
    let elements = 0
    for (const [partition, proposal] of this.#queue) {
      this.#queue.delete(partition)
      const isCurrent = partition.leads && partition.leaderEpoch === proposal.leaderEpoch && !partition.gone
      if (!isCurrent) continue
      changes.push({ partition, proposal })
      // Its topic, itself, and those in sync.
      elements += 2 + proposal.isr.length
      if (changes.length === CHANGES_AT_ONCE || elements >= ELEMENTS_AT_ONCE) break
    }
    return changes
  }

  #again({ partition, proposal }: Change): void {
    if (!this.#queue.has(partition)) this.#queue.set(partition, proposal)
  }

  async #ask(changes: readonly Change[]): Promise<MessageOf<typeof API.AlterPartition.response> | undefined> {
    const { nodeId, brokerEpoch, link, log } = this.#options
    try {
      const request = { brokerId: nodeId, brokerEpoch: brokerEpoch(), topics: topicsOf(changes, nodeId, brokerEpoch()) }
      const answer = await link.ask(API.AlterPartition, request, TIMEOUT_MS)
      if (answer.errorCode === ErrorCode.NONE) return answer
      const { name } = errorOf(answer.errorCode)
      // A stale epoch is one that this broker will have heard of by the next heartbeat.
      if (name === 'NOT_CONTROLLER') link.lookElsewhere()
      log.debug({ error: name }, 'the controller does not take changes of in-sync replicas now; trying again')
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      log.debug({ reason: error.message }, 'the controller cannot be told of changes of in-sync replicas; trying again')
    }
    return undefined
  }

  /** Returns those that have to be asked again. */
  #answered(changes: readonly Change[], answer: MessageOf<typeof API.AlterPartition.response>): Change[] {
    const again: Change[] = []
    const answers = new Map<Uuid, Map<number, (typeof answer.topics)[number]['partitions'][number]>>()
    for (const { topicId, partitions } of answer.topics) {
      answers.set(topicId, new Map(partitions.map(partition => [partition.partitionIndex, partition])))
    }
    let isStale = false
    for (const change of changes) {
      const { partition, proposal } = change
      const result = answers.get(partition.topicId)?.get(partition.index)
      const error = errorOf(result?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR).name
      if (error === 'NONE' && result !== undefined) {
        this.#tell(partition, proposal, { kind: 'accepted', ...result })
      } else if (AGAIN.has(error)) {
        if (error === 'NOT_CONTROLLER') isStale = true
        again.push(change)
      } else this.#tell(partition, proposal, { kind: 'refused', error })
    }
    if (isStale) this.#options.link.lookElsewhere()
    return again
  }

  #tell(partition: Partition, proposal: IsrProposal, answer: IsrAnswer): void {
    const { topic, index } = partition
    const members = proposal.isr.map(({ brokerId }) => brokerId)
    if (answer.kind === 'accepted') {
      this.#options.log.debug({ topic, partition: index, isr: answer.isr }, 'the in-sync replicas have changed')
    } else {
      this.#options.log.debug({ topic, partition: index, isr: members, error: answer.error }, 'the change was refused')
    }
    partition.isrAnswered(proposal, answer)
  }
}

function topicsOf(changes: readonly Change[], nodeId: NodeId, ownEpoch: number): Topics {
  const topics = new Map<Uuid, NonNullable<Topics[number]['partitions']>[number][]>()
  for (const { partition, proposal } of changes) {
    const partitions = topics.get(partition.topicId) ?? []
    topics.set(partition.topicId, partitions)
    partitions.push({
      partitionIndex: partition.index,
      leaderEpoch: proposal.leaderEpoch,
      newIsrWithEpochs: proposal.isr.map(member => ({
        brokerId: member.brokerId,
        brokerEpoch: member.brokerId === nodeId ? ownEpoch : member.brokerEpoch,
      })),
      leaderRecoveryState: LEADER_RECOVERED,
      partitionEpoch: proposal.partitionEpoch,
    })
  }
  return [...topics].map(([topicId, partitions]) => ({ topicId, partitions }))
}
