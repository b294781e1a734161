import { assert } from '#base/assert.ts'
import type { BrokerConfigs } from './broker-configs.ts'
import {
  atLeast,
  between,
  boolean,
  type ConfigDefinition,
  type ConfigProblem,
  type ConfigTable,
  checkedBy,
  checkValue,
  double,
  int,
  internal,
  LONG_MAX,
  list,
  listOf,
  long,
  oneOf,
  standsFor,
  string,
  tableOf,
  validateEach,
  works,
} from './definition.ts'
import type { ConfigValue } from './value.ts'

const COMPRESSIONS = ['uncompressed', 'zstd', 'lz4', 'snappy', 'gzip', 'producer'] as const
export const gzipLevel = checkedBy('[1,...,9] or -1', ({ value }) =>
  typeof value === 'number' && (value === -1 || (value >= 1 && value <= 9)) ? undefined : 'must be from 1 to 9, or -1',
)
export const compressionType = oneOf(...COMPRESSIONS)

const throttledReplicas = checkedBy('[partitionId]:[brokerId],[partitionId]:[brokerId],...', ({ value, text }) =>
  text === '*' || (Array.isArray(value) && value.every(item => /^\d+:\d+$/.test(item)))
    ? undefined
    : 'must be * for all replicas, or a list of partition:broker pairs such as 0:1,1:2',
)

const dynamic = { update: 'cluster-wide' } as const

/** Every topic configuration of 4.3. A topic's own value wins; else the broker's chain of synonyms decides. */
export const TOPIC_CONFIGS: ConfigTable = tableOf(
  ...[
    list(
      'cleanup.policy',
      'delete',
      'What happens to old records: `delete` drops whole segments beyond the retention limits, `compact` is to keep the newest record of each key, and as long as there is no compaction keeps every record; both may be given. An empty list keeps everything.',
      listOf('compact', 'delete'),
      standsFor('log.cleanup.policy'),
      works,
    ),
    int(
      'compression.gzip.level',
      -1,
      'Effort of gzip when the broker compresses, 1 (fast) to 9 (small); -1 leaves it to the library.',
      gzipLevel,
      standsFor('compression.gzip.level'),
      works,
    ),
    int(
      'compression.lz4.level',
      9,
      'Effort of lz4 when the broker compresses, 1 (fast) to 17 (small).',
      between(1, 17),
      standsFor('compression.lz4.level'),
    ),
    string(
      'compression.type',
      'producer',
      'Codec of the batches on disk. `producer` keeps what the producer sent, `uncompressed` unpacks it, any other name re-packs batches that came in another codec.',
      compressionType,
      standsFor('compression.type'),
      works,
    ),
    int(
      'compression.zstd.level',
      3,
      'Effort of zstd when the broker compresses, -131072 (fast) to 22 (small).',
      between(-131072, 22),
      standsFor('compression.zstd.level'),
      works,
    ),
    long(
      'delete.retention.ms',
      86400000,
      'Milliseconds for which compaction keeps the marker of a deleted key, so that a reader who started from the beginning within that time learns of the deletion.',
      atLeast(0),
      standsFor('log.cleaner.delete.retention.ms'),
    ),
    long(
      'file.delete.delay.ms',
      60000,
      'Milliseconds between a segment leaving the log and its files leaving the disk.',
      atLeast(0),
      standsFor('log.segment.delete.delay.ms'),
      works,
    ),
    long(
      'flush.messages',
      LONG_MAX,
      'Records after which the log is synced to the disk; 1 syncs before every acknowledgement. Without a limit the operating system decides, and replication protects what it has not written yet.',
      atLeast(1),
      standsFor('log.flush.interval.messages'),
      works,
    ),
    long(
      'flush.ms',
      LONG_MAX,
      'Milliseconds after which appended records are synced to the disk.',
      atLeast(0),
      standsFor('log.flush.interval.ms', 'log.flush.scheduler.interval.ms'),
      works,
    ),
    list(
      'follower.replication.throttled.replicas',
      '',
      'Replicas whose fetching is held to the follower throttle: pairs `partition:broker`, or `*` for all.',
      throttledReplicas,
      works,
    ),
    int(
      'index.interval.bytes',
      4096,
      'Bytes of log between two entries of the offset index; fewer makes look-ups touch less of the log and the index larger.',
      atLeast(0),
      standsFor('log.index.interval.bytes'),
      works,
    ),
    int(
      'internal.segment.bytes',
      null,
      'Bytes of a segment, without the lower limit of `segment.bytes`. For tests.',
      internal,
      works,
    ),
    list(
      'leader.replication.throttled.replicas',
      '',
      'Replicas whose serving to followers is held to the leader throttle: pairs `partition:broker`, or `*` for all.',
      throttledReplicas,
      works,
    ),
    long(
      'local.retention.bytes',
      -2,
      'Bytes of a tiered partition that stay on the local disk; -2 follows `retention.bytes`, -1 is no limit.',
      atLeast(-2),
      standsFor('log.local.retention.bytes'),
    ),
    long(
      'local.retention.ms',
      -2,
      'Milliseconds for which segments of a tiered partition stay on the local disk; -2 follows `retention.ms`, -1 is no limit.',
      atLeast(-2),
      standsFor('log.local.retention.ms'),
    ),
    long(
      'max.compaction.lag.ms',
      LONG_MAX,
      'Milliseconds after which a record must have been compacted, however clean the log is.',
      atLeast(1),
      standsFor('log.cleaner.max.compaction.lag.ms'),
    ),
    int(
      'max.message.bytes',
      1048588,
      'Largest record batch, in bytes as it is stored (compressed where it is compressed).',
      atLeast(0),
      standsFor('message.max.bytes'),
      works,
    ),
    long(
      'message.timestamp.after.max.ms',
      3600000,
      "Milliseconds by which a record's own time may be ahead of the broker's clock; beyond, the batch is refused. Without effect for LogAppendTime.",
      atLeast(0),
      standsFor('log.message.timestamp.after.max.ms'),
      works,
    ),
    long(
      'message.timestamp.before.max.ms',
      LONG_MAX,
      "Milliseconds by which a record's own time may be behind the broker's clock; beyond, the batch is refused. Without effect for LogAppendTime.",
      atLeast(0),
      standsFor('log.message.timestamp.before.max.ms'),
      works,
    ),
    string(
      'message.timestamp.type',
      'CreateTime',
      "Whose time records carry: `CreateTime` the producer's, `LogAppendTime` the broker's at the append.",
      oneOf('CreateTime', 'LogAppendTime'),
      standsFor('log.message.timestamp.type'),
      works,
    ),
    double(
      'min.cleanable.dirty.ratio',
      0.5,
      'Share of the log, from 0 to 1, that must be uncompacted before compaction is worth a pass.',
      between(0, 1),
      standsFor('log.cleaner.min.cleanable.ratio'),
    ),
    long(
      'min.compaction.lag.ms',
      0,
      'Milliseconds for which compaction leaves a record alone.',
      atLeast(0),
      standsFor('log.cleaner.min.compaction.lag.ms'),
    ),
    int(
      'min.insync.replicas',
      1,
      'Replicas that must be in sync before a write with acks=all is taken; below, producers get NOT_ENOUGH_REPLICAS.',
      atLeast(1),
      standsFor('min.insync.replicas'),
      works,
    ),
    boolean(
      'preallocate',
      false,
      'Reserve the whole space of a segment on the disk when it is opened.',
      standsFor('log.preallocate'),
    ),
    boolean(
      'remote.log.copy.disable',
      false,
      'Make the tier read-only: segments that are there stay readable, none is added.',
    ),
    boolean(
      'remote.log.delete.on.disable',
      false,
      'Allow the tiered part of the log to be deleted when `remote.storage.enable` is turned off.',
    ),
    boolean(
      'remote.storage.enable',
      false,
      'Copy closed segments to the remote tier. Needs `remote.log.storage.system.enable` on the brokers and a log that is not compacted.',
    ),
    long(
      'retention.bytes',
      -1,
      'Bytes of one partition beyond which its oldest segments are deleted; -1 is no limit. The limit counts per partition.',
      standsFor('log.retention.bytes'),
      works,
    ),
    long(
      'retention.ms',
      604800000,
      'Milliseconds after its newest record at which a segment is deleted; -1 is no limit.',
      atLeast(-1),
      standsFor('log.retention.ms', 'log.retention.minutes', 'log.retention.hours'),
      works,
    ),
    int(
      'segment.bytes',
      1073741824,
      'Bytes at which a new segment begins. Retention and compaction work on whole, closed segments.',
      atLeast(1048576),
      standsFor('log.segment.bytes'),
      works,
    ),
    int(
      'segment.index.bytes',
      10485760,
      'Largest index of one segment, in bytes; a full index begins a new segment.',
      atLeast(4),
      standsFor('log.index.size.max.bytes'),
      works,
    ),
    long(
      'segment.jitter.ms',
      0,
      'Milliseconds, drawn at random up to this, by which a segment begins before `segment.ms`, so that not all roll at once.',
      atLeast(0),
      standsFor('log.roll.jitter.ms', 'log.roll.jitter.hours'),
      works,
    ),
    long(
      'segment.ms',
      604800000,
      'Milliseconds after which a new segment begins even though the old one is not full.',
      atLeast(1),
      standsFor('log.roll.ms', 'log.roll.hours'),
      works,
    ),
    boolean(
      'unclean.leader.election.enable',
      false,
      'Let a replica that was not in sync become leader when no other is left: the partition works again and may lose records.',
      standsFor('unclean.leader.election.enable'),
      works,
    ),
  ].map(definition => ({ ...definition, ...dynamic }) as ConfigDefinition),
)

export type TimestampType = 'CreateTime' | 'LogAppendTime'
export type TopicCompression = (typeof COMPRESSIONS)[number]

/** What a log, its partition and its coordinator need to know about a topic. `UNLIMITED` (Infinity) and -1 as in the docs. */
export interface TopicConfig {
  readonly cleanupCompact: boolean
  readonly cleanupDelete: boolean
  readonly compressionType: TopicCompression
  readonly compressionGzipLevel: number
  readonly compressionLz4Level: number
  readonly compressionZstdLevel: number
  readonly deleteRetentionMs: number
  readonly fileDeleteDelayMs: number
  readonly flushMessages: number
  readonly flushMs: number
  readonly followerThrottledReplicas: readonly string[]
  readonly leaderThrottledReplicas: readonly string[]
  readonly indexIntervalBytes: number
  /** -1: no limit. With -2 in the configuration it is the total retention already. */
  readonly localRetentionBytes: number
  readonly localRetentionMs: number
  readonly maxCompactionLagMs: number
  readonly minCompactionLagMs: number
  readonly maxMessageBytes: number
  readonly timestampAfterMaxMs: number
  readonly timestampBeforeMaxMs: number
  readonly timestampType: TimestampType
  readonly minCleanableDirtyRatio: number
  readonly minInsyncReplicas: number
  readonly preallocate: boolean
  readonly remoteCopyDisable: boolean
  readonly remoteDeleteOnDisable: boolean
  readonly remoteStorageEnable: boolean
  /** -1: no limit. */
  readonly retentionBytes: number
  /** -1: no limit. */
  readonly retentionMs: number
  readonly segmentBytes: number
  readonly segmentIndexBytes: number
  readonly segmentJitterMs: number
  readonly segmentMs: number
  readonly uncleanLeaderElectionEnable: boolean
}

/**
 * The text that holds for a topic: its own, else the broker's. Chains of units (`log.retention.hours`) come out in the
 * topic's unit. null only for `internal.segment.bytes`.
 */
export function effectiveTopicText(
  definition: ConfigDefinition,
  overrides: ReadonlyMap<string, string>,
  broker: BrokerConfigs,
): string | null {
  const own = overrides.get(definition.name)
  if (own !== undefined) return own
  if (definition.synonyms === undefined) return definition.default
  return broker.topicDefault(definition.synonyms) ?? definition.default
}

/** What holds for a topic with these overrides. An override that no longer is valid (an older rule let it in) counts as absent. */
export function resolveTopic(overrides: ReadonlyMap<string, string>, broker: BrokerConfigs): TopicConfig {
  const value = (name: string): ConfigValue => {
    const definition = TOPIC_CONFIGS.get(name)
    assert(definition !== undefined, `no such topic configuration: ${name}`)
    const text = effectiveTopicText(definition, overrides, broker)
    if (text === null) return null
    const parsed = checkValue(definition, text)
    if ('value' in parsed) return parsed.value
    const byDefault = checkValue(definition, broker.topicDefault(definition.synonyms ?? []) ?? definition.default ?? '')
    return 'value' in byDefault ? byDefault.value : null
  }
  const number = (name: string): number => Number(value(name))
  const flag = (name: string): boolean => value(name) === true
  const items = (name: string): readonly string[] => (value(name) as readonly string[] | null) ?? []
  const policies = items('cleanup.policy')
  const retentionBytes = number('retention.bytes')
  const retentionMs = number('retention.ms')
  const localRetentionBytes = number('local.retention.bytes')
  const localRetentionMs = number('local.retention.ms')
  return {
    cleanupCompact: policies.includes('compact'),
    cleanupDelete: policies.includes('delete'),
    compressionType: value('compression.type') as TopicCompression,
    compressionGzipLevel: number('compression.gzip.level'),
    compressionLz4Level: number('compression.lz4.level'),
    compressionZstdLevel: number('compression.zstd.level'),
    deleteRetentionMs: number('delete.retention.ms'),
    fileDeleteDelayMs: number('file.delete.delay.ms'),
    flushMessages: number('flush.messages'),
    flushMs: number('flush.ms'),
    followerThrottledReplicas: items('follower.replication.throttled.replicas'),
    leaderThrottledReplicas: items('leader.replication.throttled.replicas'),
    indexIntervalBytes: number('index.interval.bytes'),
    localRetentionBytes: localRetentionBytes === -2 ? retentionBytes : localRetentionBytes,
    localRetentionMs: localRetentionMs === -2 ? retentionMs : localRetentionMs,
    maxCompactionLagMs: number('max.compaction.lag.ms'),
    minCompactionLagMs: number('min.compaction.lag.ms'),
    maxMessageBytes: number('max.message.bytes'),
    timestampAfterMaxMs: number('message.timestamp.after.max.ms'),
    timestampBeforeMaxMs: number('message.timestamp.before.max.ms'),
    timestampType: value('message.timestamp.type') as TimestampType,
    minCleanableDirtyRatio: number('min.cleanable.dirty.ratio'),
    minInsyncReplicas: number('min.insync.replicas'),
    preallocate: flag('preallocate'),
    remoteCopyDisable: flag('remote.log.copy.disable'),
    remoteDeleteOnDisable: flag('remote.log.delete.on.disable'),
    remoteStorageEnable: flag('remote.storage.enable'),
    retentionBytes,
    retentionMs,
    segmentBytes: Number(value('internal.segment.bytes') ?? value('segment.bytes')),
    segmentIndexBytes: number('segment.index.bytes'),
    segmentJitterMs: number('segment.jitter.ms'),
    segmentMs: number('segment.ms'),
    uncleanLeaderElectionEnable: flag('unclean.leader.election.enable'),
  }
}

/** Where none of them is set, the rules between several settings are those of what the topic inherits. */
const RULED_TOGETHER = ['min.compaction.lag.ms', 'max.compaction.lag.ms', 'remote.storage.enable']
/** Some ten thousand topics may be altered in one request. */
const inheritedOf = new WeakMap<BrokerConfigs, TopicConfig>()

function inherited(broker: BrokerConfigs): TopicConfig {
  const config = inheritedOf.get(broker) ?? resolveTopic(new Map(), broker)
  inheritedOf.set(broker, config)
  return config
}

/**
 * Checks all overrides of one topic, as they would stand, each by itself and together. `before` are those that stand now:
 * leaving the tier depends on being in it. All problems, not the first only; each is INVALID_CONFIG.
 */
export function validateTopicConfigs(
  entries: ReadonlyMap<string, string>,
  broker: BrokerConfigs,
  before: ReadonlyMap<string, string> = new Map(),
): ConfigProblem[] {
  const problems = validateEach('topic', TOPIC_CONFIGS, entries)
  if (problems.length > 0) return problems
  const together = RULED_TOGETHER.some(name => entries.has(name) || before.has(name))
  const config = together ? resolveTopic(entries, broker) : inherited(broker)
  const { minCompactionLagMs, maxCompactionLagMs } = config
  if (minCompactionLagMs > maxCompactionLagMs)
    problems.push({
      name: 'min.compaction.lag.ms',
      message: `min.compaction.lag.ms (${minCompactionLagMs}) cannot be larger than max.compaction.lag.ms (${maxCompactionLagMs}).`,
    })
  problems.push(...tierProblems(config, entries, broker, before))
  return problems
}

/** The rules of tiering (KIP-405, KIP-950); none applies to a topic that stays out of the tier. */
function tierProblems(
  config: TopicConfig,
  entries: ReadonlyMap<string, string>,
  broker: BrokerConfigs,
  before: ReadonlyMap<string, string>,
): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  if (!config.remoteStorageEnable) {
    const leaves = before.get('remote.storage.enable')?.trim().toLowerCase() === 'true'
    if (leaves && !config.remoteDeleteOnDisable)
      problems.push({
        name: 'remote.storage.enable',
        message:
          'remote.storage.enable cannot be turned off while remote.log.delete.on.disable is false: set that to true to delete the tiered part of the log.',
      })
    return problems
  }
  const enable = (message: string) => problems.push({ name: 'remote.storage.enable', message })
  if (!broker.boolean('remote.log.storage.system.enable'))
    enable(
      'remote.storage.enable cannot be true: this cluster runs without tiered storage (remote.log.storage.system.enable).',
    )
  if (!config.cleanupDelete || config.cleanupCompact)
    enable('remote.storage.enable cannot be true for a compacted topic: cleanup.policy must be delete.')
  if (config.remoteDeleteOnDisable && entries.has('remote.log.delete.on.disable'))
    problems.push({
      name: 'remote.log.delete.on.disable',
      message: 'remote.log.delete.on.disable cannot be true while remote.storage.enable is true.',
    })
  problems.push(
    ...localProblems('ms', config.localRetentionMs, config.retentionMs, config.remoteCopyDisable, entries),
    ...localProblems('bytes', config.localRetentionBytes, config.retentionBytes, config.remoteCopyDisable, entries),
  )
  return problems
}

function localProblems(
  unit: 'ms' | 'bytes',
  local: number,
  total: number,
  copyDisabled: boolean,
  entries: ReadonlyMap<string, string>,
): ConfigProblem[] {
  const name = `local.retention.${unit}`
  const own = entries.get(name)?.trim()
  if (copyDisabled && own !== undefined && own !== '-2' && local !== total)
    return [
      { name, message: `${name} must be -2 or the total retention (${total}) while remote.log.copy.disable is true.` },
    ]
  if (total === -1 || (local !== -1 && local <= total)) return []
  return [{ name, message: `${name} (${local}) cannot be larger than retention.${unit} (${total}).` }]
}
