import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { unregisterBroker } from './admin/cluster.ts'
import { commitOffsets } from './admin/groups.ts'
import { deleteTopic } from './admin/topics.ts'
import { Client, type ClientOptions } from './client.ts'
import { Consumer } from './consumer.ts'
import { Producer } from './producer.ts'
import { BrokerDouble, TOPIC, TOPIC_ID } from './testing/broker-double.ts'

/** Three brokers, of which the first leads, and a client that has met only the first. */
class Brokers {
  readonly simulation = new Simulation(1)
  readonly all: readonly BrokerDouble[]

  constructor() {
    this.all = [1, 2, 3].map(id => new BrokerDouble(id, this.simulation.node(`b${id}`), { leader: 1, leaderEpoch: 3 }))
    for (const each of this.all) each.others.push(...this.all.filter(other => other !== each))
  }

  get now(): number {
    return this.simulation.schedule.now / 1000
  }

  /** The second leads, and all but the first know. */
  depose(): void {
    for (const each of this.all.slice(1)) Object.assign(each.belief, { leader: 2, leaderEpoch: 4 })
  }

  /** The first is reached by nobody. */
  cutOff(): void {
    const { network } = this.simulation
    const first = this.simulation.node('b1')
    for (const other of this.simulation.nodes) {
      network.cut(first, other)
      network.cut(other, first)
    }
  }

  async run(
    work: (first: BrokerDouble, second: BrokerDouble, client: Client) => Promise<void>,
    options: Partial<ClientOptions> = {},
  ): Promise<void> {
    await this.simulation.run(this.#run(work, options), 600_000)
  }

  async #run(
    work: (first: BrokerDouble, second: BrokerDouble, client: Client) => Promise<void>,
    options: Partial<ClientOptions>,
  ): Promise<void> {
    for (const each of this.all) await each.listen()
    const { world } = this.simulation.node('client')
    const client = new Client({ world, bootstrap: 'b1:9092', ...options })
    await client.topic(TOPIC)
    await work(this.all[0] as BrokerDouble, this.all[1] as BrokerDouble, client)
    client.close()
  }
}

async function written(client: Client, options: ConstructorParameters<typeof Producer>[1] = {}): Promise<void> {
  const producer = new Producer(client, { lingerMs: 0, ...options })
  await producer.send(TOPIC, [{ value: 'x', partition: 0 }])
  await producer.close()
}

for (const error of ['NOT_ENOUGH_REPLICAS', 'REQUEST_TIMED_OUT', 'NOT_LEADER_OR_FOLLOWER'] as const)
  test(`a leader that was cut off and answers ${error} is not the one who is asked who leads`, async () => {
    const brokers = new Brokers()
    await brokers.run(async (first, second, client) => {
      brokers.depose()
      first.produces = error
      const began = brokers.now
      await written(client)
      assert.equal(first.count('Produce'), 1)
      assert.equal(second.count('Produce'), 1)
      assert.ok(brokers.now - began < 50, `after ${brokers.now - began} ms`)
    })
  })

test('a leader that says who leads instead is taken by its word, at once and without another question', async () => {
  const brokers = new Brokers()
  await brokers.run(async (first, second, client) => {
    Object.assign(first, { produces: 'NOT_LEADER_OR_FOLLOWER', namesLeader: true })
    Object.assign(first.belief, { leader: 2, leaderEpoch: 4 })
    const questions = first.count('Metadata')
    const began = brokers.now
    await written(client)
    assert.equal(second.count('Produce'), 1)
    assert.equal(first.count('Metadata') + second.count('Metadata'), questions)
    assert.ok(brokers.now - began < 30, `after ${brokers.now - began} ms`)
  })
})

test('a leader that falls silent with a request under way is waited for until another one leads', async () => {
  const brokers = new Brokers()
  await brokers.run(async (first, second, client) => {
    first.produces = 'nothing'
    const began = brokers.now
    const writing = written(client)
    await brokers.simulation.wait(5000)
    assert.equal(first.count('Produce'), 1)
    brokers.cutOff()
    brokers.depose()
    await writing
    assert.equal(second.count('Produce'), 1)
    assert.ok(brokers.now - began < 8500, `after ${brokers.now - began} ms`)
  })
})

test('a leader that does not even take a connection is waited for until another one leads', async () => {
  const brokers = new Brokers()
  await brokers.run(async (_, second, client) => {
    brokers.cutOff()
    brokers.depose()
    const began = brokers.now
    await written(client)
    assert.equal(second.count('Produce'), 1)
    assert.ok(brokers.now - began < 2500, `after ${brokers.now - began} ms`)
  })
})

test('a leader that hangs up on a producer that wants no answers is asked about', async () => {
  const brokers = new Brokers()
  await brokers.run(async (first, second, client) => {
    const producer = new Producer(client, { lingerMs: 0, acks: 0 })
    await producer.send(TOPIC, [{ value: 'x', partition: 0 }])
    await brokers.simulation.wait(100)
    brokers.depose()
    brokers.simulation.network.reset(first.machine, brokers.simulation.node('client'))
    await brokers.simulation.wait(1000)
    await producer.send(TOPIC, [{ value: 'x', partition: 0 }])
    await brokers.simulation.wait(100)
    assert.equal(second.count('Produce'), 1)
    await producer.close()
  })
})

test('an older epoch never replaces a newer one, unless the topic is another', async () => {
  const brokers = new Brokers()
  await brokers.run(async (first, second, client) => {
    const leader = async () => (await client.topic(TOPIC, { fresh: true })).partitions[0]?.leader
    brokers.depose()
    client.metadata.doubt(TOPIC)
    assert.equal(await leader(), 2)
    assert.equal(second.count('Metadata'), 1)
    for (const each of brokers.all) Object.assign(each.belief, { leader: 1, leaderEpoch: 3 })
    for (let time = 0; time < 4; time++) assert.equal(await leader(), 2)
    assert.ok(first.count('Metadata') > 1, 'who said what is old is not asked for ever')
    for (const each of brokers.all) each.topicId = 'AAAAAAAAAAAAAAAAAAAAAg'
    assert.equal(await leader(), 1)
  })
})

test('an older epoch does not come back by one who has not heard of the topic either', async () => {
  const brokers = new Brokers()
  await brokers.run(async (_first, _second, client) => {
    const leader = async () => (await client.topic(TOPIC, { fresh: true })).partitions[0]?.leader
    brokers.depose()
    client.metadata.doubt(TOPIC)
    assert.equal(await leader(), 2)
    for (const each of brokers.all) each.knowsTopic = false
    await client.metadata.refresh([TOPIC])
    assert.equal(client.metadata.remembered(TOPIC), undefined)
    for (const each of brokers.all) Object.assign(each, { knowsTopic: true, belief: { leader: 1, leaderEpoch: 3 } })
    assert.equal(await leader(), 2)
    // And who has not heard of it is not asked for ever.
    for (const each of brokers.all.slice(1)) each.knowsTopic = false
    assert.equal(await leader(), 2)
    assert.notEqual(client.metadata.remembered(TOPIC), undefined)
  })
})

test('a topic never has fewer partitions than somebody said', async () => {
  const brokers = new Brokers()
  await brokers.run(async (_, second, client) => {
    second.partitions = 3
    client.metadata.doubt(TOPIC)
    assert.equal((await client.topic(TOPIC, { fresh: true })).partitions.length, 3)
    client.metadata.doubt(TOPIC)
    client.metadata.doubt(TOPIC)
    for (let time = 0; time < 3; time++) {
      assert.equal((await client.topic(TOPIC, { fresh: true })).partitions.length, 3)
    }
  })
})

test('what every broker answers at once is asked of the next one when it takes longer', async () => {
  const brokers = new Brokers()
  await brokers.run(async (_, second, client) => {
    brokers.cutOff()
    const began = brokers.now
    await client.metadata.refresh([TOPIC])
    assert.equal(second.count('Metadata'), 1)
    assert.ok(brokers.now - began < 600, `after ${brokers.now - began} ms`)
    await client.metadata.refresh([TOPIC])
    assert.ok(brokers.now - began < 700, 'who was slow is asked last')
  })
})

test('when nobody known answers the client begins again where it began', async () => {
  const brokers = new Brokers()
  await brokers.run(async (_, __, client) => {
    // The whole cluster has moved.
    client.brokers.know(new Map([[9, { host: 'b9', port: 9092 }]]))
    client.brokers.release('')
    await client.metadata.refresh([TOPIC])
    assert.equal(client.brokers.known.size, 3)
  })
})

test('of who asks to begin anew nothing is known afterwards but where it began', async () => {
  const brokers = new Brokers()
  await brokers.run(async (first, _, client) => {
    first.isOfAnotherTime = true
    await assert.rejects(client.metadata.refresh([TOPIC]), { code: 'REBOOTSTRAP_REQUIRED', retriable: true })
    assert.equal(client.brokers.known.size, 0)
    first.isOfAnotherTime = false
    await client.metadata.refresh([TOPIC])
    assert.equal(client.brokers.known.size, 3)
  })
})

test('what a broker that is cut off cannot do is asked of another', async () => {
  const brokers = new Brokers()
  for (const each of brokers.all) {
    const handle = () => {
      each.asked.push('UnregisterBroker')
      return { errorCode: each.id === 1 ? ErrorCode.REQUEST_TIMED_OUT : 0, errorMessage: null }
    }
    each.more.push(serve({ api: API.UnregisterBroker, handle }))
  }
  await brokers.run(async (first, second, client) => {
    await unregisterBroker(client, 3)
    assert.equal(first.count('UnregisterBroker'), 1)
    assert.equal(second.count('UnregisterBroker'), 1)
  })
})

test('who is silent is not waited for any more when it has left the cluster', async () => {
  const brokers = new Brokers()
  for (const each of brokers.all) {
    const handle = () => {
      each.asked.push('UnregisterBroker')
      return each.id === 1 ? new Promise<never>(() => {}) : { errorCode: 0, errorMessage: null }
    }
    each.more.push(serve({ api: API.UnregisterBroker, handle }))
  }
  await brokers.run(async (first, second, client) => {
    const began = brokers.now
    const asking = unregisterBroker(client, 3)
    await brokers.simulation.wait(5000)
    assert.equal(first.count('UnregisterBroker') + second.count('UnregisterBroker'), 1)
    for (const each of brokers.all) each.others.splice(each.others.indexOf(first), each.others.includes(first) ? 1 : 0)
    await asking
    assert.equal(second.count('UnregisterBroker'), 1)
    assert.ok(brokers.now - began < 8000, `after ${brokers.now - began} ms`)
  })
})

test('a topic is deleted by its id, and by that of a later one only if it was there when that was asked', async () => {
  const [old, now] = [TOPIC_ID, 'bZ6qOWWaNR9qZx5b8TV40g']
  const brokers = new Brokers()
  let there = now
  for (const each of brokers.all) {
    each.topicId = each.id === 1 ? old : now
    const handle = ({ topics: [topic] }: { topics: readonly { name: string | null; topicId: string }[] }) => {
      each.asked.push(`DeleteTopics ${topic?.name} ${topic?.topicId}`)
      const errorCode = topic?.topicId === there ? 0 : ErrorCode.UNKNOWN_TOPIC_ID
      if (errorCode === 0) there = ''
      return { responses: [{ name: null, topicId: topic?.topicId ?? '', errorCode, errorMessage: null }] }
    }
    each.more.push(serve({ api: API.DeleteTopics, handle }))
  }
  await brokers.run(async (first, _second, client) => {
    await assert.rejects(deleteTopic(client, TOPIC), { code: 'UNKNOWN_TOPIC_OR_PARTITION' })
    assert.deepEqual(
      new Set(brokers.all.flatMap(({ asked }) => asked.filter(each => /Delete/.test(each)))),
      new Set([`DeleteTopics null ${old}`]),
    )
    first.topicId = now
    await deleteTopic(client, TOPIC)
    assert.equal(there, '')
    // Who has not heard of the end is not believed. That a controller did not know it ends none.
    for (const each of brokers.all) each.topicId = now
    await assert.rejects(client.topic(TOPIC, { fresh: true }), { code: 'UNKNOWN_TOPIC_OR_PARTITION' })
    for (const id of [old, 'cZ6qOWWaNR9qZx5b8TV40g']) {
      for (const each of brokers.all) each.topicId = id
      assert.equal((await client.topic(TOPIC, { fresh: true })).id, id)
    }
  })
})

for (const silent of [false, true])
  test(`a coordinator that ${silent ? 'is silent' : 'does not answer in time'} is not asked who coordinates`, async () => {
    const brokers = new Brokers()
    for (const each of brokers.all) {
      const handle = ({ topics }: { topics: readonly { name: string; topicId: string }[] }) => {
        each.asked.push('OffsetCommit')
        if (each.id === 1 && silent) return new Promise<never>(() => {})
        const errorCode = each.id === 1 ? ErrorCode.REQUEST_TIMED_OUT : 0
        return { topics: topics.map(of => ({ ...of, partitions: [{ partitionIndex: 0, errorCode }] })) }
      }
      each.more.push(serve({ api: API.OffsetCommit, handle }))
    }
    await brokers.run(async (first, second, client) => {
      assert.equal(await client.coordinator('g'), 1)
      for (const each of brokers.all.slice(1)) each.coordinator = 2
      const began = brokers.now
      await commitOffsets(client, 'g', [{ topic: TOPIC, partition: 0, offset: 1 }])
      assert.equal(first.count('OffsetCommit'), 1)
      assert.equal(second.count('OffsetCommit'), 1)
      assert.ok(brokers.now - began < (silent ? 1300 : 300), `after ${brokers.now - began} ms`)
    })
  })

test('a leader from which nothing new comes is asked about, by and by less often', async () => {
  const brokers = new Brokers()
  for (const each of brokers.all) {
    const handle = ({ topics }: { topics: readonly { topicId: string }[] }) => {
      each.asked.push('Fetch')
      const partition = { partitionIndex: 0, errorCode: 0, highWatermark: 0, records: Buffer.alloc(0) }
      const responses = topics.map(({ topicId }) => ({ topicId, partitions: [partition] }))
      return new Promise<{ responses: typeof responses }>(resolve => {
        each.machine.world.clock.after(100, () => resolve({ responses }))
      })
    }
    each.more.push(serve({ api: API.Fetch, handle }))
  }
  await brokers.run(async (first, second, client) => {
    const consumer = new Consumer(client, { maxWaitMs: 100 })
    consumer.assign([{ topic: TOPIC, partition: 0, from: 0 }])
    const questions = () => brokers.all.reduce((sum, each) => sum + each.count('Metadata'), 0)
    const before = questions()
    for (const began = brokers.now; brokers.now - began < 4500; ) await consumer.poll(100)
    assert.equal(questions(), before)
    brokers.depose()
    for (const began = brokers.now; brokers.now - began < 1500; ) await consumer.poll(100)
    assert.ok(second.count('Fetch') > 0)
    const fetched = first.count('Fetch')
    for (const began = brokers.now; brokers.now - began < 100_000; ) await consumer.poll(100)
    assert.equal(first.count('Fetch'), fetched)
    assert.ok(questions() - before < 8, `${questions() - before} questions`)
    await consumer.close()
  })
})
