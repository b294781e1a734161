import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { ReadEpochs } from './read-epochs.ts'

test('what lies before an offset is of the epoch in which it was read, or was committed', () => {
  const epochs = new ReadEpochs(10, 3)
  assert.equal(epochs.before(10), 3)
  assert.equal(epochs.before(9), -1, 'nobody said')
  epochs.read(3, 10)
  epochs.read(5, 20)
  epochs.read(5, 25)
  assert.deepEqual(
    [10, 11, 20, 21, 30].map(offset => epochs.before(offset)),
    [3, 3, 3, 5, 5],
  )
})

test('reading goes on where the histories part', () => {
  const epochs = new ReadEpochs(0)
  epochs.read(1, 0)
  epochs.read(3, 50)
  // The leader wrote what follows 60 under epoch 2: nothing of what was read from 50 on is there.
  assert.equal(epochs.cut(80, 2, 90), 50)
  assert.equal(epochs.before(50), 1)
  // And of epoch 1 it has only half.
  assert.equal(epochs.cut(50, 1, 40), 40)
  assert.equal(epochs.before(40), 1)
})

test('where only a commit says the epoch, reading goes on at its offset at the latest', () => {
  const epochs = new ReadEpochs(80, 3)
  assert.equal(epochs.cut(80, 2, 90), 80)
  assert.equal(epochs.before(80), 2)
  assert.equal(epochs.cut(80, 2, 70), 70)
  assert.equal(epochs.before(70), 2)
})

interface Batch {
  readonly epoch: number
  readonly at: number
}

/** Two histories that share a beginning: offsets are dense, each has its epoch. */
const histories = fc
  .record({
    shared: fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 90 }),
    read: fc.array(fc.integer({ min: 0, max: 1 }), { maxLength: 90 }),
    led: fc.array(fc.integer({ min: 0, max: 1 }), { maxLength: 90 }),
  })
  .map(({ shared, read, led }) => {
    const rising = (steps: readonly number[], from: number, by: number): number[] => {
      let epoch = from
      return steps.map(step => {
        epoch += step * by
        return epoch
      })
    }
    const common = rising(shared, 0, 2)
    const last = common.at(-1) ?? 0
    // No epoch belongs to both behind where they part.
    return { common, read: [...common, ...rising(read, last + 3, 4)], led: [...common, ...rising(led, last + 5, 4)] }
  })

/** As `LeaderEpochs.endOffsetFor`. */
function endOf(log: readonly number[], epoch: number): { epoch: number; endOffset: number } {
  const higher = log.findIndex(each => each > epoch)
  const endOffset = higher < 0 ? log.length : higher
  return { epoch: endOffset === 0 ? epoch : (log[endOffset - 1] as number), endOffset }
}

test('however histories part, reading goes on where they do, after as many answers as there are epochs at most', () => {
  fc.assert(
    fc.property(histories, ({ common, read, led }) => {
      const epochs = new ReadEpochs(0)
      const batches: Batch[] = read.map((epoch, at) => ({ epoch, at }))
      for (const { epoch, at } of batches) epochs.read(epoch, at)
      let position = read.length
      for (let answers = 0; ; answers++) {
        assert.ok(answers < 100)
        const last = epochs.before(position)
        if (last < 0) break
        const { epoch, endOffset } = endOf(led, last)
        if (epoch === last && endOffset >= position) break
        position = epochs.cut(position, epoch, endOffset)
      }
      const parted = Math.min(common.length, read.length)
      assert.ok(position <= parted, `it goes on at ${position}, and they part at ${parted}`)
      // Of older epochs than are remembered it does not know how they began.
      if (new Set(read).size < 60) assert.equal(position, parted)
    }),
  )
})
