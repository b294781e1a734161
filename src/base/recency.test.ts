import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from './random.ts'
import { Recency, type Recent } from './recency.ts'

interface Item extends Recent<Item> {
  readonly name: number
}

test('items stand in the order of their last use', () => {
  const random = new SeededRandom(1)
  const recency = new Recency<Item>()
  const items = Array.from({ length: 6 }, (_, name): Item => ({ name, older: undefined, newer: undefined }))
  let expected: number[] = []
  for (let turn = 0; turn < 2000; turn++) {
    const item = random.pick(items)
    expected = expected.filter(name => name !== item.name)
    if (random.below(3) > 0) {
      recency.use(item)
      expected.push(item.name)
    } else recency.remove(item)
    assert.deepEqual(
      [...recency].map(({ name }) => name),
      expected,
    )
    assert.equal(recency.oldest?.name, expected[0])
  }
})
