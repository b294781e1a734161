import type { Millis } from '#base/units.ts'
import { HungDiskError, isFull, type StorageError } from '#storage/storage-error.ts'
import type { Logger } from '#world/world.ts'
import type { Partition } from './partition.ts'

/** Why a replica cannot write for now, while its broker lives. */
type Cause = 'full' | 'hangs'

interface Patience {
  /** Followers give leaders time to hand over to them: where all disks are so at once, one replica must stay. */
  readonly leaderPatienceMs: Millis
  readonly followerPatienceMs: Millis
}

interface Terms extends Patience {
  readonly what: string
  readonly until: string
}

const TERMS: Readonly<Record<Cause, Terms>> = {
  /** Retention may make room meanwhile. */
  full: {
    leaderPatienceMs: 5_000,
    followerPatienceMs: 15_000,
    what: 'the disk is full',
    until: 'once there is space',
  },
  /** Whoever watches the disk has had the patience. */
  hangs: { leaderPatienceMs: 0, followerPatienceMs: 3_000, what: 'the disk hangs', until: 'once it answers again' },
}

/** For a log that cannot be made or opened, for whatever reason: the same, as nobody is told of these apart. */
export const UNOPENED_PATIENCE: { readonly fails: Patience; readonly hangs: Patience } = {
  fails: TERMS.full,
  hangs: TERMS.hangs,
}

interface Trouble {
  readonly cause: Cause
  readonly since: Millis
}

/**
 * Replicas that cannot write because their disk is full, or hangs, while those of others do. Such a one is told to the
 * controller as one whose directory is lost (KIP-858), so that another one leads and nobody waits for it; once its disk is
 * well it is told where it lies, and follows. One that nobody can stand in for stays, as it can be read.
 */
export class LostReplicas {
  readonly #log: Logger
  readonly #inTrouble = new Map<Partition, Trouble>()
  readonly #handedOver = new Map<Partition, Cause>()

  constructor(log: Logger) {
    this.#log = log
  }

  /** Whether there is anything to look after. */
  get isIdle(): boolean {
    return this.#inTrouble.size === 0 && this.#handedOver.size === 0
  }

  /** Whether the cluster was told that it is lost, so that it takes no part. */
  isHandedOver(partition: Partition): boolean {
    return this.#handedOver.has(partition)
  }

  /** Those that are to be handed over now, and those whose disk is well again. */
  look(partitions: Iterable<Partition>, now: Millis): { readonly lost: Partition[]; readonly back: Partition[] } {
    const lost = new Map<Partition, Cause>()
    for (const partition of partitions) {
      const cause = causeOf(partition.log.failure)
      if (cause === undefined) {
        this.#inTrouble.delete(partition)
        continue
      }
      if (this.#handedOver.has(partition)) continue
      const known = this.#inTrouble.get(partition)
      const trouble = known?.cause === cause ? known : { cause, since: now }
      this.#inTrouble.set(partition, trouble)
      const { leads, inSync, leaderId } = partition
      const canLeave = leads ? inSync.length > 1 : leaderId >= 0
      const { leaderPatienceMs, followerPatienceMs } = TERMS[cause]
      if (now - trouble.since >= (leads ? leaderPatienceMs : followerPatienceMs) && canLeave) lost.set(partition, cause)
    }
    const back = [...this.#handedOver].filter(([{ gone, log }]) => gone || log.failure === undefined)
    for (const [partition, cause] of lost) this.#handedOver.set(partition, cause)
    for (const [partition] of back) this.#handedOver.delete(partition)
    for (const partition of this.#inTrouble.keys()) if (partition.gone) this.#inTrouble.delete(partition)
    for (const cause of ['full', 'hangs'] as const) this.#tell(cause, of(lost, cause), of(back, cause))
    return { lost: [...lost.keys()], back: back.map(([partition]) => partition).filter(({ gone }) => !gone) }
  }

  #tell(cause: Cause, lost: readonly Partition[], back: readonly Partition[]): void {
    const { what, until } = TERMS[cause]
    const [first] = lost
    if (first !== undefined) {
      const { folder } = first.log
      this.#log.warn(
        { partitions: lost.length, first: folder },
        `${what}, so others do without the replicas of partitions (${lost.length}), such as ${folder}; these follow again ${until}`,
      )
    }
    if (back.length > 0) {
      const message =
        cause === 'full'
          ? 'partitions whose disk was full have space again'
          : 'partitions whose disk hung are back and follow'
      this.#log.info({ partitions: back.length }, message)
    }
  }
}

function causeOf(failure: StorageError | undefined): Cause | undefined {
  if (failure === undefined) return undefined
  if (failure instanceof HungDiskError) return 'hangs'
  return isFull(failure) ? 'full' : undefined
}

function of(partitions: Iterable<readonly [Partition, Cause]>, cause: Cause): Partition[] {
  return [...partitions].filter(([, of]) => of === cause).map(([partition]) => partition)
}
