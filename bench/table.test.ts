import assert from 'node:assert/strict'
import { test } from 'node:test'
import { median, type Row, table } from './table.ts'

test('the median of an even number of figures lies between the two in the middle', () => {
  assert.equal(median([4, 1, 3]), 3)
  assert.equal(median([4, 1, 3, 10]), 3.5)
  assert.equal(median([]), Number.NaN)
})

test('a row is ok or missed by the ratio of the medians, or says that it was not measured', () => {
  const rows: Row[] = [
    { what: 'low enough', unit: 'ms', target: { most: 0.5 }, ours: [1, 9, 2], theirs: [4] },
    { what: 'too high', unit: 'ms', target: { most: 0.5 }, ours: [2.1], theirs: [4] },
    { what: 'high enough', unit: 'ms', target: { least: 1.2 }, ours: [1200], theirs: [1000] },
    { what: 'too low', unit: 'ms', target: { least: 1.2 }, ours: [1199], theirs: [1000] },
    { what: 'no promise', unit: 'ms', ours: [1], theirs: [2] },
    { what: 'one alone', unit: 'ms', target: { most: 1 }, ours: [1], theirs: [] },
  ]
  const lines = table(rows).split('\n').slice(1)
  assert.deepEqual(
    lines.map(line => line.split(/ {2,}/).slice(2).join(' | ')),
    [
      '2.00 (1.00–9.00) | 4.00 | 0.50 | ≤ 0.5 | ok',
      '2.10 | 4.00 | 0.53 | ≤ 0.5 | missed',
      '1,200 | 1,000 | 1.20 | ≥ 1.2 | ok',
      '1,199 | 1,000 | 1.20 | ≥ 1.2 | missed',
      '1.00 | 2.00 | 0.50',
      '1.00 | – | ≤ 1 | not measured',
    ],
  )
})
