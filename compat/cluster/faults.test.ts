/** A minute of what `faults.ts` does for as long as one likes, each kind of harm once; and that its checker sees mistakes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge, longestGap, unseen } from './checker.ts'
import { clientsHere, disturb } from './disturb.ts'

const IN_ORDER = [
  'kill -9 of a leader',
  'kill -9 of the active controller',
  'kill -9 of another node',
  'a leader stopped (SIGSTOP) for 5 to 20 s',
  'connections to a leader cut, and refused for 2 to 10 s',
  'all connections of all nodes reset',
  'connections to the active controller half-open for 5 to 20 s',
  'a full disk for 5 to 15 s',
  'a rolling restart',
  'kill -9 of all nodes at once',
]

// A run that takes too long is ended by a signal; the nodes that it has started end with it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

const { clients, python, missing } = await clientsHere()

test('three nodes of ours are killed, stopped, cut off and filled: what was acknowledged is there once and in order', {
  timeout: 240_000,
}, async t => {
  const { wrong } = await disturb({
    seed: 1,
    until: ({ faults }) => faults === IN_ORDER.length,
    faults: IN_ORDER,
    inOrder: true,
    clients,
    python,
    perSecond: 50,
    shortMs: 500,
    sessionTimeoutMs: 3_000,
    say: text => t.diagnostic(text),
  })
  assert.deepEqual(wrong, [])
})

for (const why of missing) test('others write and read as well', { skip: why }, () => {})

test('the checker sees what is lost, moved, there twice, out of order and not read', () => {
  const writer = (...acknowledged: [string, number, number][]) => ({
    name: 'some',
    stream: 1,
    refused: 0,
    acknowledged: acknowledged.map(([value, partition, offset]) => ({ value, partition, offset, at: 0 })),
  })
  const log = (...values: string[]) => values.map((value, offset) => ({ value, offset }))
  const told = writer(['1.0', 0, 0], ['1.1', 1, 0], ['1.2', 0, 1])
  const kinds = (logs: Parameters<typeof judge>[0]) =>
    judge(logs, [told]).wrong.map(line => /× ([^:]+):/.exec(line)?.[1])
  assert.deepEqual(kinds([log('1.0', '1.2'), log('1.1')]), [])
  assert.deepEqual(kinds([log('1.0', '1.2'), []]), ['lost'])
  assert.deepEqual(kinds([log('1.0', '1.1', '1.2'), []]), ['moved'])
  const without = writer(['1.0', 0, -1])
  assert.deepEqual(judge([log('1.0')], [without]).wrong, [], 'the offset of a repeat may not be known')
  assert.equal(judge([[], log('1.0')], [without]).wrong.length, 1, 'its partition is')
  assert.deepEqual(kinds([log('1.0', '1.2', '1.3'), log('1.1', '1.3')]), ['there twice'])
  assert.deepEqual(kinds([log('1.0', '1.2', '1.4', '1.3'), log('1.1')]), ['out of order'])
  assert.equal(judge([log('1.0', '1.2', '1.3'), log('1.1')], [told]).writers[0]?.unconfirmed, 1)

  const reader = (...spans: [number, number][]) => [{ group: 'g', spans: new Map([[0, spans]]) }]
  assert.deepEqual(unseen(reader([0, 4], [3, 9]), new Map([[0, 10]])), [])
  assert.deepEqual(unseen(reader([0, 4], [6, 9]), new Map([[0, 10]])), ['group g has not seen 0@5, of 10'])
  assert.deepEqual(unseen([{ group: 'g', spans: new Map() }], new Map([[0, 1]])), ['group g has not seen 0@0, of 1'])

  const at = (partition: number, ...times: number[]) =>
    times.map(time => ({ value: '', partition, offset: 0, at: time }))
  assert.equal(longestGap([...at(0, 1, 2, 3, 9), ...at(1, 1, 5)], 0, 10), 6)
  assert.equal(longestGap(at(0, 1, 20, 21, 22), 21, 30), 1)
})
