import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IsrProposal } from '#core/partition/in-sync-replicas.ts'
import type { Produced } from '#core/partition/leader.ts'
import { ProducerStates } from '#core/partition/producers.ts'
import { Log } from '#storage/log.ts'
import { LOG_CONFIG_DEFAULT } from '#storage/log-config.ts'
import { MemoryDisk } from '#storage/testing/memory-disk.ts'
import { LinesLogger, ManualClock, plainBatch } from '#storage/testing/rig.ts'
import { WorldError } from '#world/world.ts'
import { type Assignment, Partition, type ProduceToken } from './partition.ts'
import { assigned, surroundings } from './testing/surroundings.ts'

const TIME = 1_700_000_000_000
const TERMS = { minInSync: 1 }

async function openPartition(place: Partial<Assignment> = {}) {
  const producers = new ProducerStates()
  const fold = {
    restore: producers.restore.bind(producers),
    apply: (buffer: Buffer, at: number) => {
      producers.apply(buffer, at)
      return undefined
    },
    snapshot: () => producers.snapshot(Number.POSITIVE_INFINITY),
  }
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const log = await Log.open({
    disk,
    clock,
    log: new LinesLogger(),
    folder: '/data/topic-0',
    config: LOG_CONFIG_DEFAULT,
    fold,
    recoveryPoint: 0,
    clean: true,
    startOffset: 0,
  })
  const proposals: IsrProposal[] = []
  const around = surroundings(clock, new LinesLogger(), { alterIsr: (_, proposal) => void proposals.push(proposal) })
  const partition = new Partition('id', 'topic', 0, log, producers, 0, around)
  partition.become(assigned(0, place), TERMS)
  const produce = (baseSequence: number): Promise<Produced<ProduceToken>> => {
    const batch = plainBatch(0, 1, 500_000, TIME, { producerId: 7, producerEpoch: 0, baseSequence })
    return new Promise(resolve => partition.produce(batch, 0, batch.length, -1, { settle: resolve }))
  }
  return { disk, clock, log, partition, produce, proposals }
}

test('while a log is mended a producer hears that the disk failed, not that its sequence is wrong', async () => {
  const { disk, clock, log, produce } = await openPartition()
  for (let sequence = 0; sequence < 8; sequence++) assert.equal((await produce(sequence)).error, undefined)

  let full = true
  const meanwhile: Promise<Produced<ProduceToken>>[] = []
  disk.fault = (operation, path) => {
    // The producers are read from the log again: at each read there are some that are not known yet.
    if (log.failure !== undefined && operation === 'read') meanwhile.push(produce(8))
    return full && operation === 'write' && path.endsWith('.log') ? 'ENOSPC' : undefined
  }
  assert.equal((await produce(8)).error, 'KAFKA_STORAGE_ERROR')
  clock.advance(6000)
  await log.flush().catch(() => undefined)
  full = false
  clock.advance(6000)
  await log.flush()
  assert.ok(meanwhile.length > 0)
  for (const { error } of await Promise.all(meanwhile)) assert.equal(error, 'KAFKA_STORAGE_ERROR')
  const taken = await produce(8)
  assert.deepEqual([taken.error, taken.baseOffset], [undefined, 8])
})

/** Writes to logs wait until they are let go; with a code, the first of them fails. */
function holdWrites(disk: MemoryDisk): (code?: string) => void {
  const held = Promise.withResolvers<void>()
  const open = disk.open.bind(disk)
  let fault: string | undefined
  disk.open = async (path, how) => {
    const file = await open(path, how)
    if (!path.endsWith('.log')) return file
    const write = async (parts: readonly Uint8Array[], position: number) => {
      await held.promise
      const code = fault
      fault = undefined
      if (code !== undefined) throw new WorldError(code, `write ${path}`)
      return await file.write(parts, position)
    }
    return { ...file, write }
  }
  return code => {
    fault = code
    held.resolve()
  }
}

test('an epoch that begins while appends of the one before are under way goes on behind them', async () => {
  const { disk, log, partition, produce } = await openPartition()
  const letGo = holdWrites(disk)
  const before = produce(0)
  partition.become(assigned(1), TERMS)
  const after = produce(1)
  assert.equal((await before).error, 'NOT_LEADER_OR_FOLLOWER')
  const repeated = produce(0)
  letGo()
  assert.deepEqual([(await after).error, (await after).baseOffset], [undefined, 1])
  assert.deepEqual([(await repeated).error, (await repeated).baseOffset], [undefined, 0])
  assert.deepEqual([log.endOffset, partition.highWatermark], [2, 2])
  assert.deepEqual(log.epochs, [
    { epoch: 0, startOffset: 0 },
    { epoch: 1, startOffset: 1 },
  ])
})

test('an epoch that begins while a write fails takes the place of what did not come to the log', async () => {
  const { disk, clock, log, partition, produce } = await openPartition()
  const letGo = holdWrites(disk)
  const before = produce(0)
  partition.become(assigned(1, { leader: -1 }), TERMS)
  partition.become(assigned(2), TERMS)
  assert.equal((await before).error, 'NOT_LEADER_OR_FOLLOWER')
  letGo('EIO')
  await log.flush().catch(() => undefined)
  assert.equal((await produce(0)).error, 'KAFKA_STORAGE_ERROR')
  clock.advance(6000)
  await log.flush()
  const taken = await produce(0)
  assert.deepEqual([taken.error, taken.baseOffset, partition.highWatermark], [undefined, 0, 1])
})

test('who leads from behind a write that failed knows the high watermark: what is not there is not waited for', async () => {
  const { disk, log, partition, produce } = await openPartition()
  const letGo = holdWrites(disk)
  const before = produce(0)
  partition.become(assigned(1, { leader: -1 }), TERMS)
  partition.become(assigned(2), TERMS)
  await before
  assert.equal(partition.knowsHighWatermark, false)
  letGo('EIO')
  await log.flush().catch(() => undefined)
  assert.equal(partition.knowsHighWatermark, true)
})

test('a follower that stays behind after it was let in is put out in time, though nothing is written meanwhile', async () => {
  const { clock, partition, proposals } = await openPartition({ replicas: [1, 2], isr: [1] })
  const batch = plainBatch(0, 1, 100, TIME)
  const acks1 = () =>
    new Promise<Produced<ProduceToken>>(resolve => partition.produce(batch, 0, batch.length, 1, { settle: resolve }))
  await acks1()
  partition.followerFetched(2, 1, 0, 100)
  await acks1()
  const [join] = proposals as [IsrProposal]
  assert.deepEqual(
    join.isr.map(({ brokerId }) => brokerId),
    [1, 2],
  )
  clock.advance(29_000)
  partition.isrAnswered(join, { kind: 'accepted', isr: [1, 2], leaderEpoch: 0, partitionEpoch: 1 })
  clock.advance(1_001)
  clock.advance(29_000)
  assert.equal(proposals.length, 2)
  assert.deepEqual(
    proposals[1]?.isr.map(({ brokerId }) => brokerId),
    [1],
  )
})

test('who leads an epoch once more waits for whom it had asked to let in', async () => {
  const { partition, proposals } = await openPartition({ replicas: [1, 2, 3], isr: [1, 2] })
  const fetched = (replica: number, offset: number) => partition.followerFetched(replica, offset, 0, 100)
  fetched(2, 0)
  fetched(3, 0)
  const [join] = proposals
  // Its disk was full for a while; the controller may have let the third in, and has not told yet.
  partition.become(assigned(0, { leader: -1, replicas: [1, 2, 3], isr: [1, 2] }), TERMS)
  partition.become(assigned(0, { replicas: [1, 2, 3], isr: [1, 2] }), TERMS)
  assert.deepEqual(proposals, [join, join])
  const batch = plainBatch(0, 1, 100, TIME)
  const produced = new Promise<Produced<ProduceToken>>(resolve =>
    partition.produce(batch, 0, batch.length, -1, { settle: resolve }),
  )
  await partition.written
  fetched(2, 1)
  assert.equal(partition.highWatermark, 0)
  fetched(3, 1)
  assert.deepEqual([(await produced).error, partition.highWatermark], [undefined, 1])
})

test('who leads an epoch once more knows what the controller told it of who is in sync', async () => {
  const { partition, proposals } = await openPartition({ replicas: [1, 2], isr: [1] })
  partition.followerFetched(2, 0, 0, 100)
  const [join] = proposals as [IsrProposal]
  partition.isrAnswered(join, { kind: 'accepted', isr: [1, 2], leaderEpoch: 0, partitionEpoch: 1 })
  partition.become(assigned(0, { leader: -1, replicas: [1, 2] }), TERMS)
  partition.become(assigned(0, { replicas: [1, 2] }), TERMS)
  assert.deepEqual(partition.inSync, [1, 2])
  // In another epoch only the metadata counts.
  partition.become(assigned(1, { replicas: [1, 2] }), TERMS)
  assert.deepEqual(partition.inSync, [1])
})

test('settings that change while a log is cut hold for what comes after the cut', async () => {
  const { partition, produce, log } = await openPartition()
  await produce(0)
  await produce(1)
  partition.become(assigned(1, { leader: 2, replicas: [1, 2] }), TERMS)
  const position = partition.fetchPosition
  assert.ok(position !== undefined)
  partition.fetched({ kind: 'diverged', position, epoch: 0, endOffset: 1 })
  partition.become(assigned(2, { replicas: [1, 2] }), TERMS)
  partition.configure({ minInSync: 2 })
  await new Promise(resolve => setImmediate(resolve))
  assert.deepEqual([partition.leads, log.endOffset], [true, 1])
  assert.equal((await produce(1)).error, 'NOT_ENOUGH_REPLICAS')
})
