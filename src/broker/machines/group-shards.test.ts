import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ZERO_UUID } from '#base/uuid.ts'
import { DEFAULT_GROUP_CONFIG, type GroupConfig } from '#core/group/config.ts'
import { encodeEntry, offsetCommitValue } from '#core/group/entries.ts'
import { ProducerStates } from '#core/partition/producers.ts'
import { stamp } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { buildEndMarker } from '#records/control.ts'
import { Log } from '#storage/log.ts'
import { LOG_CONFIG_DEFAULT } from '#storage/log-config.ts'
import { MemoryDisk } from '#storage/testing/memory-disk.ts'
import { LastBatchFold, LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import { Deadlines } from '../deadlines.ts'
import { Partition } from '../partitions/partition.ts'
import { assigned, surroundings } from '../partitions/testing/surroundings.ts'
import { ShardRunner } from './group-shards.ts'

const TIME = 1_700_000_000_000
const COMMIT_TIMEOUT_MS = 5000

function batch(key: Buffer, value: Buffer | null): Buffer {
  const builder = new BatchBuilder()
  builder.append(TIME, key, value)
  return builder.build()
}

const TERMS = { minInSync: 1 }

async function ledPartition(clock: ManualClock, lines: LinesLogger, disk = new MemoryDisk()): Promise<Partition> {
  const log = await Log.open({
    disk,
    clock,
    log: lines,
    folder: '/data/__consumer_offsets-0',
    config: LOG_CONFIG_DEFAULT,
    fold: new LastBatchFold(),
    recoveryPoint: 0,
    clean: true,
    startOffset: 0,
  })
  const around = surroundings(clock, lines)
  const partition = new Partition('id', '__consumer_offsets', 0, log, new ProducerStates(), 0, around)
  partition.become(assigned(0), TERMS)
  return partition
}

/** Appends a batch, and waits for it. */
function written(partition: Partition, bytes: Buffer): Promise<unknown> {
  return new Promise(resolve => partition.produce(bytes, 0, bytes.length, 1, { settle: resolve }))
}

function shardOf(
  partition: Partition,
  clock: ManualClock,
  lines: LinesLogger,
  config: Partial<GroupConfig> = {},
): ShardRunner {
  return new ShardRunner(partition, {
    clock,
    deadlines: new Deadlines(clock),
    log: lines,
    config: { ...DEFAULT_GROUP_CONFIG, ...config },
    commitTimeoutMs: COMMIT_TIMEOUT_MS,
  })
}

async function listed(shard: ShardRunner) {
  const request = { statesFilter: [], typesFilter: [] }
  const reply = await shard.submit(
    call => ({ kind: 'ListGroups', call, version: 5, request }),
    () => () => {},
  )
  assert.ok(reply.kind === 'ListGroups')
  return reply.response.groups ?? []
}

/** The groups that the shard knows once it answers, or undefined while it does not. */
async function groupsOf(shard: ShardRunner): Promise<(string | undefined)[] | undefined> {
  for (let turn = 0; turn < 20; turn++) {
    await new Promise(setImmediate)
    const groups = await listed(shard).catch(() => undefined)
    if (groups !== undefined) return groups.map(({ groupId }) => groupId)
  }
  return undefined
}

const KNOWN = encodeEntry({
  kind: 'GroupMetadata',
  group: 'known',
  value: { protocolType: '', generation: 0, protocol: null, leader: null, currentStateTimestamp: TIME, members: [] },
})

test('records that are no state of groups are left out with a line that says where, and the others count', async () => {
  const clock = new ManualClock()
  const lines = new LinesLogger()
  const partition = await ledPartition(clock, lines)
  const good = encodeEntry({ kind: 'GroupMetadata', group: 'good', value: null })
  // Says that it is gzip; the checksum is right.
  const builder = new BatchBuilder()
  builder.append(TIME, Buffer.from('x'), null)
  const broken = builder.build()
  broken.writeInt16BE(1, 21)
  for (const each of [
    batch(Buffer.from([0, 2, 9]), null),
    batch(good.key, Buffer.from([0, 99])),
    broken,
    batch(KNOWN.key, KNOWN.value),
  ]) {
    await written(partition, each)
  }

  const shard = shardOf(partition, clock, lines)
  assert.deepEqual(await groupsOf(shard), ['known'])
  const complaints = lines.lines.filter(line => line.startsWith('error '))
  assert.deepEqual(
    complaints.map(line => /"offset":(\d+)/.exec(line)?.[1]),
    ['0', '1', '2'],
  )
  shard.stop()
})

test('what an earlier leader appended and is not stored yet is waited for', async () => {
  const clock = new ManualClock()
  const lines = new LinesLogger()
  const disk = new MemoryDisk()
  const partition = await ledPartition(clock, lines, disk)
  const slow = Promise.withResolvers<void>()
  const open = disk.open.bind(disk)
  disk.open = async (path, how) => {
    await slow.promise
    return await open(path, how)
  }
  const appended = batch(KNOWN.key, KNOWN.value)
  partition.produce(appended, 0, appended.length, -1, { settle: () => {} })
  partition.become(assigned(1, { leader: -1 }), TERMS)
  partition.become(assigned(2), TERMS)
  const shard = shardOf(partition, clock, lines)
  assert.equal(await groupsOf(shard), undefined)
  slow.resolve()
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  clock.advance(1000)
  await new Promise(setImmediate)
  assert.deepEqual(await groupsOf(shard), ['known'])
  shard.stop()
})

test('an answer that rests for too long is refused when its deadline comes, whatever the digits of the time', async () => {
  const clock = new ManualClock()
  const lines = new LinesLogger()
  const disk = new MemoryDisk()
  const partition = await ledPartition(clock, lines, disk)
  const never = Promise.withResolvers<never>()
  disk.open = () => never.promise
  const shard = shardOf(partition, clock, lines)
  assert.deepEqual(await groupsOf(shard), [])
  clock.now = () => TIME
  // Such a time as a clock of high resolution says.
  clock.time = 1 / 3
  assert.ok(clock.time + COMMIT_TIMEOUT_MS - COMMIT_TIMEOUT_MS < clock.time)
  const request = {
    groupId: 'g',
    generationIdOrMemberEpoch: -1,
    memberId: '',
    groupInstanceId: null,
    retentionTimeMs: -1,
    topics: [
      {
        name: 't',
        topicId: ZERO_UUID,
        partitions: [{ partitionIndex: 0, committedOffset: 1, committedLeaderEpoch: -1, committedMetadata: '' }],
      },
    ],
  }
  const committed = shard.submit(
    call => ({ kind: 'OffsetCommit', call, version: 8, request }),
    () => () => {},
  )
  clock.advance(COMMIT_TIMEOUT_MS)
  await assert.rejects(committed, { code: 'COORDINATOR_NOT_AVAILABLE' })
  shard.stop()
})

test('offsets of transactions count once these are committed, and not before what was committed behind them', async () => {
  const clock = new ManualClock()
  const lines = new LinesLogger()
  const disk = new MemoryDisk()
  const before = await ledPartition(clock, lines, disk)
  const commit = (topic: string, offset: number, producerId?: number): Buffer => {
    const value = offsetCommitValue({ offset, metadata: '', commitTimestamp: TIME })
    const entry = encodeEntry({ kind: 'OffsetCommit', group: 'g', topic, partition: 0, value })
    const builder = new BatchBuilder(
      producerId === undefined ? {} : { producerId, producerEpoch: 0, baseSequence: 0, transactional: true },
    )
    builder.append(TIME, entry.key, entry.value)
    return builder.build()
  }
  const end = (type: 'commit' | 'abort', producerId: number) =>
    buildEndMarker({ type, producerId, producerEpoch: 0, coordinatorEpoch: 0, timestamp: TIME })
  const written = [
    commit('aborted', 1),
    commit('aborted', 99, 7),
    end('abort', 7),
    commit('committed', 1),
    commit('committed', 2, 7),
    commit('overtaken', 99, 7),
    commit('overtaken', 3),
    end('commit', 7),
    commit('open', 1),
    commit('open', 99, 8),
  ]
  for (const bytes of written) {
    stamp(bytes, 0, before.log.nextOffset, 0)
    await before.log.append(bytes)
  }
  await before.log.close()

  const partition = await ledPartition(clock, lines, disk)
  const shard = shardOf(partition, clock, lines)
  assert.deepEqual(await groupsOf(shard), ['g'])
  const request = { groupId: 'g', memberId: null, memberEpoch: -1, topics: null }
  const reply = await shard.submit(
    call => ({ kind: 'OffsetFetch', call, version: 8, request }),
    () => () => {},
  )
  assert.equal(reply.kind, 'OffsetFetch')
  const topics = reply.kind === 'OffsetFetch' ? (reply.response.topics ?? []) : []
  assert.deepEqual(
    topics.map(({ name, partitions = [] }) => `${name} ${partitions[0]?.committedOffset}`),
    ['aborted 1', 'committed 2', 'overtaken 3', 'open 1'],
  )
  shard.stop()
})

test('while too few are in sync what would be written is refused, and the log is not read anew for it', async () => {
  const clock = new ManualClock()
  const lines = new LinesLogger()
  const partition = await ledPartition(clock, lines)
  await written(partition, batch(KNOWN.key, KNOWN.value))
  const shard = shardOf(partition, clock, lines, { initialRebalanceDelayMs: 100 })
  assert.deepEqual(await groupsOf(shard), ['known'])
  const join = (memberId: string) =>
    shard.submit(
      call => ({
        kind: 'JoinGroup',
        call,
        version: 3,
        clientId: 'c',
        clientHost: '/h',
        memberIdSuffix: memberId,
        request: {
          groupId: 'known',
          sessionTimeoutMs: 6000,
          rebalanceTimeoutMs: 6000,
          memberId: '',
          groupInstanceId: null,
          protocolType: 'consumer',
          protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
          reason: null,
        },
      }),
      () => () => {},
    )
  const joined = join('a')
  partition.become(assigned(0, { partitionEpoch: 1, replicas: [1, 2], isr: [1] }), { minInSync: 2 })
  partition.configure({ minInSync: 2 })
  assert.ok(partition.tooFewInSync)
  await assert.rejects(join('b'), { code: 'COORDINATOR_NOT_AVAILABLE' })
  const end = partition.log.nextOffset
  clock.advance(10_000)
  // What it knows is known still: it was not thrown away.
  assert.equal((await listed(shard))[0]?.groupState, 'PreparingRebalance')
  assert.equal(partition.log.nextOffset, end)
  assert.ok(!lines.lines.some(line => line.includes('could not be written')))

  partition.configure(TERMS)
  clock.advance(1000)
  const reply = await joined
  assert.equal(reply.kind === 'JoinGroup' ? reply.response.errorCode : -1, 0)
  shard.stop()
})

test('what is told while too few are in sync is written down soon after enough are, though nothing else is due', async () => {
  const clock = new ManualClock()
  const lines = new LinesLogger()
  const partition = await ledPartition(clock, lines)
  const value = offsetCommitValue({ offset: 1, metadata: '', commitTimestamp: TIME })
  const entry = encodeEntry({ kind: 'OffsetCommit', group: 'g', topic: 'gone', partition: 0, value })
  await written(partition, batch(entry.key, entry.value))
  const shard = shardOf(partition, clock, lines)
  assert.deepEqual(await groupsOf(shard), ['g'])
  const end = partition.log.nextOffset
  partition.become(assigned(0, { partitionEpoch: 1, replicas: [1, 2], isr: [1] }), { minInSync: 2 })
  partition.configure({ minInSync: 2 })
  shard.tell({ kind: 'TopicsDeleted', topics: [{ name: 'gone', topicId: ZERO_UUID }] })
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50)
      await new Promise(setImmediate)
    }
  }
  await pass(2000)
  assert.equal(partition.log.nextOffset, end)
  partition.configure(TERMS)
  await pass(1000)
  assert.equal(partition.log.nextOffset, end + 1)
  shard.stop()
})
