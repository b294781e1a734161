import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { stamp } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { Client } from './client.ts'
import { Consumer } from './consumer.ts'
import { BrokerDouble, TOPIC } from './testing/broker-double.ts'

/** A broker that has a group of one member, and a record at every offset. */
class GroupDouble extends BrokerDouble {
  /** Whether it takes commits; where it does not, nothing is answered. */
  takesCommits = true
  /** Until when it has not loaded the group's offsets. */
  loadsUntil = 0
  readonly commits: number[] = []
  /** What it answers to commits. */
  commitError = 0
  /** What it answers to heartbeats until somebody joins. */
  rebalances = false
  joins = 0
  recordsPerFetch = 1

  constructor(simulation: Simulation) {
    super(1, simulation.node('b1'), { leader: 1, leaderEpoch: 3 })
    this.more.push(...this.#group(), this.#fetch())
  }

  #group(): ServedApi[] {
    return [
      serve({
        api: API.JoinGroup,
        handle: ({ protocols }) => {
          this.rebalances = false
          return {
            errorCode: 0,
            generationId: ++this.joins,
            protocolType: 'consumer',
            protocolName: protocols[0]?.name ?? '',
            leader: 'm',
            memberId: 'm',
            members: [{ memberId: 'm', metadata: protocols[0]?.metadata ?? Buffer.alloc(0) }],
          }
        },
      }),
      serve({
        api: API.SyncGroup,
        handle: ({ assignments }) => ({ errorCode: 0, assignment: assignments[0]?.assignment ?? Buffer.alloc(0) }),
      }),
      serve({
        api: API.ListOffsets,
        handle: ({ topics }) => ({
          topics: topics.map(({ name }) => ({ name, partitions: [{ partitionIndex: 0, errorCode: 0, offset: 0 }] })),
        }),
      }),
      serve({
        api: API.Heartbeat,
        handle: () => ({ errorCode: this.rebalances ? ErrorCode.REBALANCE_IN_PROGRESS : 0 }),
      }),
      serve({ api: API.LeaveGroup, handle: () => ({ errorCode: 0 }) }),
      serve({
        api: API.OffsetFetch,
        handle: ({ groups }) => {
          const loads = this.machine.world.clock.monotonic() < this.loadsUntil
          const errorCode = loads ? ErrorCode.COORDINATOR_LOAD_IN_PROGRESS : 0
          return { groups: groups.map(({ groupId }) => ({ groupId, errorCode, topics: [] })) }
        },
      }),
      serve({
        api: API.OffsetCommit,
        handle: ({ topics }) => {
          this.commits.push(topics[0]?.partitions[0]?.committedOffset ?? -1)
          if (!this.takesCommits) return new Promise<never>(() => {})
          const errorCode = this.commitError
          return { topics: topics.map(({ name }) => ({ name, partitions: [{ partitionIndex: 0, errorCode }] })) }
        },
      }),
    ]
  }

  #fetch(): ServedApi {
    return serve({
      api: API.Fetch,
      handle: async ({ topics }) => {
        await new Promise<void>(resolve => {
          this.machine.world.clock.after(100, resolve)
        })
        return {
          responses: topics.map(({ topicId, partitions }) => ({
            topicId,
            partitions: partitions.map(({ partition, fetchOffset }) => ({
              partitionIndex: partition,
              errorCode: 0,
              highWatermark: fetchOffset + 1,
              records: recordsAt(fetchOffset, this.recordsPerFetch),
            })),
          })),
        }
      },
    })
  }
}

function recordsAt(offset: number, count: number): Buffer {
  const builder = new BatchBuilder({ compression: 'none', bytesMax: 1000 })
  for (let record = 0; record < count; record++) builder.append(1, null, Buffer.from('x'), [])
  const bytes = builder.build()
  stamp(bytes, 0, offset, 3)
  return bytes
}

async function run(
  work: (broker: GroupDouble, client: Client, simulation: Simulation) => Promise<void>,
): Promise<void> {
  const simulation = new Simulation(1)
  const broker = new GroupDouble(simulation)
  const whole = async (): Promise<void> => {
    await broker.listen()
    const client = new Client({ world: simulation.node('client').world, bootstrap: 'b1:9092' })
    await work(broker, client, simulation)
    client.close()
  }
  await simulation.run(whole(), 900_000)
}

test('a commit that nobody answers keeps no records from who polls, and the next one does not overtake it', async () => {
  await run(async (broker, client, simulation) => {
    const consumer = new Consumer(client, { group: 'g', offsetReset: 'earliest', autoCommitIntervalMs: 500 })
    consumer.subscribe([TOPIC])
    const read = async (ms: number): Promise<number> => {
      let count = 0
      for (const until = simulation.schedule.now + ms * 1000; simulation.schedule.now < until; ) {
        count += (await consumer.poll(100)).length
      }
      return count
    }
    await read(3000)
    assert.ok(broker.commits.length > 2)
    broker.takesCommits = false
    await read(1000)
    const commits = broker.commits.length
    assert.ok((await read(5000)) > 20, 'it reads on')
    assert.equal(broker.commits.length, commits, 'one at a time')
    broker.takesCommits = true
    await read(10_000)
    assert.ok(broker.commits.length > commits)
    assert.deepEqual(
      broker.commits,
      broker.commits.toSorted((a, b) => a - b),
    )
    await consumer.close()
  })
})

test('a member waits for the offsets of its group for as long as the partitions are its own', async () => {
  await run(async (broker, client, simulation) => {
    broker.loadsUntil = 150_000
    const consumer = new Consumer(client, { group: 'g', offsetReset: 'earliest' })
    consumer.subscribe([TOPIC])
    let count = 0
    while (simulation.schedule.now < 160_000_000) count += (await consumer.poll(1000)).length
    assert.ok(count > 0)
    await consumer.close()
  })
})

test('what the application works on is not committed when the group wants its partitions back, before it comes for more', async () => {
  for (const assignors of [['range'], ['range', 'cooperative-sticky']]) {
    await run(async (broker, client, simulation) => {
      const consumer = new Consumer(client, { group: 'g', offsetReset: 'earliest', assignors })
      consumer.subscribe([TOPIC])
      let records = await consumer.poll(1000)
      while (records.length === 0) records = await consumer.poll(1000)
      const done = records.at(-1)?.offset ?? 0
      records = await consumer.poll(1000)
      assert.equal(records[0]?.offset, done + 1)
      broker.rebalances = true
      await simulation.wait(20_000)
      assert.equal(broker.joins, 1)
      assert.deepEqual(broker.commits, [])
      records = await consumer.poll(10)
      await simulation.wait(1000)
      assert.deepEqual(broker.commits, [done + 2])
      assert.equal(broker.joins, 2)
      assert.deepEqual(records, [], 'nothing more of what is given up')
      // Who waits for records has come for more.
      broker.rebalances = true
      while (broker.joins === 2) await consumer.poll(30_000)
      await consumer.close()
    })
  }
})

test('a member that was put out while it was to give its partitions up takes nothing away that it has again', async () => {
  await run(async (broker, client, simulation) => {
    const consumer = new Consumer(client, { group: 'g', offsetReset: 'earliest', pollIntervalMs: 10_000 })
    consumer.subscribe([TOPIC])
    while ((await consumer.poll(1000)).length === 0);
    broker.rebalances = true
    await simulation.wait(30_000)
    let count = 0
    for (let round = 0; round < 20; round++) count += (await consumer.poll(500)).length
    assert.ok(count > 5)
    await consumer.close()
  })
})

test('who leaves the loop over all records has come as far as it went, and commits no more', async () => {
  await run(async (broker, client) => {
    broker.recordsPerFetch = 10
    const consumer = new Consumer(client, { group: 'g', offsetReset: 'earliest' })
    consumer.subscribe([TOPIC])
    for await (const { offset } of consumer) {
      if (offset === 1) await consumer.commit()
      if (offset === 3) break
    }
    assert.deepEqual(broker.commits, [2])
    assert.equal((await consumer.poll(1000))[0]?.offset, 4)
    consumer.seek({ topic: TOPIC, partition: 0 }, 13)
    for await (const { offset } of consumer) {
      assert.equal(offset, 13)
      break
    }
    await consumer.close()
    assert.deepEqual(broker.commits, [2, 14])
  })
})

test('a group does not wait for a minute for the commit to a topic that is gone', async () => {
  await run(async (broker, client, simulation) => {
    const consumer = new Consumer(client, { group: 'g', offsetReset: 'earliest' })
    consumer.subscribe([TOPIC])
    while ((await consumer.poll(1000)).length === 0);
    broker.commitError = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.rebalances = true
    const began = simulation.schedule.now
    while (broker.joins === 1) await consumer.poll(1000)
    assert.ok(simulation.schedule.now - began < 20_000_000)
    await consumer.close()
  })
})
