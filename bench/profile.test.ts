import assert from 'node:assert/strict'
import { test } from 'node:test'
import { summary } from './profile.ts'

test('time is counted where it was spent, and the idle time is no part of it', () => {
  const frame = (functionName: string, url = '', lineNumber = -1) => ({ functionName, url, lineNumber })
  const text = summary(
    {
      nodes: [
        { id: 1, callFrame: frame('(root)') },
        { id: 2, callFrame: frame('(idle)') },
        { id: 3, callFrame: frame('append', 'file:///home/src/storage/log.ts', 41) },
        { id: 4, callFrame: frame('append', 'file:///home/src/storage/log.ts', 41) },
        { id: 5, callFrame: frame('(program)') },
      ],
      samples: [2, 3, 4, 5, 2],
      timeDeltas: [500_000, 200_000, 100_000, 100_000, 100_000],
    },
    '/home',
  )
  assert.deepEqual(text.split('\n'), [
    '  busy 0.40 s of 1.00 s; by time in the function itself:',
    '  append     src/storage/log.ts:42  75.0 %  0.30 s',
    '  (program)                         25.0 %  0.10 s',
  ])
})
