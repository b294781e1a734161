/** One run: two servers, the same calls to both, in the same order. */
import { dirname } from 'node:path'
import { SeededRandom } from '#base/random.ts'
import { Channel } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { realWorld } from '#world/real/real.ts'
import { Server, type ServerKind } from '../server.ts'
import { Findings } from './findings.ts'
import { Same } from './same.ts'
import { SITUATIONS } from './situations/index.ts'
import { type Side, Twin } from './twin.ts'

/** What would make the same call be answered differently by the clock, or by what each takes for its default. */
const SETTINGS = {
  'log.retention.ms': '-1',
  'node.id': '1',
  'broker.rack': 'rack1',
  // As the peer's script has them.
  'broker.session.timeout.ms': '4000',
  'broker.heartbeat.interval.ms': '500',
  'offsets.topic.replication.factor': '1',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
}

export interface RunOptions {
  readonly seed: number
  readonly against?: ServerKind
  readonly only?: readonly string[]
  readonly tell?: (line: string) => void
}

// The peer lives for a minute only: its first compiler serves better than its last.
process.env.JAVA_TOOL_OPTIONS ??= '-XX:TieredStopAtLevel=1 -Xshare:auto'

export async function run({ seed, against = 'tidemark', only, tell = () => {} }: RunOptions): Promise<Findings> {
  const findings = new Findings()
  const servers = await Promise.all([
    Server.create('kafka', undefined, SETTINGS),
    Server.create(against, undefined, SETTINGS),
  ])
  try {
    const begun = performance.now()
    await Promise.all(servers.map(server => server.start()))
    tell(`both started: ${((performance.now() - begun) / 1000).toFixed(1)} s`)
    const own = servers.map(server => [
      [dirname(server.logFile), 'its folder'],
      [String(server.port), 'its port'],
      [String(server.port + 1), 'its next port'],
    ])
    const [left, right] = servers
    const sides = { same: new Same(), own: own as unknown as Twin['sides']['own'] }
    const twin = new Twin([left.port, right.port], sides, findings, new SeededRandom(seed))
    for (const side of [0, 1] as const) twin.offer(side, await offered(servers[side].port))
    await twin.everyVersion(API.DescribeCluster, {})
    for (const situation of SITUATIONS) {
      if (only !== undefined && !only.includes(situation.name)) continue
      const from = performance.now()
      const before = findings.requests
      findings.situation = situation.name
      try {
        await situation.perform(twin)
      } catch (error) {
        findings.fail(error)
      }
      const seconds = ((performance.now() - from) / 1000).toFixed(1)
      tell(`${situation.name}: ${findings.requests - before} requests, ${seconds} s`)
    }
    twin.close()
    if (findings.unexplained.length > 0 && process.env.DIFFERENTIAL_LOG !== undefined)
      tell(`${left.lastLog(40)}\n${right.lastLog(60)}`)
  } finally {
    await Promise.all(servers.map(server => server.remove()))
  }
  return findings
}

async function offered(port: number): Promise<Map<number, readonly [number, number]>> {
  const channel = await Channel.connect(realWorld(), { host: '127.0.0.1', port })
  const { apiKeys } = await channel.negotiate()
  await channel.close()
  return new Map(apiKeys.map(api => [api.apiKey, [api.minVersion, api.maxVersion] as const]))
}

export type { Side }
