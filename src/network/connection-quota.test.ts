import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConnectionQuota, type Counted } from './connection-quota.ts'

/** Joins as many as are let in. */
function dial(quota: ConnectionQuota, listener: string, host: string, times: number): Counted[] {
  const joined: Counted[] = []
  for (let count = 0; count < times; count++) {
    if (quota.refuses(listener, host) !== undefined) continue
    const connection = { listener, remote: { host, port: count }, lastActive: count, close() {} }
    quota.join(connection)
    joined.push(connection)
  }
  return joined
}

test('the connections of all listeners count together, and so do those of one address', () => {
  const quota = new ConnectionQuota({ all: 10, perHost: 6, ofHost: new Map([['10.0.0.9', 1]]) })
  assert.equal(dial(quota, 'A', '10.0.0.1', 4).length, 4)
  assert.equal(dial(quota, 'B', '10.0.0.1', 4).length, 2)
  assert.equal(quota.refuses('B', '10.0.0.1'), 'max.connections.per.ip')
  assert.equal(dial(quota, 'B', '10.0.0.9', 3).length, 1)
  assert.equal(quota.refuses('A', '10.0.0.9'), 'max.connections.per.ip.overrides')
  assert.equal(dial(quota, 'B', '10.0.0.2', 9).length, 3)
  assert.equal(quota.refuses('A', '10.0.0.3'), 'max.connections')
})

test('a listener has its own limit beside that of all', () => {
  const quota = new ConnectionQuota({ all: 10, ofListener: new Map([['A', 2]]) })
  assert.equal(dial(quota, 'A', 'a', 5).length, 2)
  assert.equal(quota.refuses('A', 'a'), 'listener.name.a.max.connections')
  assert.equal(dial(quota, 'B', 'a', 20).length, 8)
})

test('limits change while connections are there: those stay, and what left makes room by the new ones', () => {
  const quota = new ConnectionQuota({ all: 4 })
  const four = dial(quota, 'A', 'a', 9)
  quota.limits = { all: 2 }
  assert.equal(quota.count, 4)
  for (const connection of four.slice(0, 2)) quota.leave(connection)
  assert.equal(dial(quota, 'A', 'a', 1).length, 0)
  quota.limits = { all: 3 }
  assert.equal(dial(quota, 'A', 'a', 5).length, 1)
  quota.leave(four[0] as Counted)
  assert.equal(quota.count, 3)
})

test('brokers are let in also when clients have taken all: the longest idle client goes', () => {
  const closed: string[] = []
  const quota = new ConnectionQuota({ all: 2 }, 'BROKERS')
  const client = (host: string, lastActive: number): Counted => ({
    listener: 'CLIENTS',
    remote: { host, port: 1 },
    lastActive,
    close: () => closed.push(host),
  })
  const [busy, idle] = [client('busy', 9), client('idle', 5)]
  quota.join(busy)
  quota.join(idle)
  assert.equal(quota.refuses('CLIENTS', 'new'), 'max.connections')
  assert.equal(dial(quota, 'BROKERS', 'broker', 1).length, 1)
  assert.deepEqual(closed, ['idle'])
  quota.leave(idle)
  assert.equal(quota.count, 2)
  assert.equal(dial(quota, 'BROKERS', 'broker', 3).length, 1)
  assert.deepEqual(closed, ['idle', 'busy'])
})
