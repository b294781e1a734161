import type { Millis, Offset } from '#base/units.ts'
import * as batch from '#records/batch.ts'
import { BatchBuilder, type BatchOptions } from '#records/builder.ts'
import type { Clock, Logger, Timer } from '#world/world.ts'
import type { AbortedTransaction, BatchFold, ProducerEntry } from '../batch-fold.ts'
import { Log, type LogOptions } from '../log.ts'
import { LOG_CONFIG_DEFAULT, type LogConfig } from '../log-config.ts'
import { MemoryDisk } from './memory-disk.ts'

/** Time that moves when it is told to. What is to run soon does so in the next microtask. */
export class ManualClock implements Clock {
  time: Millis = 1_700_000_000_000
  readonly #timers = new Set<{ readonly at: Millis; readonly run: () => void }>()

  now(): Millis {
    return this.time
  }

  monotonic(): Millis {
    return this.time
  }

  after(delay: Millis, run: () => void): Timer {
    const timer = { at: this.time + delay, run }
    this.#timers.add(timer)
    return { cancel: () => this.#timers.delete(timer) }
  }

  soon(run: () => void): void {
    queueMicrotask(run)
  }

  get timers(): number {
    return this.#timers.size
  }

  advance(ms: Millis): void {
    this.time += ms
    for (const timer of [...this.#timers].toSorted((a, b) => a.at - b.at)) {
      if (timer.at > this.time || !this.#timers.delete(timer)) continue
      timer.run()
    }
  }
}

/** Keeps the lines, so that a test can ask for them. */
export class LinesLogger implements Logger {
  readonly lines: string[] = []

  #add(level: string, fields: object, message: string): void {
    this.lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  }

  debug(fields: object, message: string): void {
    this.#add('debug', fields, message)
  }
  info(fields: object, message: string): void {
    this.#add('info', fields, message)
  }
  warn(fields: object, message: string): void {
    this.#add('warn', fields, message)
  }
  error(fields: object, message: string): void {
    this.#add('error', fields, message)
  }
  child(): Logger {
    return this
  }
}

/** Keeps the last batch of every producer, and takes every abort marker for the end of a transaction of one batch. */
export class LastBatchFold implements BatchFold {
  readonly producers = new Map<number, ProducerEntry>()
  applied = 0

  restore(entries: readonly ProducerEntry[]): void {
    this.producers.clear()
    for (const entry of entries) this.producers.set(entry.producerId, entry)
  }

  apply(buffer: Buffer, at: number): AbortedTransaction | undefined {
    this.applied++
    const producerId = batch.producerId(buffer, at)
    if (producerId < 0) return undefined
    const lastOffset = batch.lastOffset(buffer, at)
    if (batch.isControl(buffer, at)) {
      return { producerId, firstOffset: lastOffset - 1, lastOffset, lastStableOffset: lastOffset - 1 }
    }
    this.producers.set(producerId, {
      producerId,
      epoch: batch.producerEpoch(buffer, at),
      lastSequence: batch.lastSequence(buffer, at),
      lastOffset,
      offsetDelta: batch.lastOffsetDelta(buffer, at),
      timestamp: batch.maxTimestamp(buffer, at),
      coordinatorEpoch: -1,
      currentTxnFirstOffset: -1,
    })
    return undefined
  }

  snapshot(): readonly ProducerEntry[] {
    return [...this.producers.values()].toSorted((a, b) => a.producerId - b.producerId)
  }
}

export interface TestRecord {
  readonly timestamp: Millis
  readonly value: string
}

export function buildBatch(baseOffset: Offset, records: readonly TestRecord[], options: BatchOptions = {}): Buffer {
  const builder = new BatchBuilder({ baseOffset, leaderEpoch: 0, ...options })
  for (const { timestamp, value } of records) builder.append(timestamp, null, Buffer.from(value))
  return builder.build()
}

/** A batch of `count` records of about `size` bytes each. */
export function plainBatch(
  baseOffset: Offset,
  count: number,
  size: number,
  timestamp: Millis,
  options: BatchOptions = {},
): Buffer {
  const records = Array.from({ length: count }, (_, index) => ({
    timestamp,
    value: `${baseOffset + index}`.padEnd(size, '.'),
  }))
  return buildBatch(baseOffset, records, options)
}

export interface Rig {
  readonly disk: MemoryDisk
  readonly clock: ManualClock
  readonly logger: LinesLogger
  readonly fold: LastBatchFold
  readonly log: Log
}

export const TEST_FOLDER = '/data/topic-0'

export async function openRig(
  config: Partial<LogConfig> = {},
  options: Partial<LogOptions> & { readonly disk?: MemoryDisk } = {},
): Promise<Rig> {
  const disk = options.disk ?? new MemoryDisk()
  const clock = (options.clock as ManualClock | undefined) ?? new ManualClock()
  const logger = new LinesLogger()
  const fold = new LastBatchFold()
  const log = await Log.open({
    folder: TEST_FOLDER,
    config: { ...LOG_CONFIG_DEFAULT, ...config },
    recoveryPoint: 0,
    clean: true,
    startOffset: 0,
    ...options,
    disk,
    clock,
    log: logger,
    fold,
  })
  return { disk, clock, logger, fold, log }
}

/** Appends as a leader does: the log first, then the fold. */
export function appendTo({ log, fold }: Pick<Rig, 'log' | 'fold'>, bytes: Buffer): Promise<void> {
  const written = log.append(bytes)
  for (const at of batch.batchesOf(bytes)) fold.apply(bytes, at)
  return written
}

/** The same, within the append where that can be. */
export function appendNowTo({ log, fold }: Pick<Rig, 'log' | 'fold'>, bytes: Buffer): Promise<void> | undefined {
  const written = log.appendNow(bytes)
  for (const at of batch.batchesOf(bytes)) fold.apply(bytes, at)
  return written
}

/** All bytes from `from` to the end, read in pieces. */
export async function readAll(log: Log, from: Offset = log.startOffset, pieceBytes = 10_000): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let offset = from; ; ) {
    const range = await log.read(offset, pieceBytes, log.endOffset)
    if (range === undefined) return Buffer.concat(pieces)
    pieces.push(await log.readBytes(range))
    offset = range.nextOffset
  }
}

export function offsetsIn(bytes: Buffer): number[] {
  const offsets: number[] = []
  for (const at of batch.batchesOf(bytes)) {
    for (let offset = batch.baseOffset(bytes, at); offset <= batch.lastOffset(bytes, at); offset++) offsets.push(offset)
  }
  return offsets
}
