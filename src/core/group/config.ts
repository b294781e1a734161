import { INT32_MAX, type Millis } from '#base/units.ts'
import type { BrokerConfigs } from '../config/broker-configs.ts'

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

export function groupConfigOf(configs: BrokerConfigs): GroupConfig {
  return {
    minSessionTimeoutMs: configs.number('group.min.session.timeout.ms'),
    maxSessionTimeoutMs: configs.number('group.max.session.timeout.ms'),
    initialRebalanceDelayMs: configs.number('group.initial.rebalance.delay.ms'),
    maxSize: configs.number('group.max.size'),
    offsetMetadataMaxLength: configs.number('offset.metadata.max.bytes'),
    offsetsRetentionMs: configs.number('offsets.retention.minutes') * 60_000,
    offsetsRetentionCheckIntervalMs: configs.number('offsets.retention.check.interval.ms'),
    recordBytesMax: configs.number('message.max.bytes') - 1024,
  }
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

/** Tombstones of one sweep for offsets that expired or lost their topic. The rest follows in the next tick. */
export const EXPIRED_ENTRIES_MAX = 1_000

/** Groups times topics that one step after a deletion of topics looks at; groups that one tick of the sweep does. */
export const DELETION_LOOKS_MAX = 10_000

/** What a string of the wire takes at most, in UTF-8. */
export const STRING_BYTES_MAX = 32_767
