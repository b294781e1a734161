import type { SeededRandom } from '#base/random.ts'
import type { Millis, NodeId } from '#base/units.ts'
import { MIN_IN_SYNC } from '../actors/administering.ts'
import { FOLDER, type MemberPlan } from '../actors/member.ts'
import type { GrowingTopic, Reshape } from '../actors/reshaping.ts'
import type { Death } from '../actors/server.ts'

/** Which cluster there is and what goes wrong with it. */
export interface ClusterPlan {
  readonly members: readonly MemberPlan[]
  readonly brokers: readonly NodeId[]
  /** All that is acknowledged is synced before. */
  readonly allSynced: boolean
  readonly topics: readonly GrowingTopic[]
  readonly groups: readonly string[]
  readonly deaths: readonly Death[]
  /** One after another stops and comes again, instead of everybody as chance has it. */
  readonly rolling: boolean
  readonly lives: number
  readonly lifeMs: Millis
  /** By how much everything is slower than in a hurry: more of the time is like a cluster's usual days. */
  readonly pace: number
  /** Faults of disks: of all of a node's, or of one of its folders. */
  readonly disk: boolean
  readonly network: boolean
  readonly clock: boolean
  readonly pauses: boolean
  /** Disks of nodes that do not vote are replaced by empty ones, and of all nodes those without the log of the metadata. */
  readonly wipes: boolean
  /** Topics' settings that change while they are written to: none promises less than the cluster's. */
  readonly settings: Readonly<Record<string, readonly string[]>>
  readonly reshape: Reshape
  /** There is a topic without promises. */
  readonly loose: boolean
  readonly sessionTimeoutMs: Millis
}

type Layout = 'combined' | 'single-voter' | 'apart' | 'joined'

/** Draws all of it: which faults there are at all is drawn first, so that every seed has its own mixture (swarm). */
export function drawPlan(random: SeededRandom): ClusterPlan {
  const layout = random.pick<Layout>(['combined', 'combined', 'combined', 'single-voter', 'apart', 'joined'])
  const allSynced = random.chance(0.3)
  const brokerCount = random.pick([3, 3, 3, 4, 5])
  const racks = random.chance(0.3)
  const folders = random.pick([1, 1, 2, 3])
  const sessionTimeoutMs = random.pick([2000, 9000])
  const pace = random.pick([1, 1, 1, 1, 10, 100])
  // Then most of what happens is that nothing does: it need not happen more often than it must.
  const isSlow = pace > 10
  const replicas = [3, 3, 3, 2].filter(count => count <= brokerCount)
  const topics = Array.from({ length: random.between(1, 3) }, (_, index) => ({
    name: `topic${index}`,
    partitions: random.between(1, 4),
    replicas: random.pick(replicas),
    durable: true,
  }))
  const overrides = [
    'auto.create.topics.enable=false',
    'offsets.topic.num.partitions=2',
    'offsets.topic.replication.factor=3',
    'min.insync.replicas=2',
    `group.initial.rebalance.delay.ms=${random.pick([0, 100, 3000])}`,
    `metadata.log.max.record.bytes.between.snapshots=${random.pick([500, 5000, 20_971_520])}`,
    `log.flush.offset.checkpoint.interval.ms=${random.pick(isSlow ? [5000, 60_000] : [50, 1000, 60_000])}`,
    `replica.high.watermark.checkpoint.interval.ms=${random.pick(isSlow ? [5000] : [100, 5000])}`,
    `replica.lag.time.max.ms=${random.pick(isSlow ? [10_000, 30_000] : [2000, 10_000, 30_000])}`,
    `replica.fetch.wait.max.ms=${random.pick(isSlow ? [2000] : [100, 500])}`,
    `broker.session.timeout.ms=${sessionTimeoutMs}`,
    `broker.heartbeat.interval.ms=${random.pick(isSlow ? [1000] : [200, 1000])}`,
    `leader.imbalance.check.interval.seconds=${random.pick([2, 300])}`,
    `log.retention.check.interval.ms=${random.pick([3000, 60_000])}`,
    ...(allSynced ? ['log.flush.interval.messages=1'] : []),
  ]
  const members = layMembers(layout, brokerCount).map((member, index) => ({
    ...member,
    folders: Array.from({ length: folders }, (_, at) => (at === 0 ? FOLDER : `${FOLDER}${at + 1}`)),
    rack: racks && member.roles.includes('broker') ? `rack${index % 3}` : undefined,
    overrides,
  }))
  const voters = members.filter(({ roles }) => roles.includes('controller'))
  return {
    members,
    brokers: members.filter(({ roles }) => roles.includes('broker')).map(({ id }) => id),
    allSynced,
    topics,
    groups: Array.from({ length: random.between(1, 2) }, (_, index) => `group${index}`),
    deaths: random.pick<readonly Death[]>([
      ['stop'],
      ['crash'],
      ['power-cut'],
      ['crash', 'power-cut'],
      ['stop', 'crash', 'power-cut'],
    ]),
    rolling: random.chance(0.15),
    lives: random.between(1, 4),
    lifeMs: random.pick(pace > 10 ? [30_000] : [1000, 5000, 30_000]) * pace,
    pace,
    disk: random.chance(0.3),
    network: random.chance(0.6),
    clock: random.chance(0.3),
    pauses: random.chance(0.3),
    wipes: random.chance(0.3),
    settings: {
      ...(random.chance(0.3) && { [MIN_IN_SYNC]: ['2', '3', '4'] }),
      ...(random.chance(0.2) && { 'flush.messages': allSynced ? ['1'] : ['1', '7'] }),
    },
    reshape: {
      reassign: random.chance(0.3),
      restrict: random.chance(0.15),
      grow: random.chance(0.3),
      elect: random.chance(0.3),
      throttle: random.chance(0.15),
      voters: layout === 'joined' && voters.length > 2 && random.chance(0.5),
    },
    loose: random.chance(0.3),
    sessionTimeoutMs,
  }
}

function layMembers(layout: Layout, brokers: number): Omit<MemberPlan, 'folders' | 'rack' | 'overrides'>[] {
  const ids = (count: number, first = 1): NodeId[] => Array.from({ length: count }, (_, index) => first + index)
  switch (layout) {
    case 'apart':
      return [
        ...ids(3).map(id => ({ id, roles: 'controller', voters: [1, 2, 3], join: [] })),
        ...ids(Math.min(brokers, 4), 4).map(id => ({ id, roles: 'broker', voters: [1, 2, 3], join: [] })),
      ]
    case 'joined':
      // The first founds the cluster, the others come to it.
      return ids(brokers).map(id => ({
        id,
        roles: id <= 3 ? 'broker,controller' : 'broker',
        voters: [],
        join: id === 1 ? [] : ids(3).filter(other => other !== id),
      }))
    default: {
      const voters = layout === 'single-voter' ? [1] : [1, 2, 3]
      return ids(brokers).map(id => ({
        id,
        roles: voters.includes(id) ? 'broker,controller' : 'broker',
        voters,
        join: [],
      }))
    }
  }
}
