import { GiB, INT32_MAX, MiB, type Millis } from '#base/units.ts'

/**
 * The topic configurations that the log engine obeys, as Kafka names and means them (dots become camel case, units stay
 * last). Replaced as a whole, at any time, with `Log.configure`.
 */
export interface LogConfig {
  readonly segmentBytes: number
  readonly segmentMs: Millis
  readonly segmentJitterMs: Millis
  readonly segmentIndexBytes: number
  readonly indexIntervalBytes: number
  /** An append is acknowledged only after an fsync once this many records are unsynced; Infinity leaves it to the system. */
  readonly flushMessages: number
  readonly flushMs: Millis
  /** -1 keeps records for ever. */
  readonly retentionMs: Millis
  /** -1 keeps any size. */
  readonly retentionBytes: number
  /** Empty: nothing is deleted but by DeleteRecords (legal from 4.2). */
  readonly cleanupPolicy: ReadonlySet<'delete' | 'compact'>
  readonly fileDeleteDelayMs: Millis
}

/** Kafka 4.3's defaults. */
export const LOG_CONFIG_DEFAULT: LogConfig = {
  segmentBytes: GiB,
  segmentMs: 7 * 24 * 3_600_000,
  segmentJitterMs: 0,
  segmentIndexBytes: 10 * MiB,
  indexIntervalBytes: 4096,
  flushMessages: Number.POSITIVE_INFINITY,
  flushMs: Number.POSITIVE_INFINITY,
  retentionMs: 7 * 24 * 3_600_000,
  retentionBytes: -1,
  cleanupPolicy: new Set(['delete']),
  fileDeleteDelayMs: 60_000,
}

/** No file may be longer: positions in Kafka's indexes are int32. */
export const SEGMENT_BYTES_MAX = INT32_MAX
