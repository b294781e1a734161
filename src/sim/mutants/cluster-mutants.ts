import { FailingFolders } from '#broker/partitions/failing-folders.ts'
import { Partition, type ProduceToken } from '#broker/partitions/partition.ts'
import { BrokerWatch } from '#controller/broker-watch.ts'
import { ReachWatch } from '#controller/reach-watch.ts'
import { Term } from '#controller/term.ts'
import { GroupShard } from '#core/group/shard.ts'
import { ControllerState } from '#core/metadata/controller-state.ts'
import { OFFSETS_TOPIC } from '#core/metadata/topic-name.ts'
import { InSyncReplicas } from '#core/partition/in-sync-replicas.ts'
import { PartitionLeader } from '#core/partition/leader.ts'
import { ProducerStates } from '#core/partition/producers.ts'
import { Leader } from '#core/raft/leader.ts'
import { DiskWatch } from '#storage/disk-watch.ts'
import { Log } from '#storage/log.ts'
import { FakeDisk } from '#world/fake/fake-disk.ts'
import { all, replace, replaceGetter } from './replace.ts'

/** Deliberately broken builds of a cluster, by name: each breaks what it breaks and returns what mends it again. */
export const CLUSTER_MUTANTS: Readonly<Record<string, () => () => void>> = {
  /** acks=all is answered when the leader has it. */
  'ack-before-watermark': () =>
    replace(
      PartitionLeader.prototype,
      'step',
      original =>
        function (this: PartitionLeader<unknown>, event, now) {
          return original.call(this, event.kind === 'produce' && event.acks === -1 ? { ...event, acks: 1 } : event, now)
        },
    ),
  /** The watermark is where a majority of the replicas is, in sync or not. */
  'watermark-of-a-majority': () =>
    replace(
      InSyncReplicas.prototype,
      'heldByAll',
      () =>
        function (this: InSyncReplicas, leaderEnd) {
          const ends = [leaderEnd, ...this.followers.map(({ endOffset }) => endOffset)].sort((a, b) => b - a)
          return Math.max(0, ends[Math.floor(ends.length / 2)] ?? leaderEnd)
        },
    ),
  /** What was sent to a follower counts as held by it. */
  'sent-counts-as-held': () =>
    replace(
      InSyncReplicas.prototype,
      'fetched',
      original =>
        function (this: InSyncReplicas, id, at, leaderEnd, now) {
          return original.call(this, id, { ...at, offset: Math.max(at.offset, leaderEnd) }, leaderEnd, now)
        },
    ),
  /** Who lags does not count any more, though the controller has not heard of it. */
  'isr-shrunk-alone': () =>
    replace(
      InSyncReplicas.prototype,
      'heldByAll',
      () =>
        function (this: InSyncReplicas, leaderEnd, now) {
          const fresh = this.followers.filter(({ caughtUpAt }) => now - caughtUpAt < 500)
          return Math.min(leaderEnd, ...fresh.map(({ endOffset }) => endOffset))
        },
    ),
  /** A follower is let in before it holds what was committed in epochs before. */
  'isr-expanded-early': () =>
    replace(
      InSyncReplicas.prototype,
      'propose',
      original =>
        function (this: InSyncReplicas, leaderEnd, _highWatermark, now) {
          this.logEnds(0)
          return original.call(this, leaderEnd, 0, now)
        },
    ),
  /** The watermark moves though fewer are in sync than must be (KIP-966). */
  'watermark-despite-too-few': () => replaceGetter(InSyncReplicas.prototype, 'tooFew', () => false),
  /** What a life of a follower's broker held counts for the next one, whose epoch (KIP-903) says nothing. */
  'broker-epoch-ignored': () =>
    all(
      replace(
        InSyncReplicas.prototype,
        'fetched',
        original =>
          function (this: InSyncReplicas, id, at, ...rest) {
            return holding(this, () => original.call(this, id, { ...at, brokerEpoch: -1 }, ...rest))
          },
      ),
      replace(
        InSyncReplicas.prototype,
        'assigned',
        original =>
          function (this: InSyncReplicas, ...assigned) {
            holding(this, () => original.apply(this, assigned))
          },
      ),
    ),
  /** Whoever lives may lead. */
  'elected-outside-isr': () =>
    replace(
      ControllerState.prototype,
      'target',
      original =>
        function (this: ControllerState, topic, index, partition, mayLead) {
          return { ...original.call(this, topic, index, partition, mayLead), election: 'unclean' }
        },
    ),
  /** A log that the leader's history does not hold is not cut. */
  'truncation-skipped': () =>
    replace(
      Log.prototype,
      'endOffsetForEpoch',
      original =>
        function (this: Log, epoch) {
          const known = original.call(this, epoch)
          return known === undefined ? undefined : { leaderEpoch: epoch, endOffset: Number.MAX_SAFE_INTEGER }
        },
    ),
  /** The power goes, and nobody tells the controller that something may be missing. */
  'unclean-taken-for-clean': () =>
    replace(
      FakeDisk.prototype,
      'inThisLife',
      original =>
        function (this: FakeDisk) {
          return { ...original.call(this), bootId: () => Promise.resolve('always') }
        },
    ),
  /** A vote is forgotten when the process ends. */
  'vote-forgotten': () =>
    replace(
      FakeDisk.prototype,
      'inThisLife',
      original =>
        function (this: FakeDisk) {
          const disk = original.call(this)
          return {
            ...disk,
            readFile: path => (path.endsWith('/quorum-state') ? Promise.resolve(undefined) : disk.readFile(path)),
          }
        },
    ),
  /** A leader of the quorum commits by itself. */
  'quorum-of-one': () =>
    replace(
      Leader.prototype,
      'majorityEnd',
      () =>
        function (this: Leader) {
          return this.ownEnd
        },
    ),
  /** The active controller answers before what it decided is committed. */
  'answered-before-commit': () =>
    replace(
      Term.prototype,
      'submit',
      original =>
        function (this: Term, command) {
          const answer = original.call(this, command)
          this.committed(this.nextOffset)
          return answer
        } as typeof original,
    ),
  /** Followers learn nothing of producers. */
  'producers-not-followed': () => replace(ProducerStates.prototype, 'apply', () => () => {}),
  /** A coordinator begins without what its log says. */
  'groups-forgotten': () => {
    const leading = new WeakSet<GroupShard>()
    return all(
      replace(
        GroupShard.prototype,
        'decide',
        original =>
          function (this: GroupShard, command, now, monotonic) {
            leading.add(this)
            return original.call(this, command, now, monotonic)
          },
      ),
      replace(
        GroupShard.prototype,
        'apply',
        original =>
          function (this: GroupShard, entry, at) {
            if (leading.has(this)) original.call(this, entry, at)
          },
      ),
    )
  },
  /** A commit is answered before it is replicated. */
  'commit-early': () =>
    replace(
      Partition.prototype,
      'produce',
      original =>
        function (this: Partition, buffer, at, size, acks, token) {
          if (this.topic !== OFFSETS_TOPIC || !this.leads) {
            original.call(this, buffer, at, size, acks, token)
            return
          }
          const mute: ProduceToken = { settle: () => {} }
          const baseOffset = this.nextOffset
          original.call(this, buffer, at, size, acks, mute)
          token.settle({ token, error: undefined, message: undefined, baseOffset })
        },
    ),
  /** A follower takes all that it holds for committed. */
  'follower-shows-all': () =>
    replaceGetter(Partition.prototype, 'highWatermark', function (original) {
      return this.leads ? original() : this.log.endOffset
    }),
  /** A leader that another one follows goes on as if nothing had happened. */
  'leader-never-resigns': () =>
    replace(
      Partition.prototype,
      'become',
      original =>
        function (this: Partition, assignment, terms) {
          if (!this.leads || assignment.leader === this.leaderId) original.call(this, assignment, terms)
        },
    ),
  /** Nobody sees that a disk hangs. */
  'hang-unnoticed': () => replaceGetter(DiskWatch.prototype, 'failure', () => undefined),
  /** Nobody looks whether a broker can be dialled. */
  'wall-unnoticed': () => replace(ReachWatch.prototype, 'begin', () => () => {}),
  /** A folder that refuses writes for long is never given up. */
  'lost-folder-kept': () => replace(FailingFolders.prototype, 'look', () => () => []),
  /** Nobody looks whether a broker whose connection breaks is dead. */
  'crash-unnoticed': () =>
    all(
      replace(BrokerWatch.prototype, 'heard', () => () => {}),
      replace(BrokerWatch.prototype, 'begin', () => () => {}),
    ),
}

/** Does it, and no follower has less afterwards. */
function holding<T>(replicas: InSyncReplicas, act: () => T): T {
  const held = new Map(replicas.followers.map(({ id, endOffset }) => [id, endOffset]))
  const result = act()
  for (const follower of replicas.followers) {
    Object.assign(follower, { endOffset: Math.max(held.get(follower.id) ?? -1, follower.endOffset) })
  }
  return result
}
