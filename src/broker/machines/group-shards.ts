import { DecodeError } from '#base/bytes.ts'
import type { Millis, Offset, ProducerId } from '#base/units.ts'
import type { GroupCommand, GroupReply } from '#core/group/commands.ts'
import type { GroupConfig } from '#core/group/config.ts'
import { decodeEntry, encodeEntry, type GroupEntry } from '#core/group/entries.ts'
import { GroupShard } from '#core/group/shard.ts'
import type { Produced } from '#core/partition/leader.ts'
import type { ErrorName } from '#protocol/errors.ts'
import { baseOffset, batchesOf as batchesIn, isControl, isTransactional, magic, producerId } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { controlTypeOf } from '#records/control.ts'
import { recordsOf } from '#records/records.ts'
import { RecordsError } from '#records/records-error.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Clock, Logger } from '#world/world.ts'
import type { Deadline, Deadlines } from '../deadlines.ts'
import type { Partition, ProduceToken } from '../partitions/partition.ts'
import type { Watcher } from '../partitions/watchers.ts'

/** The coordinator cannot answer; the request's own answer carries the code. */
export class CoordinatorError extends Error {
  override readonly name = 'CoordinatorError'
  readonly code: ErrorName

  constructor(code: ErrorName) {
    super(code)
    this.code = code
  }
}

export interface ShardSurroundings {
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly log: Logger
  readonly config: GroupConfig
  /** `offsets.commit.timeout.ms`: how long an answer may wait for what it rests on to be committed. */
  readonly commitTimeoutMs: Millis
}

interface Resting {
  readonly since: Millis
  readonly replies: GroupReply[]
}

interface OpenCall {
  resolve(reply: GroupReply): void
  reject(error: CoordinatorError): void
  /** Ends the watch over the client's connection. */
  forget: (() => void) | undefined
}

const READ_BYTES = 1024 * 1024
/** Far below message.max.bytes, so that one decision of thousands of entries is several batches. */
const BATCH_BYTES_MAX = 256 * 1024
const RELOAD_AFTER_MS = 200
/** What is written down by itself while too few are in sync comes when they are. */
const TOO_FEW_RETRY_MS = 500
/** What is written down, or prepares it. The rest is answered by what is known. */
const WRITES: ReadonlySet<GroupCommand['kind']> = new Set<GroupCommand['kind']>([
  'JoinGroup',
  'SyncGroup',
  'LeaveGroup',
  'OffsetCommit',
  'OffsetDelete',
  'DeleteGroups',
])
/** Bytes that are no batches are so a while later as well, unless somebody mends them. */
const RELOAD_BROKEN_AFTER_MS = 60_000

/** What transactions have written that are not ended yet, as far as the log was read. */
type OpenTransactions = Map<ProducerId, { readonly entry: GroupEntry; readonly offset: Offset }[]>

/**
 * Drives one shard of the group coordinator over its partition of `__consumer_offsets`: folds the log, then decides
 * commands one after another, appends what they lead to, applies it, and gives the answers when the partition has
 * committed it. When an append fails the shard is thrown away and folded anew: nothing is rolled back.
 */
export class ShardRunner {
  readonly #partition: Partition
  readonly #around: ShardSurroundings
  #shard: GroupShard | undefined
  /** Counts the times that the shard was loaded: what belongs to an older one is over. */
  #life = 0
  #nextCall = 1
  readonly #calls = new Map<number, OpenCall>()
  /** Answers that rest on an append that is under way, in the order of the appends. */
  readonly #resting: Resting[] = []
  /** When the first of them has rested for too long. */
  #overdue: Deadline | undefined
  readonly #untold: GroupCommand[] = []
  #wake: Deadline | undefined
  #stopped = false

  constructor(partition: Partition, around: ShardSurroundings) {
    this.#partition = partition
    this.#around = around
    void this.#load()
  }

  /**
   * Hands a command to the shard. Rejects with a CoordinatorError. While too few are in sync to write anything down it is
   * refused before it is decided: a shard whose append is refused is read anew, and all who try again would have it read
   * its whole log again and again.
   */
  submit(command: (call: number) => GroupCommand, whenGone: (run: () => void) => () => void): Promise<GroupReply> {
    if (this.#stopped) return Promise.reject(new CoordinatorError('NOT_COORDINATOR'))
    if (this.#shard === undefined) return Promise.reject(new CoordinatorError('COORDINATOR_LOAD_IN_PROGRESS'))
    const call = this.#nextCall++
    const asked = command(call)
    if (WRITES.has(asked.kind) && this.#partition.tooFewInSync) {
      return Promise.reject(new CoordinatorError('COORDINATOR_NOT_AVAILABLE'))
    }
    return new Promise((resolve, reject) => {
      const open: OpenCall = { resolve, reject, forget: undefined }
      this.#calls.set(call, open)
      this.#step(asked)
      // Most answers are there by now; one that waits may be left behind by its client.
      if (!this.#calls.has(call)) return
      open.forget = whenGone(() => {
        if (this.#calls.delete(call)) this.tell({ kind: 'CallGone', call })
      })
    })
  }

  /** Something that no client asked for. While the log is read, or cannot be written, it waits, and comes after. */
  tell(command: GroupCommand): void {
    this.#untold.push(command)
    this.#tellAll()
    if (this.#untold.length === 0 || this.#shard === undefined) return
    // Nothing else may be due for a long time.
    this.#around.deadlines.cancel(this.#wake)
    this.#tickAfter(TOO_FEW_RETRY_MS)
  }

  #tellAll(): void {
    while (this.#untold.length > 0 && this.#shard !== undefined && !this.#partition.tooFewInSync) {
      this.#step(this.#untold.shift() as GroupCommand)
    }
  }

  stop(): void {
    this.#stopped = true
    this.#discard('NOT_COORDINATOR')
  }

  #step(command: GroupCommand): void {
    const shard = this.#shard
    if (shard === undefined) return
    const { entries, answer } = shard.decide(command, this.#around.clock.now(), this.#around.clock.monotonic())
    if (entries.length > 0) this.#append(shard, entries, answer)
    else if (this.#resting.length > 0) {
      ;(this.#resting.at(-1) as Resting).replies.push(...answer)
      this.#watchOverdue()
    } else this.#deliver(answer)
    if (shard === this.#shard) this.#schedule(shard)
  }

  /** Applied before the append can settle: the fold is ahead of the answers, never behind. */
  #append(shard: GroupShard, entries: readonly GroupEntry[], answer: readonly GroupReply[]): void {
    const replies = [...answer]
    const life = this.#life
    const batches = batchesOf(entries, this.#around.clock.now())
    let offset = this.#partition.nextOffset
    for (const entry of entries) shard.apply(entry, offset++)
    for (const [index, batch] of batches.entries()) {
      // Answers rest on the last of the decision's batches; the log takes them in their order or none after a failure.
      this.#rest(index === batches.length - 1 ? replies : [])
      const token: ProduceToken = {
        settle: produced => {
          if (life === this.#life) this.#settled(produced)
        },
      }
      this.#partition.produce(batch, 0, batch.length, -1, token)
      if (life !== this.#life) return
    }
  }

  #settled(produced: Produced<ProduceToken>): void {
    if (produced.error === undefined) {
      this.#wakeFirst()
      return
    }
    this.#around.log.warn(
      {
        topic: this.#partition.topic,
        partition: this.#partition.index,
        error: produced.error,
        reason: produced.message,
      },
      'group state could not be written; the coordinator reads its log again and clients try again',
    )
    this.#discard(errorForClients(produced.error))
    this.#around.deadlines.after(RELOAD_AFTER_MS, () => void this.#load())
  }

  #rest(replies: GroupReply[]): void {
    this.#resting.push({ since: this.#around.clock.monotonic(), replies })
    this.#watchOverdue()
  }

  #wakeFirst(): void {
    this.#deliver(this.#resting.shift()?.replies ?? [])
  }

  /** Whose answer rests for too long is told to try again; what was decided stays so, and may still be committed. */
  #watchOverdue(): void {
    if (this.#overdue !== undefined) return
    const first = this.#resting.find(({ replies }) => replies.length > 0)
    if (first === undefined) return
    const { clock, deadlines, commitTimeoutMs } = this.#around
    this.#overdue = deadlines.after(first.since + commitTimeoutMs - clock.monotonic(), () => {
      this.#overdue = undefined
      const error = new CoordinatorError('COORDINATOR_NOT_AVAILABLE')
      const now = clock.monotonic()
      for (const { since, replies } of this.#resting) {
        // The sum that the deadline was: a difference is rounded otherwise, and what is due by one is not by the other.
        if (since + commitTimeoutMs > now) break
        for (const reply of replies.splice(0)) this.#close(reply.call)?.reject(error)
      }
      this.#watchOverdue()
    })
  }

  #close(id: number): OpenCall | undefined {
    const call = this.#calls.get(id)
    this.#calls.delete(id)
    call?.forget?.()
    return call
  }

  #deliver(replies: readonly GroupReply[]): void {
    for (const reply of replies) {
      this.#close(reply.call)?.resolve(reply)
    }
  }

  #discard(error: ErrorName): void {
    this.#life++
    this.#shard = undefined
    this.#around.deadlines.cancel(this.#wake)
    this.#around.deadlines.cancel(this.#overdue)
    this.#overdue = undefined
    this.#resting.length = 0
    const calls = [...this.#calls.values()]
    this.#calls.clear()
    for (const call of calls) {
      call.forget?.()
      call.reject(new CoordinatorError(error))
    }
  }

  #schedule(shard: GroupShard): void {
    this.#around.deadlines.cancel(this.#wake)
    this.#wake = undefined
    const at: Millis | undefined = shard.wakeAt()
    if (at === undefined) return
    this.#tickAfter(Math.max(0, at - this.#around.clock.monotonic()))
  }

  #tickAfter(ms: Millis): void {
    this.#wake = this.#around.deadlines.after(ms, () => {
      if (this.#partition.tooFewInSync) return this.#tickAfter(TOO_FEW_RETRY_MS)
      this.#tellAll()
      this.#step({ kind: 'Tick' })
    })
  }

  /** Folds the whole log; commands are refused meanwhile. */
  async #load(): Promise<void> {
    if (this.#stopped) return
    const life = ++this.#life
    const { log } = this.#partition
    // What an earlier leader appended and is not stored yet is a part of the state.
    if (log.failure === undefined && log.nextOffset > log.endOffset) {
      this.#around.deadlines.after(RELOAD_AFTER_MS, () => void this.#load())
      return
    }
    const started = this.#around.clock.monotonic()
    const shard = new GroupShard(this.#around.config)
    let records = 0
    const open: OpenTransactions = new Map()
    let offset: Offset = log.startOffset
    try {
      while (offset < log.endOffset) {
        const range = await log.read(offset, READ_BYTES, log.endOffset)
        // The log is being mended: there is more than it can say now, and to end here would forget it.
        if (range === undefined) throw new StorageError('EAGAIN', log.folder, 'the log is being mended')
        const bytes = await log.readBytes(range)
        if (life !== this.#life) return
        for (const at of batchesIn(bytes)) records += this.#fold(shard, bytes, at, open)
        offset = range.nextOffset
      }
    } catch (error) {
      if (!(error instanceof StorageError || error instanceof DecodeError)) throw error
      // Its life may be over by now; the next one reads for itself.
      if (life !== this.#life) return
      const isBroken = error instanceof DecodeError
      if (isBroken)
        this.#complain(offset, error, 'the groups of this partition cannot be read, and have no coordinator')
      this.#around.deadlines.after(isBroken ? RELOAD_BROKEN_AFTER_MS : RELOAD_AFTER_MS * 5, () => void this.#load())
      return
    }
    if (life !== this.#life || this.#stopped) return
    this.#shard = shard
    this.#restUntil(offset)
    if (records > 0) {
      const tookMs = Math.round(this.#around.clock.monotonic() - started)
      this.#around.log.debug({ partition: this.#partition.index, records, tookMs }, 'groups are loaded')
    }
    this.#step({ kind: 'Lead' })
    this.#tellAll()
  }

  /** What an earlier leader appended may still be lost while not all in sync have it: no answer may rest on it. */
  #restUntil(endOffset: Offset): void {
    const partition = this.#partition
    if (partition.highWatermark >= endOffset) return
    const life = this.#life
    this.#rest([])
    const watcher: Watcher = {
      moved: () => {
        if (life === this.#life && partition.highWatermark < endOffset) return
        partition.watermarkWatchers.delete(watcher)
        if (life === this.#life) this.#wakeFirst()
      },
    }
    partition.watermarkWatchers.add(watcher)
  }

  /**
   * Folds one batch and returns how many records it has. What makes no sense is left out: it was never ours. What Kafka
   * wrote for a transaction, offsets that a producer commits with its records (KIP-98), counts once that is committed.
   */
  #fold(shard: GroupShard, bytes: Buffer, at: number, open: OpenTransactions): number {
    let records = 0
    try {
      if (isControl(bytes, at)) {
        this.#endTransaction(shard, bytes, at, open)
        return 0
      }
      const isOpen = magic(bytes, at) >= 2 && isTransactional(bytes, at)
      for (const record of recordsOf(bytes, at)) {
        records++
        const entry = record.key === null ? undefined : this.#entryOf(record.key, record.value, record.offset)
        if (entry === undefined || entry.kind === 'Unknown') continue
        if (!isOpen) shard.apply(entry, record.offset)
        else add(open, producerId(bytes, at), entry, record.offset)
      }
    } catch (error) {
      if (!(error instanceof RecordsError)) throw error
      this.#complain(baseOffset(bytes, at), error)
    }
    return records
  }

  #endTransaction(shard: GroupShard, bytes: Buffer, at: number, open: OpenTransactions): void {
    const [marker] = recordsOf(bytes, at)
    const type = controlTypeOf(marker?.key ?? null)
    if (type !== 'commit' && type !== 'abort') return
    const written = open.get(producerId(bytes, at)) ?? []
    open.delete(producerId(bytes, at))
    if (type === 'commit') for (const { entry, offset } of written) shard.apply(entry, offset)
  }

  #entryOf(key: Buffer, value: Buffer | null, offset: Offset): ReturnType<typeof decodeEntry> | undefined {
    try {
      return decodeEntry(key, value)
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error
      this.#complain(offset, error)
      return undefined
    }
  }

  #complain(
    offset: Offset,
    { message: reason }: Error,
    what = 'records that are no state of groups are left out; only the brokers should write to this topic',
  ): void {
    const { topic, index: partition } = this.#partition
    this.#around.log.error({ topic, partition, offset, reason }, what)
  }
}

function add(open: OpenTransactions, producer: ProducerId, entry: GroupEntry, offset: Offset): void {
  const written = open.get(producer)
  if (written === undefined) open.set(producer, [{ entry, offset }])
  else written.push({ entry, offset })
}

/** A decision's entries as batches that a follower or a reader of the log can take. */
function batchesOf(entries: readonly GroupEntry[], now: Millis): Buffer[] {
  const batches: Buffer[] = []
  let builder = new BatchBuilder({ bytesMax: BATCH_BYTES_MAX })
  for (const entry of entries) {
    const { key, value } = encodeEntry(entry)
    if (!builder.wouldFit(now, key, value)) {
      batches.push(builder.build())
      builder = new BatchBuilder({ bytesMax: BATCH_BYTES_MAX })
    }
    builder.append(now, key, value)
  }
  batches.push(builder.build())
  return batches
}

/** What an append's failure means to a client of the coordinator. */
function errorForClients(error: ErrorName): ErrorName {
  switch (error) {
    case 'NOT_LEADER_OR_FOLLOWER':
    case 'KAFKA_STORAGE_ERROR':
      return 'NOT_COORDINATOR'
    case 'NOT_ENOUGH_REPLICAS':
    case 'NOT_ENOUGH_REPLICAS_AFTER_APPEND':
      return 'COORDINATOR_NOT_AVAILABLE'
    default:
      return 'UNKNOWN_SERVER_ERROR'
  }
}
