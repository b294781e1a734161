import type { TopicConfig } from '#core/config/topic.ts'
import type { CompressionName } from '#records/batch.ts'
import type { ProducedOptions } from '#records/produced.ts'
import type { LogConfig } from '#storage/log-config.ts'

/** A topic's configuration in the forms in which the request path and the log want it. */
export interface Terms {
  readonly topic: TopicConfig
  readonly produced: Omit<ProducedOptions, 'now' | 'apiVersion'>
  readonly log: LogConfig
  readonly minInSync: number
  /** The codec that the topic demands, 'producer' for whatever comes. */
  readonly compressionType: CompressionName | 'producer'
  readonly compressionLevel: number | undefined
}

export function termsOf(topic: TopicConfig): Terms {
  const cleanupPolicy = new Set<'delete' | 'compact'>()
  if (topic.cleanupDelete) cleanupPolicy.add('delete')
  if (topic.cleanupCompact) cleanupPolicy.add('compact')
  const compressionType = topic.compressionType === 'uncompressed' ? 'none' : topic.compressionType
  return {
    topic,
    produced: {
      messageBytesMax: topic.maxMessageBytes,
      segmentBytes: topic.segmentBytes,
      timestampType: topic.timestampType,
      timestampBeforeMaxMs: topic.timestampBeforeMaxMs,
      timestampAfterMaxMs: topic.timestampAfterMaxMs,
      compacted: topic.cleanupCompact,
      // Damage that a right CRC hides is looked for where that is cheap; what is compressed stays closed.
      records: 'plain',
    },
    log: {
      segmentBytes: topic.segmentBytes,
      segmentMs: topic.segmentMs,
      segmentJitterMs: topic.segmentJitterMs,
      segmentIndexBytes: topic.segmentIndexBytes,
      indexIntervalBytes: topic.indexIntervalBytes,
      flushMessages: topic.flushMessages,
      flushMs: topic.flushMs,
      retentionMs: topic.retentionMs,
      retentionBytes: topic.retentionBytes,
      cleanupPolicy,
      fileDeleteDelayMs: topic.fileDeleteDelayMs,
    },
    minInSync: topic.minInsyncReplicas,
    compressionType,
    compressionLevel: levelOf(topic),
  }
}

function levelOf(topic: TopicConfig): number | undefined {
  switch (topic.compressionType) {
    case 'gzip':
      return topic.compressionGzipLevel
    case 'lz4':
      return topic.compressionLz4Level
    case 'zstd':
      return topic.compressionZstdLevel
    default:
      return undefined
  }
}
