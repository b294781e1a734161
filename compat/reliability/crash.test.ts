/** kill -9 again and again under idempotent producers: what was acknowledged is there exactly once and in order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { commitOffsets, fetchOffsets } from '../../src/client/admin/groups.ts'
import { createTopic } from '../../src/client/admin/topics.ts'
import { type Client, connect } from '../../src/client/client.ts'
import { Producer } from '../../src/client/producer.ts'
import { Server } from '../server.ts'
import { eventually, factor, placesOf, readAll, world } from './rig.ts'

const TOPIC = 'crashes'
const PARTITIONS = 3
/** How much a producer leaves unacknowledged at most. */
const WINDOW = 200

/** Where every acknowledged value is, by partition, in the order in which the values were sent. */
type Acknowledged = Map<string, number>[]

/** Sends numbered values without pause until it is told to stop; everything is retried, so that in the end all is acknowledged. */
async function produce(
  client: Client,
  name: string,
  acknowledged: Acknowledged,
  stopped: () => boolean,
): Promise<number> {
  const producer = new Producer(client, { lingerMs: 2, batchBytes: 4000, deliveryTimeoutMs: 60_000 })
  let sent = 0
  const underWay = new Set<Promise<void>>()
  while (!stopped()) {
    const partition = sent % PARTITIONS
    const value = `${name} ${sent++}`
    const done = producer.send(TOPIC, [{ partition, value: value.padEnd(100) }]).then(([metadata]) => {
      assert.ok(metadata !== undefined)
      // -1: it is there, written by an attempt whose answer was lost, and the broker no longer knows where.
      acknowledged[partition]?.set(value, metadata.offset)
      underWay.delete(done)
    })
    underWay.add(done)
    if (underWay.size >= WINDOW) await Promise.race(underWay)
    else if (sent % 20 === 0) await delay(1)
  }
  await Promise.all(underWay)
  await producer.close()
  return sent
}

/** Commits rising offsets; whatever was acknowledged last must be found. */
async function commit(client: Client, committed: { offset: number }, stopped: () => boolean): Promise<void> {
  for (let offset = 1; !stopped(); offset++) {
    await commitOffsets(client, 'committers', [{ topic: TOPIC, partition: 0, offset, metadata: `number ${offset}` }])
    committed.offset = offset
    await delay(5)
  }
}

async function check(server: Server, acknowledged: Acknowledged): Promise<number> {
  const client = await connect({ world, bootstrap: server.address })
  try {
    let count = 0
    for (const [partition, values] of acknowledged.entries()) {
      const known = [...values]
      const records = await readAll(client, TOPIC, partition)
      const places = placesOf(records.map(record => ({ ...record, value: trimmed(record.value) })))
      count += places.size
      const last = new Map<string, number>()
      for (const value of places.keys()) {
        const [name = '', number = -1] = [value.split(' ')[0], Number(value.split(' ')[1])]
        assert.ok(number > (last.get(name) ?? -1), `${value} comes after ${name} ${last.get(name)}`)
        last.set(name, number)
      }
      for (const [value, offset] of known) {
        const place = places.get(value)
        assert.ok(place !== undefined, `${value}, acknowledged at ${offset}, is lost`)
        assert.ok(offset === -1 || place === offset, `${value}, acknowledged at ${offset}, is at ${place}`)
      }
    }
    return count
  } finally {
    client.close()
  }
}

function trimmed(value: Buffer | null): Buffer {
  return Buffer.from((value ?? Buffer.alloc(0)).toString().trimEnd())
}

for (const { name, configs, kills } of [
  { name: 'as it comes', configs: {}, kills: 6 },
  { name: 'with flush.messages=1', configs: { 'flush.messages': '1' }, kills: 4 },
]) {
  test(`killed ${kills * factor} times, ${name}`, { timeout: 60_000 * factor }, async t => {
    const server = await Server.create('tidemark', undefined, { 'log.segment.bytes': '1048576' })
    t.after(() => server.remove())
    await server.start()
    // A restart under load may take its time; that is printed and not what is judged.
    const client = await connect({ world, bootstrap: server.address, callTimeoutMs: 60_000, retryBackoffMs: 20 })
    t.after(() => client.close())
    await createTopic(client, { name: TOPIC, partitions: PARTITIONS, configs })
    const acknowledged: Acknowledged = Array.from({ length: PARTITIONS }, () => new Map())
    const committed = { offset: 0 }
    let over = false
    const stopped = () => over
    t.after(() => {
      over = true
    })
    const work = Promise.all([
      produce(client, 'a', acknowledged, stopped),
      produce(client, 'b', acknowledged, stopped),
      commit(client, committed, stopped),
    ])
    work.catch(() => {
      over = true
    })
    await eventually('records are acknowledged', () => acknowledged.every(({ size }) => size > 0))
    const restartsMs: number[] = []
    for (let kill = 0; kill < kills * factor && !over; kill++) {
      await delay(100 + Math.random() * 300)
      await server.kill()
      const begun = performance.now()
      await server.start()
      restartsMs.push(Math.round(performance.now() - begun))
      await check(server, acknowledged)
      const before = committed.offset
      const [found] = await fetchOffsets(client, 'committers')
      assert.ok((found?.offset ?? 0) >= before, `${before} was committed, ${found?.offset} found`)
    }
    over = true
    const [a, b] = await work
    // Nothing was given up, so all is there, and nothing else.
    assert.equal(await check(server, acknowledged), a + b)
    const [found] = await fetchOffsets(client, 'committers')
    assert.ok((found?.offset ?? 0) >= committed.offset)
    assert.equal(found?.metadata, `number ${found?.offset}`)
    t.diagnostic(`${a + b} records, ${committed.offset} commits; restarts took ${restartsMs.join(', ')} ms`)
  })
}
