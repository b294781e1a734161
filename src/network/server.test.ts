import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock, Listener, Logger, Network, Sink, Socket } from '#world/world.ts'
import { DEFAULT_CONNECTION_LIMITS } from './connection.ts'
import { ConnectionQuota } from './connection-quota.ts'
import { MemoryBudget } from './memory-budget.ts'
import { Server, type ServerOptions } from './server.ts'

const still: Clock = { now: () => 0, monotonic: () => 0, after: () => ({ cancel() {} }), soon: run => run() }
const log: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }

async function listen(limits: Partial<ServerOptions>, clock = still) {
  let accept: (socket: Socket) => void = () => {}
  const address = { host: '127.0.0.1', port: 1 }
  const network = {
    listen: async (_address: unknown, take: (socket: Socket) => void): Promise<Listener> => {
      accept = take
      return { address, close: async () => {} }
    },
  } as unknown as Network
  const options = {
    name: 'PLAINTEXT',
    address,
    service: new Map(),
    limits: DEFAULT_CONNECTION_LIMITS,
    budget: new MemoryBudget(-1, clock),
    idleMs: 0,
    connectionsMax: 100,
    connectionsPerHostMax: 100,
    ...limits,
  }
  const server = await Server.listen(options, network, clock, log)
  const dial = (host: string, times: number): number => {
    const before = server.connections
    for (let count = 0; count < times; count++) {
      const remote = { host, port: count }
      accept({ local: address, remote, attach() {}, destroy() {} } as unknown as Socket)
    }
    return server.connections - before
  }
  return { server, dial }
}

test('connections are limited together, by address, and for single addresses by their own limit', async () => {
  const ofHost = new Map([
    ['10.0.0.1', 5],
    ['10.0.0.2', 0],
  ])
  const { dial } = await listen({ quota: new ConnectionQuota({ all: 9, perHost: 3, ofHost }) })
  assert.equal(dial('10.0.0.1', 10), 5)
  assert.equal(dial('10.0.0.2', 10), 0)
  assert.equal(dial('10.0.0.3', 10), 3)
  assert.equal(dial('10.0.0.4', 10), 1)
})

test('who looks idle when the node wakes is closed only if nothing that it sent waits to be read', async () => {
  let now = 0
  let timer = (): void => {}
  const clock: Clock = {
    ...still,
    monotonic: () => now,
    after: (_delay, run) => {
      timer = run
      return { cancel() {} }
    },
  }
  const { server } = await listen({ idleMs: 1000 }, clock)
  const dial = (): { closed: boolean; sink: Sink | undefined } => {
    const dialed: ReturnType<typeof dial> = { closed: false, sink: undefined }
    const address = { host: '10.0.0.1', port: 1 }
    const attach = (sink: Sink): void => {
      dialed.sink = sink
    }
    const destroy = (): void => {
      dialed.closed = true
    }
    server.accept({ local: address, remote: address, queuedBytes: 0, attach, destroy } as unknown as Socket)
    return dialed
  }
  const [asked, silent] = [dial(), dial()]
  now = 60_000
  timer()
  asked.sink?.space()
  asked.sink?.received(1)
  timer()
  assert.deepEqual([asked.closed, silent.closed], [false, true])
})
