import { assert } from '#base/assert.ts'
import type { Complaints } from '#base/complaints.ts'
import { KiB, MiB, type Millis, type Offset } from '#base/units.ts'
import { baseOffset, lastOffset, leaderEpoch, magic, maxTimestamp, sizeInBytes } from '#records/batch.ts'
import { type Clock, type Disk, type Timer, WorldError } from '#world/world.ts'
import type { BatchFold } from './batch-fold.ts'
import { Cure } from './cure.ts'
import type { DiskWatch } from './disk-watch.ts'
import { Gather } from './gather.ts'
import type { LeaderEpochs } from './leader-epochs.ts'
import { type Loaded, restoreFold } from './load.ts'
import type { LogConfig } from './log-config.ts'
import type { ProducerSnapshots } from './producer-snapshots.ts'
import { RollPlan } from './roll-plan.ts'
import type { Segment, SegmentPlace } from './segment.ts'
import { Segments } from './segments.ts'
import { cureOf, StorageError, storageError } from './storage-error.ts'
import { type Syncs, syncEach } from './syncs.ts'
import type { WriteTurns } from './write-turns.ts'

/** One write takes at most this; what comes on top waits for the next. */
const GATHER_BYTES_MAX = 32 * MiB
/** What is written on the loop at once at most; copying more takes longer than a trip to the thread pool. */
const NOW_BYTES_MAX = 128 * KiB
/** Linux takes 1024 parts in one writev. */
const GATHER_PARTS_MAX = 1024
/**
 * What is written within its append at most: larger ones come in streams, where a turn that gathers them, and a follower that
 * is told of them together, saves more than it delays.
 */
const WITHIN_BYTES_MAX = 16 * KiB
/** What is appended sooner after such a write is gathered too. */
const APART_MS: Millis = 0.2

const DONE: Promise<unknown> = Promise.resolve()

function ignore(): void {}

export interface WriterOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly complaints: Complaints
  readonly place: SegmentPlace
  readonly fold: BatchFold
  readonly turns: WriteTurns
  /** Called when the log was cut, or begins anew, before anything is appended: nothing on the disk may say more of it. */
  readonly wasCut?: (() => Promise<void>) | undefined
  readonly watch?: DiskWatch | undefined
  readonly refusal?: (() => StorageError | undefined) | undefined
  /** Called when a sync failed: what was written may be gone, though nobody has cut the power. */
  readonly syncFailed?: (() => void) | undefined
  /** From now on appends are refused. */
  readonly failed?: (() => void) | undefined
}

/**
 * The end of a log, and in which order it moves: gathers appends into writes, rolls, syncs, cuts its {@link Segments}.
 *
 *   append → gather ─(soon, or when the write before is done)→ one writev → index, ends of batches → end offset
 *                                                            └ flush.messages reached: one fsync for all that wait
 *
 * After a failure nothing of the gather counts: all that wait are refused, later appends too, until what may have been
 * written behind the end offset is cut off and the disk took a probe ({@link Cure}). The end offset never moves back by that.
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #segments: Segments
  readonly #epochs: LeaderEpochs
  readonly #snapshots: ProducerSnapshots
  config: LogConfig
  readonly #syncs: Syncs

  /** Where the next append begins: behind all that is queued. */
  nextOffset: Offset
  /** Counts for readers: it was written, and synced where that was asked for. */
  endOffset: Offset
  /** Below it all was synced. */
  durableOffset: Offset
  startOffset: Offset
  /** What was written; ahead of the end offset while a sync is awaited. */
  #writtenOffset: Offset
  /**
   * Counts what took offsets back, be it truncation or failure, and the end of a truncation: what was known of the log
   * before, or in the midst of it, no longer holds.
   */
  cuts = 0

  readonly #plan: RollPlan
  readonly #cure: Cure

  #queue: Gather[] = []
  #drainPlanned = false
  #awaitingSync: Gather[] = []
  /** The same, for whom the sync that is under way was made. */
  #inSync: readonly Gather[] = []
  /** Appends wait for a sync, and the watch knows. */
  #isSyncWatched = false
  #syncing: Promise<void> | undefined
  #syncingNext: Promise<void> | undefined
  /** While the log is being cut there is no sync: it would speak for offsets that come anew. */
  #cutting: Promise<unknown> | undefined
  #flushTimer: Timer | undefined
  /** Everything that needs the segments for itself takes turns, of which so many have not ended. */
  #turn: Promise<unknown> = DONE
  #turns = 0
  /** When something was last written within an append. */
  #wroteAt: Millis = Number.NEGATIVE_INFINITY
  #background: Promise<unknown> = DONE
  /** Where the log is to begin anew, while that is not done. */
  #restarting: Offset | undefined
  #closed = false

  constructor(options: WriterOptions, config: LogConfig, loaded: Loaded) {
    this.#options = options
    this.config = config
    this.#syncs = syncEach(options.disk)
    this.#segments = new Segments(options.place, options.clock, loaded.segments, loaded.folderUnsynced)
    this.#epochs = loaded.epochs
    this.#snapshots = loaded.snapshots
    this.nextOffset = loaded.endOffset
    this.endOffset = loaded.endOffset
    this.#writtenOffset = loaded.endOffset
    this.durableOffset = loaded.durableOffset
    this.startOffset = loaded.startOffset
    this.#plan = new RollPlan(options.clock, options.place.folder, this.#segments.active)
    this.#cure = new Cure(options, this)
  }

  get segments(): readonly Segment[] {
    return this.#segments.list
  }

  /** Why appends are refused now. */
  get failure(): StorageError | undefined {
    return this.#cure.failure
  }

  append(bytes: Buffer, at: number, end: number): Promise<void> {
    return this.appendNow(bytes, at, end, false) as Promise<void>
  }

  /** As `append`; undefined when it is written already: it came alone, nothing was before it, and the disk is brisk. */
  appendNow(bytes: Buffer, at: number, end: number, mayWrite = true): Promise<void> | undefined {
    const refusal = this.failure ?? this.#options.refusal?.()
    if (refusal !== undefined) return Promise.reject(refusal)
    assert(!this.#closed, 'a closed log takes no appends')
    const first = baseOffset(bytes, at)
    let last = this.nextOffset - 1
    let newest: Millis = -1
    for (let position = at; position < end; position += sizeInBytes(bytes, position)) {
      assert(baseOffset(bytes, position) > last, 'offsets rise from batch to batch')
      last = lastOffset(bytes, position)
      newest = Math.max(newest, maxTimestamp(bytes, position))
    }
    const size = end - at
    const part = at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end)
    const rolls = this.#plan.mustRoll(this.config, size, last, newest)
    if (mayWrite && !rolls && this.#writeWithin(part, last + 1)) {
      this.#plan.add(this.config, size, newest)
      return undefined
    }
    const gather = rolls ? this.#roll(first) : this.#gatherFor(size)
    gather.parts.push(part)
    gather.bytes += size
    gather.endOffset = last + 1
    this.#plan.add(this.config, size, newest)
    this.nextOffset = last + 1
    this.#planDrain()
    return gather.promise
  }

  /** Writes within the append; false when it has to go the way of all others, which tells of what went wrong as well. */
  #writeWithin(part: Buffer, end: Offset): boolean {
    if (this.#turns > 0 || this.#drainPlanned || this.#queue.length > 0 || this.#isSyncAwaited) return false
    if (part.length > WITHIN_BYTES_MAX || end - this.durableOffset >= this.config.flushMessages) return false
    const { active } = this.#segments
    const file = active.writableFile
    if (file === undefined) return false
    const now = this.#options.clock.monotonic()
    if (now - this.#wroteAt < APART_MS) return false
    this.#wroteAt = now
    try {
      if (!file.writeNow([part], active.size)) return false
    } catch (error) {
      if (!(error instanceof WorldError)) throw error
      return false
    }
    this.#index(part)
    active.unsynced = true
    this.nextOffset = end
    this.#writtenOffset = end
    this.#cure.wrote()
    this.endOffset = end
    if (this.config.flushMs < Number.MAX_SAFE_INTEGER) this.#planFlush()
    return true
  }

  /** What is written now counts behind what waits for a sync: the end offset must not pass it, and come back. */
  get #isSyncAwaited(): boolean {
    return this.#awaitingSync.length > 0 || this.#inSync.length > 0
  }

  #gatherFor(size: number): Gather {
    const tail = this.#queue.at(-1)
    if (tail !== undefined && tail.parts.length < GATHER_PARTS_MAX && tail.bytes + size <= GATHER_BYTES_MAX) return tail
    const gather = new Gather(this.nextOffset, undefined)
    this.#queue.push(gather)
    return gather
  }

  /** What comes next goes into a new segment. */
  #roll(first: Offset): Gather {
    const gather = new Gather(this.nextOffset, { baseOffset: first, producers: this.#options.fold.snapshot() })
    this.#queue.push(gather)
    this.#plan.begin(first)
    return gather
  }

  /** Begins a new segment at the end, unless the last one is empty, or the log is being cut. */
  roll(): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure)
    if (this.#plan.isEmpty) return this.#queue.at(-1)?.promise ?? Promise.resolve()
    const gather = this.#roll(this.nextOffset)
    this.#planDrain()
    return gather.promise
  }

  #planDrain(): void {
    if (this.#drainPlanned) return
    this.#drainPlanned = true
    this.#options.clock.soon(() => {
      const { watch } = this.#options
      // Whoever has the segments may be waiting for the disk, a checkpoint for its syncs: so are those behind it.
      const waits = this.#turns > 0
      if (waits) watch?.writeBegins()
      this.exclusive(() => {
        if (waits) watch?.writeEnds()
        return this.#drain()
      })
    })
  }

  /** Runs when nobody else changes segments; whoever asked before goes first. */
  exclusive<T>(task: () => Promise<T>): Promise<T> {
    this.#turns++
    const run = this.#turn.then(task)
    this.#turn = run.then(this.#turnEnds, this.#turnEnds)
    return run
  }

  readonly #turnEnds = (): void => {
    this.#turns--
  }

  async #drain(): Promise<void> {
    this.#drainPlanned = false
    const { turns, watch } = this.#options
    while (this.#queue.length > 0) {
      const now = this.#writeNow()
      if (now === 'failed') return
      if (now === 'written') continue
      const turn = turns.enter()
      if (turn !== undefined) await turn
      // While the turn was waited for, more may have joined, or a failed sync may have refused all.
      const gather = this.#queue.shift()
      watch?.writeBegins()
      try {
        if (gather?.roll !== undefined) await this.#beginSegment(gather.roll)
        if (gather !== undefined && gather.bytes > 0) {
          const { active } = this.#segments
          const file = active.writableFile ?? (await active.openWritable())
          await file.write(gather.parts, active.size)
        }
      } catch (error) {
        this.#fail(error, gather)
        return
      } finally {
        watch?.writeEnds()
        turns.leave()
      }
      if (gather === undefined) return
      // A sync that failed meanwhile took everything behind the end offset with it.
      if (this.failure !== undefined) {
        gather.reject(this.failure)
        return
      }
      this.#written(gather)
    }
  }

  /** Writes what waits first without a trip to the thread pool, where that can be done. */
  #writeNow(): 'written' | 'failed' | 'not' {
    const gather = this.#queue[0] as Gather
    const { active } = this.#segments
    const file = active.writableFile
    if (file === undefined || gather.roll !== undefined || gather.bytes > NOW_BYTES_MAX) return 'not'
    try {
      if (gather.bytes > 0 && !file.writeNow(gather.parts, active.size)) return 'not'
    } catch (error) {
      this.#queue.shift()
      this.#fail(error, gather)
      return 'failed'
    }
    this.#queue.shift()
    this.#written(gather)
    return 'written'
  }

  #written(gather: Gather): void {
    for (const part of gather.parts) this.#index(part)
    if (gather.bytes > 0) this.#segments.active.unsynced = true
    this.#writtenOffset = gather.endOffset
    this.#cure.wrote()
    const mustSync = this.#writtenOffset - this.durableOffset >= this.config.flushMessages
    if (mustSync || this.#isSyncAwaited) {
      this.#awaitingSync.push(gather)
      if (!this.#isSyncWatched) this.#options.watch?.syncBegins()
      this.#isSyncWatched = true
      this.#sync().catch(ignore)
      return
    }
    this.endOffset = gather.endOffset
    gather.resolve()
    if (this.config.flushMs < Number.MAX_SAFE_INTEGER) this.#planFlush()
  }

  /** Batches that were written, one after another, at the end of the last segment. */
  #index(part: Buffer): void {
    const { active } = this.#segments
    const { indexIntervalBytes } = this.config
    for (let at = 0; at < part.length; ) {
      const size = sizeInBytes(part, at)
      const base = baseOffset(part, at)
      const epoch = leaderEpoch(part, at)
      if (epoch !== this.#epochs.latest && magic(part, at) === 2) this.#epochs.assign(epoch, base)
      active.added(base, lastOffset(part, at), size, maxTimestamp(part, at), indexIntervalBytes)
      at += size
    }
  }

  #planFlush(): void {
    this.#flushTimer ??= this.#options.clock.after(this.config.flushMs, () => {
      this.#flushTimer = undefined
      this.#sync().catch(ignore)
    })
  }

  async #beginSegment({ baseOffset, producers }: NonNullable<Gather['roll']>): Promise<void> {
    const full = await this.#segments.begin(baseOffset)
    if (full === undefined) return
    this.later(async () => {
      await this.#sync()
      await full.writeIndexes()
      await this.#snapshots.write(baseOffset, producers, this.bases())
    })
  }

  bases(): Offset[] {
    return this.#segments.bases()
  }

  /** Work that nobody waits for, one after the other. What fails is done again at the next checkpoint. */
  later(task: () => Promise<void>): void {
    const { place, complaints } = this.#options
    this.#background = this.#background.then(task).catch((error: unknown) => {
      const { errno, message } = storageError(error, place.folder)
      const fields = { folder: place.folder, errno }
      const text = `could not write an index or a snapshot of producers (${message}), which makes the next start longer; tried again at the next checkpoint. Cure: ${cureOf(errno)}`
      complaints.tell('warn', `later ${errno}`, fields, text)
    })
  }

  /** All that is queued now is written, or refused. */
  async settled(): Promise<void> {
    await this.#queue.at(-1)?.promise.catch(ignore)
    await this.exclusive(() => Promise.resolve())
  }

  /** What was appended before is durable when it resolves. */
  async flush(syncs: Syncs = this.#syncs): Promise<void> {
    await this.settled()
    if (this.failure !== undefined) throw this.failure
    if (this.durableOffset < this.#writtenOffset || this.#segments.isUnsynced) await this.#sync(syncs)
  }

  async background(): Promise<void> {
    await this.#background
  }

  /** One sync at a time; whoever comes during one shares the next. */
  #sync(syncs: Syncs = this.#syncs): Promise<void> {
    if (this.#syncing === undefined) {
      this.#syncing = this.#syncOnce(syncs).finally(() => {
        this.#syncing = undefined
        this.#syncCameBack()
      })
      return this.#syncing
    }
    this.#syncingNext ??= this.#syncing.catch(ignore).then(() => {
      this.#syncingNext = undefined
      return this.#sync(syncs)
    })
    return this.#syncingNext
  }

  #syncCameBack(): void {
    if (!this.#isSyncWatched) return
    this.#options.watch?.syncEnds()
    this.#isSyncWatched = this.#awaitingSync.length > 0
    if (this.#isSyncWatched) this.#options.watch?.syncBegins()
  }

  async #syncOnce(syncs: Syncs): Promise<void> {
    await this.#cutting
    const target = this.#writtenOffset
    const waiting = this.#awaitingSync
    this.#awaitingSync = []
    this.#inSync = waiting
    try {
      await this.#segments.sync(syncs)
    } catch (error) {
      this.#inSync = []
      this.#awaitingSync = [...waiting, ...this.#awaitingSync]
      this.#fail(error, undefined, true)
      throw storageError(error, this.#options.place.folder)
    }
    this.#inSync = []
    // A write that failed meanwhile: what waits is behind the end offset and will be cut off.
    const { failure } = this
    if (failure !== undefined) {
      for (const gather of waiting) gather.reject(failure)
      throw failure
    }
    this.durableOffset = Math.max(this.durableOffset, target)
    for (const gather of waiting) {
      this.endOffset = gather.endOffset
      gather.resolve()
    }
  }

  #fail(error: unknown, during: Gather | undefined, ofSync = false): void {
    const failure = storageError(error, this.#options.place.folder)
    this.cuts++
    this.#cure.begin(failure, ofSync)
    if (ofSync) this.#options.syncFailed?.()
    this.#options.failed?.()
    const refused = [...this.#awaitingSync, ...(during === undefined ? [] : [during]), ...this.#queue]
    this.#awaitingSync = []
    this.#queue = []
    this.nextOffset = this.endOffset
    for (const gather of refused) gather.reject(failure)
  }

  /**
   * The disk hangs: who waits for it is refused, and what is under way counts for nothing when it comes back. A log at rest
   * has nothing to mend, and goes on as soon as the disk does.
   */
  hangs(failure: StorageError): void {
    if (this.failure !== undefined) return
    if (this.nextOffset > this.endOffset || this.#awaitingSync.length > 0) this.#fail(failure, undefined)
  }

  /** For the cure: takes away what a failure may have left behind the end offset. */
  async cutOff(): Promise<void> {
    await this.#segments.removeUnborn()
    if (this.#restarting !== undefined) await this.restartAt(this.#restarting)
    else await this.cutTo(this.endOffset)
  }

  cured(): void {
    this.#plan.follow(this.#segments.active)
  }

  /**
   * Cuts off the batch that holds `offset` and all after it; needs the segments for itself. The new end is that of the
   * last batch that stays.
   */
  cutTo(offset: Offset): Promise<void> {
    return this.#withoutSync(() => this.#cutTo(offset))
  }

  /** One that fails half way makes the log fail: its cure cuts once more. */
  async #withoutSync(cut: () => Promise<void>): Promise<void> {
    this.cuts++
    await this.#background
    while (this.#syncing !== undefined) await this.#syncing.catch(ignore)
    const cutting = cut()
    this.#cutting = cutting.catch(ignore)
    try {
      await cutting
      this.#forgetQueued()
    } catch (error) {
      if (this.failure === undefined) this.#fail(error, undefined)
      throw error
    } finally {
      this.#cutting = undefined
      this.cuts++
    }
  }

  /** What came since the cut was asked for begins where the log ended before: a roll would bring that end back. */
  #forgetQueued(): void {
    const { folder } = this.#options.place
    for (const gather of this.#queue.splice(0)) {
      if (gather.bytes === 0) gather.resolve()
      else gather.reject(new StorageError('ECANCELED', folder, 'the log was cut meanwhile'))
    }
    this.#plan.follow(this.#segments.active)
  }

  async #cutTo(offset: Offset): Promise<void> {
    this.endOffset = Math.min(this.endOffset, offset)
    this.startOffset = Math.min(this.startOffset, this.endOffset)
    await this.#ends(await this.#segments.cut(offset))
  }

  /** Throws everything away and begins anew at `offset`. */
  restartAt(offset: Offset): Promise<void> {
    return this.#withoutSync(() => this.#restartAt(offset))
  }

  async #restartAt(offset: Offset): Promise<void> {
    this.#restarting = offset
    this.startOffset = offset
    this.endOffset = offset
    this.nextOffset = offset
    await this.#segments.restart(offset)
    this.#epochs.clear()
    await this.#snapshots.removeAbove(-1)
    await this.#ends(offset)
    this.durableOffset = offset
    this.#restarting = undefined
  }

  async #ends(end: Offset): Promise<void> {
    const { fold } = this.#options
    this.durableOffset = Math.min(this.durableOffset, end)
    this.#writtenOffset = end
    this.endOffset = end
    this.nextOffset = end
    this.startOffset = Math.min(this.startOffset, end)
    this.#epochs.truncateFromEnd(end)
    await this.#snapshots.removeAbove(end)
    await this.#snapshots.removeBelow((this.segments[0] as Segment).baseOffset)
    await restoreFold({ fold, clean: false }, this.segments, this.#snapshots, end, end)
    // Before anything is appended: a recovery point above the cut would vouch for bytes that come later, a start hide them.
    await this.#options.wasCut?.()
  }

  /** Throws a StorageError once the log is closed. */
  refuseClosed(): void {
    if (this.#closed) throw new StorageError('ECANCELED', this.#options.place.folder, 'the log was closed meanwhile')
  }

  /** Nothing is under way any more and nothing will be. */
  async stop(): Promise<void> {
    await this.settled()
    this.#closed = true
    this.#cure.stop()
    this.#flushTimer?.cancel()
    await this.exclusive(() => Promise.resolve())
    await this.#syncing?.catch(ignore)
    await this.#background
  }
}
