import type { Millis } from '#base/units.ts'
import { isFull } from '#storage/storage-error.ts'
import type { Logger } from '#world/world.ts'
import type { Partition } from './partition.ts'

/**
 * Retention may make room meanwhile. Followers give leaders time to hand over to them: where all disks are full at once, one
 * replica must stay.
 */
const LEADER_PATIENCE_MS: Millis = 5_000
const FOLLOWER_PATIENCE_MS: Millis = 15_000

/**
 * Replicas that cannot write because their disk is full, while others have space. Such a one is told to the controller as
 * one whose directory is lost (KIP-858), so that another one leads and nobody waits for it; once there is space it is told
 * where it lies, and follows. One that nobody can stand in for stays, as it can be read.
 */
export class FullLogs {
  readonly #log: Logger
  readonly #since = new Map<Partition, Millis>()
  readonly #handedOver = new Set<Partition>()

  constructor(log: Logger) {
    this.#log = log
  }

  /** Whether there is anything to look after. */
  get isIdle(): boolean {
    return this.#since.size === 0 && this.#handedOver.size === 0
  }

  /** Whether the cluster was told that it is lost, so that it takes no part. */
  isHandedOver(partition: Partition): boolean {
    return this.#handedOver.has(partition)
  }

  /** Those that are to be handed over now, and those that have space again. */
  look(partitions: Iterable<Partition>, now: Millis): { readonly lost: Partition[]; readonly back: Partition[] } {
    const lost: Partition[] = []
    for (const partition of partitions) {
      const { failure } = partition.log
      if (failure === undefined || !isFull(failure)) {
        this.#since.delete(partition)
        continue
      }
      if (this.#handedOver.has(partition)) continue
      const since = this.#since.get(partition) ?? now
      this.#since.set(partition, since)
      const { leads, inSync, leaderId } = partition
      const canLeave = leads ? inSync.length > 1 : leaderId >= 0
      const patienceMs = leads ? LEADER_PATIENCE_MS : FOLLOWER_PATIENCE_MS
      if (now - since >= patienceMs && canLeave) lost.push(partition)
    }
    const back = [...this.#handedOver].filter(({ gone, log }) => gone || log.failure === undefined)
    for (const partition of lost) this.#handedOver.add(partition)
    for (const partition of back) this.#handedOver.delete(partition)
    for (const partition of this.#since.keys()) if (partition.gone) this.#since.delete(partition)
    this.#tell(lost, back)
    return { lost, back: back.filter(({ gone }) => !gone) }
  }

  #tell(lost: readonly Partition[], back: readonly Partition[]): void {
    const [first] = lost
    if (first !== undefined) {
      const { folder } = first.log
      this.#log.warn(
        { partitions: lost.length, first: folder },
        `the disk is full, so others do without the replicas of ${lost.length} partitions, such as ${folder}; these follow again once there is space`,
      )
    }
    if (back.length > 0) this.#log.info({ partitions: back.length }, 'partitions whose disk was full have space again')
  }
}
