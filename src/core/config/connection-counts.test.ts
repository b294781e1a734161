import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brokerProblems } from './broker-alter.ts'
import { BrokerConfigs } from './broker-configs.ts'
import { connectionCounts } from './connection-counts.ts'

test('what is altered for a broker, for all, and for a listener decides the limits, each over its own default', () => {
  const fixed = new Map([
    ['max.connections', '100'],
    ['max.connections.per.ip.overrides', '10.0.0.1:5,::1:7'],
    ['listener.name.brokers.max.connections', '50'],
  ])
  const before = new BrokerConfigs({ nodeId: 1, fixed })
  const counts = connectionCounts(before, ['CLIENTS', 'BROKERS'])
  assert.equal(counts.all, 100)
  assert.deepEqual([...counts.ofListener], [['BROKERS', 50]])
  assert.deepEqual(
    [...counts.ofHost],
    [
      ['10.0.0.1', 5],
      ['::1', 7],
    ],
  )
  const after = before.with({
    dynamicDefault: new Map([
      ['max.connections', '80'],
      ['max.connections.per.ip', '9'],
    ]),
    dynamic: new Map([
      ['max.connections', '60'],
      ['listener.name.clients.max.connections', '20'],
    ]),
  })
  const changed = connectionCounts(after, ['CLIENTS', 'BROKERS'])
  assert.deepEqual([changed.all, changed.perHost], [60, 9])
  assert.deepEqual(
    [...changed.ofListener],
    [
      ['CLIENTS', 20],
      ['BROKERS', 50],
    ],
  )
})

test('the limits may be altered while a broker runs, and its listeners may not', () => {
  const broker = new BrokerConfigs({ nodeId: 1 })
  const problems = (name: string, value: string, type = 'broker') =>
    brokerProblems(new Map([[name, value]]), { type, broker }).map(({ message }) => message)
  for (const type of ['broker', 'broker-default']) {
    assert.deepEqual(problems('max.connections', '7', type), [])
    assert.deepEqual(problems('max.connections.per.ip', '7', type), [])
    assert.deepEqual(problems('max.connections.per.ip.overrides', '10.0.0.1:5', type), [])
    assert.deepEqual(problems('listener.name.x.max.connections', '7', type), [])
  }
  assert.match(problems('max.connections', '-1')[0] ?? '', /max\.connections/)
  assert.match(problems('listeners', 'PLAINTEXT://:9093')[0] ?? '', /cannot be changed while the broker runs/)
})
