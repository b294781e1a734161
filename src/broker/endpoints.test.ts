import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerImage } from '#core/metadata/node-image.ts'
import { type Dialled, endpointsOf } from './endpoints.ts'

function brokerAt(id: number, host: string, port: number): BrokerImage {
  return {
    id,
    epoch: id,
    incarnationId: 'AAAAAAAAAAAAAAAAAAAABQ',
    endPoints: [{ name: 'PLAINTEXT', host, port, securityProtocol: 0 }],
    features: [],
    rack: null,
    fenced: false,
    inControlledShutdown: false,
    logDirs: [],
    cordonedLogDirs: null,
  } as unknown as BrokerImage
}

function by(nodeId: number, host: string, port: number, isAdvertised = false): Dialled {
  return { nodeId, listener: 'PLAINTEXT', address: { host, port }, isAdvertised }
}

const named = (brokers: readonly BrokerImage[], dialled: Dialled): string[] =>
  endpointsOf(brokers, dialled).map(({ host, port }) => `${host}:${port}`)

test('a broker alone is where it was dialled', () => {
  assert.deepEqual(named([brokerAt(1, 'localhost', 9092)], by(1, '10.0.0.5', 19092)), ['10.0.0.5:19092'])
  assert.deepEqual(named([brokerAt(1, 'a', 9092)], by(1, '10.0.0.5', 9092, true)), ['a:9092'])
})

test('all brokers of a cluster name all of them alike, so that no client drops a connection for it', () => {
  const brokers = [brokerAt(1, 'localhost', 9092), brokerAt(2, '127.0.0.1', 9192), brokerAt(3, 'localhost', 9292)]
  const all = ['127.0.0.1:9092', '127.0.0.1:9192', '127.0.0.1:9292']
  for (const [id, port] of [9092, 9192, 9292].entries()) {
    assert.deepEqual(named(brokers, by(id + 1, '127.0.0.1', port)), all)
  }
})

test('brokers of one machine are reached from elsewhere by the address that was dialled', () => {
  const brokers = [brokerAt(1, 'localhost', 9092), brokerAt(2, 'localhost', 9192)]
  assert.deepEqual(named(brokers, by(2, '10.0.0.5', 9192)), ['10.0.0.5:9092', '10.0.0.5:9192'])
})

test('brokers that say where they are are reached there', () => {
  const brokers = [brokerAt(1, 'a', 9092), brokerAt(2, 'b', 9092)]
  assert.deepEqual(named(brokers, by(1, '127.0.0.1', 9092)), ['a:9092', 'b:9092'])
  const mixed = [brokerAt(1, 'localhost', 9092), brokerAt(2, 'b', 9092)]
  assert.deepEqual(named(mixed, by(2, '10.0.0.6', 9092)), ['localhost:9092', 'b:9092'])
})
