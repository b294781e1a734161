import { Partition, type ProduceToken } from '#broker/partitions/partition.ts'
import { ProducerIds } from '#broker/producer-ids.ts'
import { GroupShard } from '#core/group/shard.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import type { FoldedRecord } from '#core/metadata/record.ts'
import { OFFSETS_TOPIC } from '#core/metadata/topic-name.ts'
import { type LeaderEffect, PartitionLeader } from '#core/partition/leader.ts'
import { ProducerStates } from '#core/partition/producers.ts'
import { LogFolder } from '#storage/log-folder.ts'
import { replace } from './replace.ts'

/** A deliberately broken build: what is changed in the product while a run lasts, or in the machine that it runs on. */
export interface NodeMutant {
  /** Breaks it, and returns what mends it again. */
  readonly patch?: () => () => void
  /** The disk says that it synced and has not. */
  readonly syncLies?: boolean
  /** A process that dies takes with it what it had written, as if the power had gone. */
  readonly crashesLose?: boolean
}

/** An image that takes no notice of some records. */
function ignoring(unwanted: (record: FoldedRecord) => boolean): () => () => void {
  return () =>
    replace(
      MetadataImage.prototype,
      'apply',
      original =>
        function (this: MetadataImage, record, offset, epoch) {
          if (!unwanted(record)) original.call(this, record, offset, epoch)
        },
    )
}

export const NODE_MUTANTS: Readonly<Record<string, NodeMutant>> = {
  'sync-lies': { syncLies: true },
  'crash-loses-writes': { crashesLose: true },
  /** Answers before the log has it. */
  'ack-early': {
    patch: () =>
      replace(
        PartitionLeader.prototype,
        'step',
        original =>
          function (this: PartitionLeader<unknown>, event, now) {
            return original.call(this, event.kind === 'produce' ? { ...event, acks: 0 } : event, now)
          },
      ),
  },
  /** The high watermark runs ahead of what is written. */
  'high-watermark-ahead': {
    patch: () =>
      replace(
        PartitionLeader.prototype,
        'step',
        original =>
          function (this: PartitionLeader<unknown>, event, now): readonly LeaderEffect<unknown>[] {
            const effects = original.call(this, event, now)
            if (event.kind !== 'produce') return effects
            return [...effects, { kind: 'highWatermark', offset: this.nextOffset + 1 }]
          },
      ),
  },
  /** Knows no producers after a restart. */
  'producers-forgotten': {
    patch: () => {
      const undo = replace(ProducerStates.prototype, 'restore', () => () => {})
      const undoApply = replace(ProducerStates.prototype, 'apply', () => () => {})
      return () => {
        undo()
        undoApply()
      }
    },
  },
  /** Takes a repeat for a new batch. */
  'repeats-written': {
    patch: () =>
      replace(
        ProducerStates.prototype,
        'check',
        original =>
          function (this: ProducerStates, buffer, at) {
            const verdict = original.call(this, buffer, at)
            return verdict.kind === 'duplicate' ? { kind: 'new' } : verdict
          },
      ),
  },
  /** Answers a commit before the log has it. */
  'commit-early': {
    patch: () =>
      replace(
        Partition.prototype,
        'produce',
        original =>
          function (this: Partition, buffer, at, size, acks, token) {
            if (this.topic !== OFFSETS_TOPIC) {
              original.call(this, buffer, at, size, acks, token)
              return
            }
            const mute: ProduceToken = { settle: () => {} }
            const baseOffset = this.nextOffset
            original.call(this, buffer, at, size, acks, mute)
            token.settle({ token, error: undefined, message: undefined, baseOffset })
          },
      ),
  },
  /** A coordinator begins without what its log says. */
  'groups-forgotten': {
    patch: () => {
      const leading = new WeakSet<GroupShard>()
      const undoDecide = replace(
        GroupShard.prototype,
        'decide',
        original =>
          function (this: GroupShard, command, now, monotonic) {
            leading.add(this)
            return original.call(this, command, now, monotonic)
          },
      )
      const undoApply = replace(
        GroupShard.prototype,
        'apply',
        original =>
          function (this: GroupShard, entry, at) {
            if (leading.has(this)) original.call(this, entry, at)
          },
      )
      return () => {
        undoDecide()
        undoApply()
      }
    },
  },
  'topic-configs-lost': { patch: ignoring(({ type }) => type === 'Config') },
  'producer-ids-reused': { patch: ignoring(({ type }) => type === 'ProducerIds') },
  'topics-undeletable': { patch: ignoring(({ type }) => type === 'RemoveTopic') },
  /** Every second request for a producer id is never answered. */
  'answers-missing': {
    patch: () => {
      let count = 0
      return replace(
        ProducerIds.prototype,
        'next',
        original =>
          function (this: ProducerIds) {
            return ++count % 2 === 0 ? new Promise(() => {}) : original.call(this)
          },
      )
    },
  },
  /** What was deleted is there again after a restart. */
  'log-start-forgotten': { patch: () => replace(LogFolder.prototype, 'startOffset', () => () => 0) },
}
