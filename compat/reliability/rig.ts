/** What the reliability tests share: a world, clients, numbered records and their checker, Kafka's tools over files. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { listOffsets } from '../../src/client/admin/offsets.ts'
import { type Client, connect } from '../../src/client/client.ts'
import { type ConsumedRecord, Consumer } from '../../src/client/consumer.ts'
import { Channel } from '../../src/network/channel.ts'
import { realClock } from '../../src/world/real/clock.ts'
import { realNetwork } from '../../src/world/real/network.ts'
import { realRandom } from '../../src/world/real/random.ts'
import { peer } from '../processes.ts'
import { runs, type Server } from '../server.ts'

export { eventually } from '../processes.ts'

export const world = { clock: realClock, network: realNetwork, random: realRandom }

/** Longer runs, for whoever has the time: RELIABILITY_FACTOR=10 does ten times as much of what is repeated. */
export const factor: number = Math.max(1, Number(process.env.RELIABILITY_FACTOR ?? '1'))

export function clientOf(server: Server): Promise<Client> {
  return connect({ world, bootstrap: server.address })
}

export async function channelOf(server: Server): Promise<Channel> {
  const channel = await Channel.connect(world, { host: '127.0.0.1', port: server.port })
  await channel.negotiate()
  return channel
}

/** Why what asks a real Kafka cannot run here, if so. */
export async function withoutKafka(): Promise<string | false> {
  if (!existsSync(join(peer, 'broker'))) return '../shared/peer is missing'
  return (await runs('java', ['-version'])) ? false : 'java is missing'
}

/** Everything that a partition holds, in the order in which it is served. */
export async function readAll(
  client: Client,
  topic: string,
  partition = 0,
  isolation: 'read_uncommitted' | 'read_committed' = 'read_uncommitted',
): Promise<ConsumedRecord[]> {
  const of = { topic, partition }
  const [earliest] = await listOffsets(client, [{ ...of, spec: 'earliest' }])
  const [latest] = await listOffsets(client, [{ ...of, spec: 'latest' }], {
    committed: isolation === 'read_committed',
  })
  assert.ok(earliest !== undefined && latest !== undefined)
  const consumer = new Consumer(client, { maxWaitMs: 100, isolation })
  consumer.assign([{ ...of, from: earliest.offset }])
  const records: ConsumedRecord[] = []
  const until = performance.now() + 30_000
  // By position, not by the last record: the end of a log may hold no record that a consumer is shown.
  while ((consumer.position(of) ?? 0) < latest.offset) {
    assert.ok(
      performance.now() < until,
      `${topic}-${partition} is read to ${consumer.position(of)} of ${latest.offset}`,
    )
    records.push(...(await consumer.poll(200)))
  }
  await consumer.close()
  return records
}

/** Where each value is, and that no offset and no value is there twice. */
export function placesOf(records: readonly ConsumedRecord[]): Map<string, number> {
  const places = new Map<string, number>()
  let last = -1
  for (const { offset, value } of records) {
    assert.ok(offset > last, `offset ${offset} comes after ${last}`)
    last = offset
    const text = (value ?? Buffer.alloc(0)).toString('latin1')
    assert.ok(!places.has(text), `${text.slice(0, 40)} is there twice, at ${places.get(text)} and ${offset}`)
    places.set(text, offset)
  }
  return places
}

/** Resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
  return pages * 4096
}

/** The lines that a server has logged, each with its level (pino's number) and message. */
export function logLines(server: Server): { level: number; msg: string; [field: string]: unknown }[] {
  return readFileSync(server.logFile, 'utf8')
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line))
}

/** Kafka's tools in a small heap. */
export async function tool(...args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const env = { ...process.env, TOOL_HEAP: '-Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC' }
  return await promisify(execFile)(join(peer, 'tool'), [...args], { env, maxBuffer: 1 << 28 })
}

/** What `golden verify-log` says of a file or folder. */
export function verifyLog(path: string): { readonly ok: boolean; readonly [field: string]: unknown } {
  const { stdout, stderr } = spawnSync(join(peer, 'golden'), ['verify-log', path], { encoding: 'utf8' })
  assert.ok(stdout.startsWith('{'), stderr)
  return JSON.parse(stdout)
}

/** The files below a data folder with this suffix. */
export async function filesOf(data: string, suffix: string): Promise<string[]> {
  const names = await readdir(data, { recursive: true })
  return names
    .filter(name => name.endsWith(suffix))
    .map(name => join(data, name))
    .sort()
}
