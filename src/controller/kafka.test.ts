/** Kafka's own tools read our folder, and a folder that Kafka left opens here. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { realWorld } from '#world/real/real.ts'
import { Client, clusterOf, startController } from './testing/rig.ts'

const PEER = fileURLToPath(new URL('../../../shared/peer', import.meta.url))

function missing(): string | false {
  if (!existsSync(`${PEER}/tool`)) return 'the oracle ../shared/peer is not there'
  return spawnSync('java', ['-version']).status === 0 ? false : 'java is missing'
}

const skip = missing()
const world = realWorld({ log: { level: 'error' } })

function tool(...args: string[]): string {
  const run = spawnSync(`${PEER}/tool`, args, {
    encoding: 'utf8',
    env: { ...process.env, KAFKA_HEAP_OPTS: '-Xmx128m' },
  })
  assert.equal(run.status, 0, `${args.join(' ')}: ${run.stderr}`)
  return run.stdout
}

const dump = (file: string) => tool('kafka-dump-log', '--cluster-metadata-decoder', '--files', file)

test('kafka-dump-log reads the metadata log and its snapshots', { skip }, async t => {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-dump-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const controller = await startController(world, folder, { snapshotBytes: 1200 })
  const client = await Client.connect(world, controller.address)
  await client.register()
  await client.heartbeat()
  for (let index = 0; index < 8; index++) await client.createTopic(`topic-${index}`, 2)
  client.channel.close()
  await controller.stop()
  const metadata = join(folder, '__cluster_metadata-0')
  const names = await readdir(metadata)
  const logs = await Promise.all(names.filter(name => name.endsWith('.log')).map(name => dump(join(metadata, name))))
  const newest = names
    .filter(name => name.endsWith('.checkpoint'))
    .sort()
    .at(-1)
  assert.ok(newest !== undefined)
  const snapshot = dump(join(metadata, newest))
  for (const text of [...logs, snapshot]) assert.doesNotMatch(text, /isvalid: false|mismatch|corrupt/i)
  assert.match(snapshot, /SnapshotHeader .*KRaftVersion .*"kRaftVersion":1.*KRaftVoters .*"voterId":1.*SnapshotFooter/s)
  assert.match(snapshot, /REGISTER_BROKER_RECORD.*"name":"topic-0"/s)
  assert.match(logs.join(''), /"name":"topic-7"/)
})

/** Two ports in a row that nobody has, less what peer/broker adds for node 1. */
async function freePortBase(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  assert.ok(typeof address === 'object' && address !== null)
  return address.port - 10_000
}

function startKafka(folder: string, base: number): ChildProcess {
  return spawn(`${PEER}/broker`, [folder, '1'], {
    stdio: 'ignore',
    env: { ...process.env, KAFKA_HEAP: '-Xms128m -Xmx256m', KAFKA_PORT_BASE: String(base) },
  })
}

async function stopped(kafka: ChildProcess): Promise<void> {
  if (kafka.exitCode !== null) return
  const ended = new Promise(resolve => kafka.once('exit', resolve))
  kafka.kill('SIGTERM')
  await ended
}

test('a folder that Kafka left opens, goes on, and Kafka goes on with it again', {
  skip,
  timeout: 180_000,
}, async t => {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-kafka-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const base = await freePortBase()
  const server = `127.0.0.1:${base + 10_000}`
  let kafka = startKafka(folder, base)
  t.after(() => stopped(kafka))
  tool('kafka-topics', '--bootstrap-server', server, '--create', '--topic', 'from-kafka', '--partitions', '3')
  await stopped(kafka)

  const data = join(folder, 'data')
  const identity = await readFile(join(data, 'meta.properties'), 'utf8')
  const value = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(identity)?.[1] ?? ''
  const config = { cluster: clusterOf(value('cluster.id')), directoryId: value('directory.id') }
  const kept = join(folder, 'kept')
  await cp(data, kept, { recursive: true })

  const controller = await startController(world, data, config)
  assert.equal(controller.image?.topicByName('from-kafka')?.partitions.length, 3)
  assert.equal(controller.image.skipped, 0)
  // A fixed list of voters stays one.
  assert.equal(controller.kraftVersion, 0)
  const state = JSON.parse(await readFile(join(data, '__cluster_metadata-0/quorum-state'), 'utf8'))
  const before = JSON.parse(await readFile(join(kept, '__cluster_metadata-0/quorum-state'), 'utf8'))
  assert.deepEqual(Object.keys(state), Object.keys(before))
  assert.deepEqual(state, { ...before, leaderEpoch: before.leaderEpoch + 1 })
  const client = await Client.connect(world, controller.address)
  await client.channel.negotiate()
  client.channel.close()
  await controller.stop()

  kafka = startKafka(folder, base)
  assert.match(tool('kafka-topics', '--bootstrap-server', server, '--list'), /from-kafka/)
})
