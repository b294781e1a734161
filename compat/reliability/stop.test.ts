/** SIGTERM and SIGINT in the middle of everything: a clean stop in less than a second, and a clean start after it. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createTopic } from '../../src/client/admin/topics.ts'
import { connect } from '../../src/client/client.ts'
import { API } from '../../src/protocol/apis.ts'
import { Server } from '../server.ts'
import { produceBody, RawProducer } from './raw-producer.ts'
import { channelOf, eventually, logLines, placesOf, readAll, world } from './rig.ts'

const TOPIC = 'stopping'
const PARTITIONS = 20
const BATCHES = 4000

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} with thousands of batches under way`, { timeout: 40_000 }, async t => {
    const server = await Server.create('tidemark')
    t.after(() => server.remove())
    await server.start()
    const client = await connect({ world, bootstrap: server.address })
    t.after(() => client.close())
    await createTopic(client, { name: TOPIC, partitions: PARTITIONS, configs: { 'segment.bytes': '1048576' } })
    const channels = await Promise.all(Array.from({ length: 4 }, () => channelOf(server)))
    const producer = await RawProducer.create(channels[0] as (typeof channels)[0])
    const acknowledged = Array.from({ length: PARTITIONS }, () => new Map<string, number>())
    let settled = 0
    const work: Promise<void>[] = []
    for (let number = 0; number < BATCHES; number++) {
      const partition = number % PARTITIONS
      const value = `batch ${number}`
      const batch = producer.batch([value.padEnd(500)], Math.floor(number / PARTITIONS))
      // All of a partition by one connection: in order.
      const channel = channels[partition % channels.length] as (typeof channels)[0]
      const sent = channel
        .ask(API.Produce, produceBody(TOPIC, partition, batch), { versionMax: 12 })
        .then(({ responses }) => {
          const answer = responses[0]?.partitionResponses[0]
          if (answer?.errorCode === 0) acknowledged[partition]?.set(value, answer.baseOffset)
        })
        .catch(() => {})
        .finally(() => settled++)
      work.push(sent)
    }
    // In the middle of it.
    await eventually('some are acknowledged', () => settled > 100)
    const underWay = BATCHES - settled
    const begun = performance.now()
    const code = await server.stop(signal)
    const stoppedMs = Math.round(performance.now() - begun)
    assert.equal(code, 0, server.lastLog())
    await Promise.all(work)
    assert.ok(existsSync(join(server.folder, 'data', '.kafka_cleanshutdown')))

    const seen = logLines(server).length
    await server.start()
    const lines = logLines(server).slice(seen)
    assert.deepEqual(
      lines.filter(({ level, msg }) => level >= 40 || /recover|not clean|checking/.test(msg)),
      [],
    )
    const again = await connect({ world, bootstrap: server.address })
    t.after(() => again.close())
    let count = 0
    for (const [partition, values] of acknowledged.entries()) {
      const records = await readAll(again, TOPIC, partition)
      const places = placesOf(records.map(each => ({ ...each, value: Buffer.from(String(each.value).trimEnd()) })))
      for (const [value, offset] of values) assert.equal(places.get(value), offset, value)
      count += values.size
    }
    t.diagnostic(`stopped in ${stoppedMs} ms with ${underWay} batches under way; ${count} were acknowledged`)
  })
}

test('after a crash the next start checks the logs and says so, and the stop after that is clean again', async t => {
  const server = await Server.create('tidemark')
  t.after(() => server.remove())
  await server.start()
  const channel = await channelOf(server)
  const client = await connect({ world, bootstrap: server.address })
  await createTopic(client, { name: TOPIC, partitions: 1 })
  const producer = await RawProducer.create(channel)
  const taken = async () => (await producer.send(channel, TOPIC, 0, producer.batch(['a'], 0))).errorCode === 0
  await eventually('the new partition is led', taken)
  channel.close()
  client.close()
  const said: boolean[] = []
  const start = async () => {
    const seen = logLines(server).length
    await server.start()
    said.push(
      logLines(server)
        .slice(seen)
        .some(({ msg }) => /last stop was not clean/.test(msg)),
    )
  }
  await server.kill()
  await start()
  assert.equal(await server.stop(), 0)
  assert.ok(existsSync(join(server.folder, 'data', '.kafka_cleanshutdown')))
  await start()
  assert.deepEqual(said, [true, false])
})
