/** A file system that is really full: writes are refused with a reason, all else goes on, and writes come back by themselves. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { describeLogDirs } from '../../src/client/admin/cluster.ts'
import { alterConfigs } from '../../src/client/admin/configs.ts'
import { commitOffsets, describeGroup, fetchOffsets } from '../../src/client/admin/groups.ts'
import { createTopic, listTopics } from '../../src/client/admin/topics.ts'
import { type Client, ClientError, connect } from '../../src/client/client.ts'
import { Consumer } from '../../src/client/consumer.ts'
import type { Channel } from '../../src/network/channel.ts'
import { ErrorCode } from '../../src/protocol/errors.ts'
import { Server } from '../server.ts'
import { RawProducer } from './raw-producer.ts'
import { channelOf, eventually, logLines, placesOf, readAll, world } from './rig.ts'
import { SmallDisk, withoutMount } from './small-disk.ts'

const MiB = 1 << 20
const DISK_BYTES = 24 * MiB
const TOPIC = 'disk'

const skip = withoutMount()

function smallDisk(t: TestContext): SmallDisk {
  const disk = new SmallDisk(DISK_BYTES)
  t.after(() => disk.remove())
  return disk
}

/** Writes numbered values to one partition, retrying as clients do, and keeps what was acknowledged. */
class Writer {
  readonly acknowledged = new Map<string, number>()
  readonly #channel: () => Channel
  readonly #producer: RawProducer
  readonly #partition: number
  #sequence = 0

  constructor(channel: () => Channel, producer: RawProducer, partition: number) {
    this.#channel = channel
    this.#producer = producer
    this.#partition = partition
  }

  /** @returns the error code; after one that is not 0 the same value is sent again the next time. */
  async write(bytes = 50_000): Promise<number> {
    const value = `value ${this.#sequence}`
    const batch = this.#producer.batch([value.padEnd(bytes)], this.#sequence)
    const { errorCode, baseOffset } = await this.#producer.send(this.#channel(), TOPIC, this.#partition, batch)
    if (errorCode === 0) {
      this.acknowledged.set(value, baseOffset)
      this.#sequence++
    }
    return errorCode
  }

  async untilRefused(): Promise<number> {
    for (let count = 0; count < 2 * (DISK_BYTES / 50_000); count++) {
      const errorCode = await this.write()
      if (errorCode !== 0) return errorCode
    }
    throw new Error('the disk does not get full')
  }

  async check(client: Client): Promise<void> {
    const records = await readAll(client, TOPIC, this.#partition)
    const shown = records.map(record => ({ ...record, value: Buffer.from(String(record.value).trimEnd()) }))
    assert.deepEqual([...placesOf(shown)], [...this.acknowledged])
  }
}

async function begin(t: TestContext, logDirs: string): Promise<{ server: Server; client: Client }> {
  const server = await Server.create('tidemark', undefined, {
    'log.dirs': logDirs,
    'offsets.topic.num.partitions': '1',
    'offsets.topic.segment.bytes': String(MiB),
  })
  t.after(() => server.remove())
  await server.start()
  const client = await connect({ world, bootstrap: server.address, callTimeoutMs: 15_000, retryBackoffMs: 20 })
  t.after(() => client.close())
  return { server, client }
}

/** Which partitions of the topic lie below a folder. */
async function partitionsIn(client: Client, folder: string): Promise<Set<string>> {
  const dirs = await describeLogDirs(client)
  const inFolder = dirs.filter(({ path }) => path.startsWith(folder)).flatMap(({ partitions }) => partitions)
  return new Set(inFolder.map(({ topic, partition }) => `${topic}-${partition}`))
}

function complaints(server: Server): ReturnType<typeof logLines> {
  return logLines(server).filter(({ level }) => level === 50)
}

test('one of two folders is full: refused there with a reason, served elsewhere, taken again without a restart', {
  skip,
  timeout: 60_000,
}, async t => {
  const disk = smallDisk(t)
  const roomy = mkdtempSync(join(tmpdir(), 'tidemark-roomy-'))
  t.after(() => rmSync(roomy, { recursive: true, force: true }))
  const { server, client } = await begin(t, `${roomy},${disk.data}`)
  // Partitions go to the folder with the fewest, the first one of equals: so offsets are committed where there is room.
  await createTopic(client, { name: 'first', partitions: 2 })
  await commitOffsets(client, 'tools', [{ topic: 'first', partition: 0, offset: 1 }])
  await createTopic(client, { name: TOPIC, partitions: 4, configs: { 'segment.bytes': String(4 * MiB) } })
  const here = await partitionsIn(client, disk.folder)
  const [full, other] = [0, 1, 2, 3]
    .sort((a, b) => Number(here.has(`${TOPIC}-${b}`)) - Number(here.has(`${TOPIC}-${a}`)))
    .filter((_, at) => at % 3 === 0)
  assert.ok(full !== undefined && other !== undefined && here.has(`${TOPIC}-${full}`) && !here.has(`${TOPIC}-${other}`))
  assert.ok(!here.has('__consumer_offsets-0'))

  let channel = await channelOf(server)
  t.after(() => channel.close())
  const inFull = new Writer(() => channel, await RawProducer.create(channel), full)
  const inOther = new Writer(() => channel, await RawProducer.create(channel), other)
  const member = new Consumer(client, {
    group: 'members',
    sessionTimeoutMs: 6000,
    heartbeatIntervalMs: 300,
    autoCommitIntervalMs: 0,
    offsetReset: 'earliest',
  })
  member.subscribe([TOPIC])
  t.after(() => member.close())

  disk.leave(6 * MiB)
  assert.equal(await inFull.untilRefused(), ErrorCode.KAFKA_STORAGE_ERROR)
  assert.ok(inFull.acknowledged.size > 80, `${inFull.acknowledged.size} values were taken`)
  const [line] = complaints(server)
  assert.match(String(line?.folder), new RegExp(`^${disk.data}/${TOPIC}-${full}$`))
  assert.match(String(line?.msg), /refusing writes with KAFKA_STORAGE_ERROR .*free space on this file system/)

  // Refused for as long as it is full, while everything else is as ever.
  const fullUntil = performance.now() + 2_000
  while (performance.now() < fullUntil) {
    assert.equal(await inFull.write(), ErrorCode.KAFKA_STORAGE_ERROR)
    assert.equal(await inOther.write(1000), 0)
    await member.poll(50)
    await member.commit()
    assert.equal((await listTopics(client)).filter(({ name }) => name === TOPIC).length, 1)
  }
  await inFull.check(client)
  await inOther.check(client)
  assert.equal((await describeGroup(client, 'members')).state, 'Stable')
  await alterConfigs(client, { type: 'topic', name: TOPIC }, [{ name: 'retention.ms', op: 'set', value: '7200000' }])
  assert.equal(complaints(server).length, 1, 'one line, not one for every request')

  disk.free()
  const freed = performance.now()
  await eventually('the folder takes writes again', async () => (await inFull.write()) === 0)
  const resumedMs = Math.round(performance.now() - freed)
  for (let count = 0; count < 10; count++) assert.equal(await inFull.write(), 0)
  await inFull.check(client)

  // Full once more, and now the process dies: it starts while the disk is full, and serves what it has.
  disk.leave(1 * MiB)
  assert.equal(await inFull.untilRefused(), ErrorCode.KAFKA_STORAGE_ERROR)
  await server.restart()
  channel = await channelOf(server)
  await inFull.check(client)
  await inOther.check(client)
  assert.equal(await inOther.write(), 0)
  assert.notEqual(await inFull.write(8 * MiB), 0)
  disk.free()
  await eventually('the folder takes writes after the restart', async () => (await inFull.write()) === 0)
  await inFull.check(client)
  assert.equal(await server.stop(), 0)
  await server.start()
  await inFull.check(client)
  t.diagnostic(`${inFull.acknowledged.size} values; writes resumed ${resumedMs} ms after space was freed`)
})

test('the only folder is full, with the metadata in it: the node lives, reads and groups go on, and all comes back', {
  skip,
  timeout: 60_000,
}, async t => {
  const disk = smallDisk(t)
  const { server, client } = await begin(t, disk.data)
  await createTopic(client, { name: TOPIC, partitions: 1 })
  await commitOffsets(client, 'tools', [{ topic: TOPIC, partition: 0, offset: 1 }])
  const channel = await channelOf(server)
  t.after(() => channel.close())
  const writer = new Writer(() => channel, await RawProducer.create(channel), 0)
  const member = new Consumer(client, {
    group: 'members',
    sessionTimeoutMs: 6000,
    heartbeatIntervalMs: 300,
    autoCommitIntervalMs: 0,
    offsetReset: 'earliest',
  })
  member.subscribe([TOPIC])
  t.after(() => member.close())
  await writer.write()
  await eventually('the member reads', async () => (await member.poll(100)).length > 0)

  disk.leave(2 * MiB)
  assert.equal(await writer.untilRefused(), ErrorCode.KAFKA_STORAGE_ERROR)
  disk.leave(0)
  const made = createTopic(client, { name: 'more' }).then(
    () => undefined,
    (error: unknown) => error,
  )
  const fullUntil = performance.now() + 2_000
  while (performance.now() < fullUntil) {
    assert.equal(await writer.write(), ErrorCode.KAFKA_STORAGE_ERROR)
    await member.poll(50)
    assert.ok((await listTopics(client)).some(({ name }) => name === TOPIC))
    assert.ok((await describeLogDirs(client)).length === 1)
  }
  await writer.check(client)
  assert.equal((await describeGroup(client, 'members')).state, 'Stable')

  disk.free()
  await eventually('writes are taken again', async () => (await writer.write()) === 0)
  const failure = await made
  assert.ok(failure === undefined || failure instanceof ClientError, String(failure))
  await createTopic(client, { name: 'even-more' })
  await member.commit()
  await commitOffsets(client, 'tools', [{ topic: TOPIC, partition: 0, offset: 2 }])
  await writer.check(client)
  assert.equal(await server.stop(), 0)
  await server.start()
  await writer.check(client)
  assert.equal((await fetchOffsets(client, 'tools'))[0]?.offset, 2)
  assert.ok((await listTopics(client)).some(({ name }) => name === 'even-more'))
})
