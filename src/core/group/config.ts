import { INT32_MAX, type Millis } from '#base/units.ts'

/** What a broker's configuration says about groups. */
export interface GroupConfig {
  /** group.min.session.timeout.ms */
  readonly minSessionTimeoutMs: Millis
  /** group.max.session.timeout.ms */
  readonly maxSessionTimeoutMs: Millis
  /** group.initial.rebalance.delay.ms */
  readonly initialRebalanceDelayMs: Millis
  /** group.max.size */
  readonly maxSize: number
  /** offset.metadata.max.bytes; counted in UTF-16 units, as Kafka does. */
  readonly offsetMetadataMaxLength: number
  /** offsets.retention.minutes, in milliseconds. */
  readonly offsetsRetentionMs: Millis
  /** offsets.retention.check.interval.ms */
  readonly offsetsRetentionCheckIntervalMs: Millis
  /** What the value of one record may take: max.message.bytes of `__consumer_offsets`, without a batch's and a record's frame. */
  readonly recordBytesMax: number
}

export const DEFAULT_GROUP_CONFIG: GroupConfig = {
  minSessionTimeoutMs: 6_000,
  maxSessionTimeoutMs: 1_800_000,
  initialRebalanceDelayMs: 3_000,
  maxSize: INT32_MAX,
  offsetMetadataMaxLength: 4_096,
  offsetsRetentionMs: 10_080 * 60_000,
  offsetsRetentionCheckIntervalMs: 600_000,
  recordBytesMax: 1_048_588 - 1_024,
}

/** How long a member whose id no client has yet (its first JoinGroup is waiting) is kept. Fixed in Kafka as well. */
export const NEW_MEMBER_JOIN_TIMEOUT_MS: Millis = 300_000

/** Ids that were given out with MEMBER_ID_REQUIRED and not yet used, per group. They are not bounded by group.max.size. */
export const PENDING_MEMBERS_MAX = 10_000

/** Tombstones of one sweep for expired offsets. The rest follows in the next tick. */
export const EXPIRED_ENTRIES_MAX = 1_000

/** What a string of the wire takes at most, in UTF-8. */
export const STRING_BYTES_MAX = 32_767
