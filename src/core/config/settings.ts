import type { BrokerConfigs } from './broker-configs.ts'

/**
 * What the parts of a broker read of its configuration, by their own names. Made anew when the configuration changes.
 * Limits without a limit are Infinity or -1 as the documentation of the key says.
 */
export interface NetworkSettings {
  readonly requestBytesMax: number
  readonly listenBacklog: number
  readonly receiveBufferBytes: number
  readonly sendBufferBytes: number
  readonly connectionsMax: number
  readonly connectionsPerIpMax: number
  /** Host or address to its own limit. */
  readonly connectionsPerIpOverrides: ReadonlyMap<string, number>
  /** Infinity: never. */
  readonly idleMs: number
  /** Bytes of all requests in work; Infinity is no limit. */
  readonly queuedRequestBytesMax: number
}

export function networkSettings(broker: BrokerConfigs): NetworkSettings {
  const idleMs = broker.number('connections.max.idle.ms')
  const queued = broker.number('queued.max.request.bytes')
  return {
    requestBytesMax: broker.number('socket.request.max.bytes'),
    listenBacklog: broker.number('socket.listen.backlog.size'),
    receiveBufferBytes: broker.number('socket.receive.buffer.bytes'),
    sendBufferBytes: broker.number('socket.send.buffer.bytes'),
    connectionsMax: broker.number('max.connections'),
    connectionsPerIpMax: broker.number('max.connections.per.ip'),
    connectionsPerIpOverrides: ipOverrides(broker.string('max.connections.per.ip.overrides') ?? ''),
    idleMs: idleMs < 0 ? Number.POSITIVE_INFINITY : idleMs,
    queuedRequestBytesMax: queued <= 0 ? Number.POSITIVE_INFINITY : queued,
  }
}

/** `host:count,host:count`; a host may be an IPv6 address, so the last colon counts. */
export function ipOverrides(text: string): ReadonlyMap<string, number> {
  const overrides = new Map<string, number>()
  for (const pair of text.split(',').map(item => item.trim())) {
    const at = pair.lastIndexOf(':')
    if (at > 0 && /^\d+$/.test(pair.slice(at + 1))) overrides.set(pair.slice(0, at), Number(pair.slice(at + 1)))
  }
  return overrides
}

export interface TopicDefaults {
  readonly autoCreate: boolean
  readonly deleteEnable: boolean
  readonly partitions: number
  readonly replicationFactor: number
}

export function topicDefaults(broker: BrokerConfigs): TopicDefaults {
  return {
    autoCreate: broker.boolean('auto.create.topics.enable'),
    deleteEnable: broker.boolean('delete.topic.enable'),
    partitions: broker.number('num.partitions'),
    replicationFactor: broker.number('default.replication.factor'),
  }
}

export interface ClassicGroupSettings {
  readonly sessionTimeoutMinMs: number
  readonly sessionTimeoutMaxMs: number
  readonly initialRebalanceDelayMs: number
  readonly membersMax: number
}

export function classicGroupSettings(broker: BrokerConfigs): ClassicGroupSettings {
  return {
    sessionTimeoutMinMs: broker.number('group.min.session.timeout.ms'),
    sessionTimeoutMaxMs: broker.number('group.max.session.timeout.ms'),
    initialRebalanceDelayMs: broker.number('group.initial.rebalance.delay.ms'),
    membersMax: broker.number('group.max.size'),
  }
}

export interface OffsetsSettings {
  readonly metadataBytesMax: number
  readonly retentionMs: number
  readonly retentionCheckIntervalMs: number
  readonly commitTimeoutMs: number
  readonly partitions: number
  readonly replicationFactor: number
  readonly segmentBytes: number
  readonly compressionCodec: number
}

export function offsetsSettings(broker: BrokerConfigs): OffsetsSettings {
  return {
    metadataBytesMax: broker.number('offset.metadata.max.bytes'),
    retentionMs: broker.number('offsets.retention.minutes') * 60_000,
    retentionCheckIntervalMs: broker.number('offsets.retention.check.interval.ms'),
    commitTimeoutMs: broker.number('offsets.commit.timeout.ms'),
    partitions: broker.number('offsets.topic.num.partitions'),
    replicationFactor: broker.number('offsets.topic.replication.factor'),
    segmentBytes: broker.number('offsets.topic.segment.bytes'),
    compressionCodec: broker.number('offsets.topic.compression.codec'),
  }
}

export interface LogSettings {
  readonly retentionCheckIntervalMs: number
  readonly flushCheckIntervalMs: number
  readonly recoveryPointIntervalMs: number
  readonly startOffsetIntervalMs: number
  readonly highWatermarkIntervalMs: number
  readonly recoveriesPerDir: number
  readonly firstTaskDelayMs: number
  readonly producerExpirationMs: number
  readonly producerExpirationCheckIntervalMs: number
}

export function logSettings(broker: BrokerConfigs): LogSettings {
  return {
    retentionCheckIntervalMs: broker.number('log.retention.check.interval.ms'),
    flushCheckIntervalMs: broker.number('log.flush.scheduler.interval.ms'),
    recoveryPointIntervalMs: broker.number('log.flush.offset.checkpoint.interval.ms'),
    startOffsetIntervalMs: broker.number('log.flush.start.offset.checkpoint.interval.ms'),
    highWatermarkIntervalMs: broker.number('replica.high.watermark.checkpoint.interval.ms'),
    recoveriesPerDir: broker.number('num.recovery.threads.per.data.dir'),
    firstTaskDelayMs: broker.number('log.initial.task.delay.ms'),
    producerExpirationMs: broker.number('producer.id.expiration.ms'),
    producerExpirationCheckIntervalMs: broker.number('producer.id.expiration.check.interval.ms'),
  }
}

export interface FetchSettings {
  readonly bytesMax: number
  readonly sessionsMax: number
}

export function fetchSettings(broker: BrokerConfigs): FetchSettings {
  return {
    bytesMax: broker.number('fetch.max.bytes'),
    sessionsMax: broker.number('max.incremental.fetch.session.cache.slots'),
  }
}

/**
 * Copies of an internal topic: what is configured, but never more than there are brokers, so that a single node works
 * with Kafka's default of 3. Kafka waits for more brokers instead; a cluster that grows keeps the copies it began with.
 */
export function internalReplicationFactor(configured: number, liveBrokers: number): number {
  return Math.max(1, Math.min(configured, liveBrokers))
}

/** In-sync replicas that an internal topic needs: what is configured, but one fewer than its copies, so that one may fail. */
export function internalMinInsync(configured: number, replicationFactor: number): number {
  return Math.max(1, Math.min(configured, replicationFactor - 1))
}
