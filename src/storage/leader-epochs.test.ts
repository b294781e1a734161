import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LeaderEpochs } from './leader-epochs.ts'
import { openRig, plainBatch } from './testing/rig.ts'

const T0 = 1_700_000_000_000

function epochsOf(...pairs: readonly (readonly [epoch: number, startOffset: number])[]): LeaderEpochs {
  const epochs = new LeaderEpochs()
  for (const [epoch, startOffset] of pairs) epochs.assign(epoch, startOffset)
  return epochs
}

function pairsOf(epochs: LeaderEpochs): number[][] {
  return epochs.entries.map(({ epoch, startOffset }) => [epoch, startOffset])
}

test('a record forgets what contradicts it and nothing else', () => {
  const cases: [known: [number, number][], record: [number, number], then: [number, number][]][] = [
    [[[5, 0]], [5, 10], [[5, 0]]],
    [[[5, 10]], [5, 3], [[5, 3]]],
    // The later epoch began behind it, so it is older news.
    [
      [
        [4, 0],
        [6, 20],
      ],
      [5, 10],
      [
        [4, 0],
        [5, 10],
        [6, 20],
      ],
    ],
    [
      [
        [5, 0],
        [6, 20],
      ],
      [5, 10],
      [
        [5, 0],
        [6, 20],
      ],
    ],
    [
      [
        [5, 0],
        [6, 20],
      ],
      [5, 20],
      [[5, 0]],
    ],
    [
      [
        [5, 0],
        [6, 20],
        [8, 30],
      ],
      [7, 20],
      [
        [5, 0],
        [7, 20],
        [8, 30],
      ],
    ],
    [
      [
        [5, 0],
        [6, 20],
      ],
      [5, 25],
      [[5, 0]],
    ],
    [
      [
        [5, 0],
        [6, 20],
      ],
      [7, 0],
      [[7, 0]],
    ],
    [[[2, 0]], [5, 0], [[5, 0]]],
  ]
  for (const [known, [epoch, offset], then] of cases) {
    const epochs = epochsOf(...known)
    epochs.dirty = false
    epochs.assign(epoch, offset)
    assert.deepEqual(pairsOf(epochs), then, `${epoch} at ${offset} after ${JSON.stringify(known)}`)
    assert.equal(epochs.dirty, JSON.stringify(then) !== JSON.stringify(known))
  }
})

test('an epoch that begins while appends of the one before are under way is there when they land', async () => {
  const { log } = await openRig()
  await log.append(plainBatch(0, 2, 10, T0, { leaderEpoch: 4 }))
  const landing = log.append(plainBatch(2, 2, 10, T0, { leaderEpoch: 5 }))
  log.assignEpoch(6, log.nextOffset)
  await landing
  assert.deepEqual(log.epochs, [
    { epoch: 4, startOffset: 0 },
    { epoch: 5, startOffset: 2 },
    { epoch: 6, startOffset: 4 },
  ])
  assert.deepEqual(log.endOffsetForEpoch(5), { leaderEpoch: 5, endOffset: 4 })
  await log.close()
})
