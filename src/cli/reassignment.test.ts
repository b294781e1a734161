import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CopyProgress } from '#client/admin/reassignments.ts'
import { byteRate } from './arguments.ts'
import { UsageError } from './context.ts'
import { Copies } from './copy-totals.ts'
import { missingRacks } from './reassignment.ts'
import { parseReassignmentFile, toReassignmentFile } from './reassignment-file.ts'
import { row, summary } from './reassignment-progress.ts'

test('a plan is read as it was written, in the form of Kafka', () => {
  const partitions = [
    { topic: 'a', partition: 0, replicas: [1, 2] },
    { topic: 'a', partition: 1, replicas: [2, 3] },
  ]
  const file = toReassignmentFile(partitions)
  assert.equal(
    JSON.stringify(file),
    '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2]},{"topic":"a","partition":1,"replicas":[2,3]}]}',
  )
  assert.deepEqual(parseReassignmentFile(JSON.stringify(file)), partitions)
  const ofKafka = '{"partitions":[{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}],"version":1}'
  assert.deepEqual(parseReassignmentFile(ofKafka), partitions.slice(0, 1))
})

for (const [what, text, message] of [
  ['no JSON', '{', /no JSON/],
  ['a list', '[]', /no list "partitions"/],
  ['another version', '{"version":2,"partitions":[]}', /version 2/],
  ['a partition without topic', '{"partitions":[{"partition":0,"replicas":[1]}]}', /partitions\[0\] has no "topic"/],
  ['a negative partition', '{"partitions":[{"topic":"a","partition":-1,"replicas":[1]}]}', /no "partition"/],
  ['no replicas', '{"partitions":[{"topic":"a","partition":0,"replicas":[]}]}', /a-0 has no "replicas"/],
  ['a broker twice', '{"partitions":[{"topic":"a","partition":0,"replicas":[1,1]}]}', /a-0 has a broker twice/],
  [
    'a partition twice',
    '{"partitions":[{"topic":"a","partition":0,"replicas":[1]},{"topic":"a","partition":0,"replicas":[2]}]}',
    /a-0 is there twice/,
  ],
  [
    'folders',
    '{"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["/data"]}]}',
    /a-0 names folders in "log_dirs"/,
  ],
] as const) {
  test(`a plan with ${what} is refused`, () => {
    assert.throws(
      () => parseReassignmentFile(text),
      (error: unknown) => error instanceof UsageError && message.test(error.message),
    )
  })
}

const MIB = 1024 * 1024

const copy = (partition: number, copied: number, total: number, more: Partial<CopyProgress> = {}): CopyProgress => ({
  topic: 'a',
  partition,
  from: 1,
  to: 2,
  copiedBytes: copied * MIB,
  totalBytes: total * MIB,
  inSync: false,
  offline: false,
  ...more,
})

test('copies are summed up, with their rate and the time that is left', () => {
  const copies = new Copies()
  assert.deepEqual(copies.look([copy(0, 0, 100), copy(1, 50, 100)], 1000), {
    copiedBytes: 50 * MIB,
    totalBytes: 200 * MIB,
    bytesPerSecond: undefined,
    leftMs: undefined,
  })
  assert.deepEqual(copies.look([copy(0, 10, 100), copy(1, 60, 100)], 2000), {
    copiedBytes: 70 * MIB,
    totalBytes: 200 * MIB,
    bytesPerSecond: 20 * MIB,
    leftMs: 6500,
  })
})

test('a copy that is no longer named is done, and one in sync is whole', () => {
  const copies = new Copies()
  copies.look([copy(0, 0, 100), copy(1, 50, 100)], 0)
  const { copiedBytes, totalBytes } = copies.look([copy(1, 99, 100, { inSync: true })], 1000)
  assert.deepEqual([copiedBytes, totalBytes], [200 * MIB, 200 * MIB])
  assert.equal(copies.look([], 2000).leftMs, 0)
})

test('the end of a copy that stands still is not told', () => {
  const copies = new Copies()
  copies.look([copy(0, 10, 100)], 0)
  assert.deepEqual(copies.look([copy(0, 10, 100)], 1000), {
    copiedBytes: 10 * MIB,
    totalBytes: 100 * MIB,
    bytesPerSecond: 0,
    leftMs: undefined,
  })
  // Without a leader the size is as it was; on a broker that is down nothing is known to be there.
  assert.equal(copies.look([copy(0, 10, -1 / MIB)], 2000).totalBytes, 100 * MIB)
  assert.equal(copies.look([copy(0, -1 / MIB, 100)], 3000).copiedBytes, 0)
})

test('of nothing all is copied, as long as it is known to be nothing', () => {
  const summaryOf = (...copies: CopyProgress[]) => {
    const reassignments = [{ topic: 'a', partition: 0, replicas: [1, 2], adding: [2], removing: [1] }]
    return summary({ reassignments, copies, totals: new Copies().look(copies, 0) })
  }
  const done = '1 partition: 0 B of 0 B copied (100 %), 0 ms left'
  assert.equal(summaryOf(copy(0, 0, 0)), done)
  assert.equal(summaryOf(copy(0, 0, 0, { inSync: true })), done)
  // Replicas that only leave, or change their order.
  assert.equal(summaryOf(), done)
  assert.equal(row(copy(0, 0, 0)).at(-1), '100 %')
  assert.equal(summaryOf(copy(0, 50, 100)), '1 partition: 50 MiB of 100 MiB copied (50 %)')
  assert.equal(summaryOf(copy(0, -1 / MIB, -1 / MIB)), '1 partition: 0 B of 0 B copied')
  assert.equal(summaryOf(copy(0, -1 / MIB, 0, { offline: true })), '1 partition: 0 B of 0 B copied')
})

test('brokers without a rack beside others that have one are told of', () => {
  const broker = (id: number, rack: string) => ({ id, host: `host-${id}`, rack })
  assert.equal(missingRacks([broker(1, ''), broker(2, '')]), undefined)
  assert.equal(missingRacks([broker(1, 'a'), broker(2, 'b')]), undefined)
  const some = missingRacks([broker(1, 'a'), broker(2, ''), broker(3, '')])
  assert.match(some ?? '', /^warning: brokers 2, 3 have no rack: .*set broker.rack of all$/)
  assert.match(missingRacks([broker(1, 'a'), broker(2, '')]) ?? '', /^warning: broker 2 has no rack/)
})

test('rates are written with units or without', () => {
  assert.deepEqual(['1000', '1k', '50M', '1.5MiB/s', '2gb'].map(byteRate), [
    1000,
    1024,
    50 * MIB,
    1.5 * MIB,
    2 * 1024 * MIB,
  ])
  for (const text of ['', '0', '-1', 'fast', '5T', '1e3']) assert.throws(() => byteRate(text), UsageError)
})
