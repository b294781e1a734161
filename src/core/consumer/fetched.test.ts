import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BatchBuilder, type BatchOptions } from '#records/builder.ts'
import { buildEndMarker } from '#records/control.ts'
import { FetchSession, type WantedPartition } from './fetch-session.ts'
import { FetchedRecords } from './fetched.ts'

function batchAt(baseOffset: number, values: readonly string[], options: BatchOptions = {}): Buffer {
  const builder = new BatchBuilder({ baseOffset, ...options })
  for (const value of values) builder.append(1, null, Buffer.from(value))
  return builder.build()
}

function marker(type: 'commit' | 'abort', producerId: number, baseOffset: number): Buffer {
  return buildEndMarker({ type, producerId, producerEpoch: 0, coordinatorEpoch: 0, timestamp: 1 }, { baseOffset })
}

function drain(records: FetchedRecords): string[] {
  const values: string[] = []
  for (let record = records.next(); record !== undefined; record = records.next()) values.push(`${record.value}`)
  return values
}

test('records before the position are skipped, and so is a batch that is cut', () => {
  const bytes = Buffer.concat([
    batchAt(10, ['a', 'b', 'c'], { compression: 'gzip' }),
    batchAt(13, ['d']),
    batchAt(14, ['e']).subarray(0, 40),
  ])
  const records = new FetchedRecords(bytes, 12)
  assert.equal(records.position, 12)
  assert.equal(records.next()?.offset, 12)
  assert.equal(records.position, 13)
  assert.deepEqual(drain(records), ['d'])
  assert.equal(records.position, 14)
})

test('the position passes offsets that compaction took, and control records', () => {
  const compacted = batchAt(0, ['a'], { lastOffset: 9 })
  const records = new FetchedRecords(Buffer.concat([compacted, marker('commit', 1, 10)]), 0)
  assert.deepEqual(drain(records), ['a'])
  assert.equal(records.position, 11)
})

test('aborted transactions are left out when only committed is read', () => {
  const ofProducer = (producerId: number, at: number, value: string): Buffer =>
    batchAt(at, [value], { producerId, producerEpoch: 0, baseSequence: 0, transactional: true })
  const bytes = Buffer.concat([
    ofProducer(1, 0, 'aborted'),
    ofProducer(2, 1, 'committed'),
    batchAt(2, ['plain']),
    marker('abort', 1, 3),
    marker('commit', 2, 4),
    ofProducer(1, 5, 'later'),
    marker('commit', 1, 6),
  ])
  const committed = new FetchedRecords(bytes, 0, [{ producerId: 1, firstOffset: 0 }])
  assert.deepEqual(drain(committed), ['committed', 'plain', 'later'])
  assert.equal(committed.position, 7)
  assert.deepEqual(drain(new FetchedRecords(bytes, 0)), ['aborted', 'committed', 'plain', 'later'])
})

test('damage is an error, at the offset where it is', () => {
  const bytes = batchAt(5, ['a', 'b'])
  bytes[bytes.length - 1] = 0xff
  assert.throws(() => new FetchedRecords(bytes, 5).next(), /offset 5/)
  assert.throws(() => new FetchedRecords(Buffer.alloc(100), 0).next(), { name: 'DecodeError' })
})

function wanted(partition: number, fetchOffset: number, topicId = 'one'): WantedPartition {
  return { topic: 't', topicId, partition, fetchOffset, leaderEpoch: 0, lastFetchedEpoch: -1, maxBytes: 100 }
}
const numbers = (list: readonly WantedPartition[]): number[] => list.map(({ partition }) => partition)

test('a session names everything once, then only what changed', () => {
  const session = new FetchSession()
  const first = session.next([wanted(0, 5), wanted(1, 5)])
  assert.deepEqual([first.sessionId, first.sessionEpoch, numbers(first.partitions)], [0, 0, [0, 1]])
  assert.ok(session.answered(0, 77))
  const second = session.next([wanted(0, 6), wanted(1, 5), wanted(2, 0)])
  assert.deepEqual([second.sessionId, second.sessionEpoch, numbers(second.partitions)], [77, 1, [0, 2]])
  assert.ok(session.answered(0, 77))
  const third = session.next([wanted(0, 6), wanted(2, 0)])
  assert.deepEqual([third.sessionEpoch, numbers(third.partitions), numbers(third.forgotten)], [2, [], [1]])
})

test('a topic that was made anew leaves the session and comes back with its new id', () => {
  const session = new FetchSession()
  session.next([wanted(0, 5)])
  session.answered(0, 77)
  const next = session.next([wanted(0, 0, 'two')])
  assert.deepEqual([numbers(next.partitions), next.forgotten[0]?.topicId], [[0], 'one'])
})

test('a session that is gone, broken or not kept is opened anew', () => {
  const session = new FetchSession()
  session.next([wanted(0, 5)])
  session.answered(0, 77)
  session.next([wanted(0, 5)])
  assert.ok(!session.answered(70, 0))
  const anew = session.next([wanted(0, 5)])
  assert.deepEqual([anew.sessionId, anew.sessionEpoch, numbers(anew.partitions)], [0, 0, [0]])
  session.answered(0, 78)
  session.next([wanted(0, 5)])
  session.failed()
  const closing = session.next([wanted(0, 5)])
  assert.deepEqual([closing.sessionId, closing.sessionEpoch], [78, 0], 'the old one is closed by its id')
  session.answered(0, 0)
  const full = session.next([wanted(0, 5)])
  assert.deepEqual([full.sessionId, full.sessionEpoch, numbers(full.partitions)], [0, 0, [0]])
})
