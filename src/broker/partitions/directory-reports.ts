import type { NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import type { Clock, Logger } from '#world/world.ts'
import type { ControllerLink } from '../metadata/controller-link.ts'

export interface DirectoryReportsOptions {
  readonly nodeId: NodeId
  readonly link: ControllerLink
  readonly clock: Clock
  readonly log: Logger
  /** Of this broker's registration; -1 before. */
  readonly brokerEpoch: () => number
}

const TIMEOUT_MS = 10_000
const PARTITIONS_AT_ONCE = 2250
const RETRY_MS = 500

/** Says to the controller in which of several directories replicas lie (AssignReplicasToDirs, KIP-858). */
export class DirectoryReports {
  readonly #options: DirectoryReportsOptions
  /** Directories by topic and partition, that are to be told. */
  readonly #untold = new Map<Uuid, Map<number, Uuid>>()
  #sending = false
  #stopped = false

  constructor(options: DirectoryReportsOptions) {
    this.#options = options
  }

  /** A later word on the same replica takes the place of an earlier one. */
  report(topicId: Uuid, index: number, directory: Uuid): void {
    let partitions = this.#untold.get(topicId)
    if (partitions === undefined) {
      partitions = new Map()
      this.#untold.set(topicId, partitions)
    }
    partitions.set(index, directory)
    if (this.#sending) return
    this.#sending = true
    this.#options.clock.soon(() => void this.#send())
  }

  stop(): void {
    this.#stopped = true
    this.#untold.clear()
  }

  async #send(): Promise<void> {
    const { link } = this.#options
    while (this.#untold.size > 0 && !this.#stopped) {
      if (this.#options.brokerEpoch() < 0) {
        await link.rest(RETRY_MS)
        continue
      }
      const told = this.#take()
      if (await this.#tell(told)) continue
      for (const { topicId, index, directory } of told) {
        if (this.#untold.get(topicId)?.has(index) !== true) this.#keep(topicId, index, directory)
      }
      await link.rest(RETRY_MS)
    }
    this.#sending = false
  }

  #keep(topicId: Uuid, index: number, directory: Uuid): void {
    const partitions = this.#untold.get(topicId) ?? new Map<number, Uuid>()
    this.#untold.set(topicId, partitions.set(index, directory))
  }

  #take(): { readonly topicId: Uuid; readonly index: number; readonly directory: Uuid }[] {
    const taken = []
    for (const [topicId, partitions] of this.#untold) {
      for (const [index, directory] of partitions) {
        if (taken.length === PARTITIONS_AT_ONCE) return taken
        taken.push({ topicId, index, directory })
        partitions.delete(index)
      }
      this.#untold.delete(topicId)
    }
    return taken
  }

  /** False if it is to be told again. What the controller does not know of a partition is its deletion. */
  async #tell(told: readonly { topicId: Uuid; index: number; directory: Uuid }[]): Promise<boolean> {
    const { nodeId: brokerId, brokerEpoch, link, log } = this.#options
    const directories = new Map<Uuid, Map<Uuid, number[]>>()
    for (const { topicId, index, directory } of told) {
      const topics = directories.get(directory) ?? new Map<Uuid, number[]>()
      directories.set(directory, topics)
      topics.set(topicId, [...(topics.get(topicId) ?? []), index])
    }
    const request = {
      brokerId,
      brokerEpoch: brokerEpoch(),
      directories: [...directories].map(([id, topics]) => ({
        id,
        topics: [...topics].map(([topicId, indexes]) => ({
          topicId,
          partitions: indexes.map(partitionIndex => ({ partitionIndex })),
        })),
      })),
    }
    try {
      const { errorCode } = await link.ask(API.AssignReplicasToDirs, request, TIMEOUT_MS)
      if (errorCode === ErrorCode.NONE || errorCode === ErrorCode.UNSUPPORTED_VERSION) return true
      const { name } = errorOf(errorCode)
      if (name === 'NOT_CONTROLLER') link.lookElsewhere()
      log.debug({ error: name }, 'the controller does not take the directories of replicas now; trying again')
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      log.debug({ reason: error.message }, 'the controller cannot be told of the directories of replicas; trying again')
    }
    return false
  }
}
