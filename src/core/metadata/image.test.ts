import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MetadataImage } from './image.ts'
import { type MetadataRecord, metadataRecord } from './record.ts'

const A = 'AACrzQAAAAAAAAAAAA9CQQ'
const B = 'AACrzQAAAAAAAAAAAA9CQg'

const topic = (name: string, topicId: string) => metadataRecord('Topic', 30, { name, topicId })
const partition = (topicId: string, partitionId: number) =>
  metadataRecord('Partition', 30, {
    topicId,
    partitionId,
    replicas: [1, 2],
    isr: [1, 2],
    leader: 1,
    leaderEpoch: 0,
    partitionEpoch: 0,
  })

function applyAll(image: MetadataImage, ...records: MetadataRecord[]): void {
  for (const record of records) image.apply(record, image.offset + 1, 1)
}

test('a delta names what changed since the last, and what it was is kept', () => {
  const image = new MetadataImage({ deltas: true })
  applyAll(
    image,
    topic('a', A),
    partition(A, 0),
    partition(A, 1),
    metadataRecord('Config', 30, { resourceType: 2, resourceName: 'a', name: 'k', value: 'v' }),
  )
  const first = image.takeDelta()
  assert.deepEqual([...(first?.topics ?? [])], [[A, { created: true, partitions: new Set([0, 1]) }]])
  assert.deepEqual([...(first?.configs.values() ?? [])], [{ type: 2, name: 'a' }])
  assert.equal(image.takeDelta(), undefined)

  const before = image.partition(A, 1)
  applyAll(image, metadataRecord('PartitionChange', 30, { topicId: A, partitionId: 1, isr: [2], leader: 2 }))
  assert.deepEqual(before?.isr, [1, 2])
  assert.deepEqual(image.partition(A, 1)?.isr, [2])
  assert.equal(image.partition(A, 1)?.leaderEpoch, 1)
  assert.deepEqual([...(image.takeDelta()?.topics ?? [])], [[A, { created: false, partitions: new Set([1]) }]])

  applyAll(image, metadataRecord('RemoveTopic', 30, { topicId: A }), topic('a', B), partition(B, 0))
  const third = image.takeDelta()
  assert.deepEqual([...(third?.deletedTopics.keys() ?? [])], [A])
  assert.equal(third?.deletedTopics.get(A)?.partitions.length, 2)
  assert.deepEqual([...(third?.topics.keys() ?? [])], [B])
  assert.equal(image.topicByName('a')?.id, B)
  assert.equal(image.config(2, 'a').size, 0)

  applyAll(image, topic('b', A), metadataRecord('RemoveTopic', 30, { topicId: A }))
  const fourth = image.takeDelta()
  assert.equal(fourth?.topics.size, 0)
  assert.equal(fourth?.deletedTopics.size, 0)
})

test('records of a transaction count at its end, and not at all when it is aborted', () => {
  const image = new MetadataImage()
  applyAll(image, metadataRecord('BeginTransaction', 30, {}), topic('a', A))
  assert.equal(image.topics.size, 0)
  assert.ok(image.inTransaction)
  applyAll(image, metadataRecord('AbortTransaction', 30, {}))
  assert.equal(image.topics.size, 0)
  applyAll(image, metadataRecord('BeginTransaction', 30, {}), topic('a', A), metadataRecord('EndTransaction', 30, {}))
  assert.equal(image.topics.size, 1)
  assert.ok(!image.inTransaction)
  assert.equal(image.offset, 5)
})

test('what speaks of something that is not there changes nothing and is counted', () => {
  const image = new MetadataImage()
  applyAll(
    image,
    partition(A, 0),
    metadataRecord('PartitionChange', 30, { topicId: A, partitionId: 0 }),
    metadataRecord('RemoveTopic', 30, { topicId: A }),
    metadataRecord('FenceBroker', 30, { id: 1 }),
    metadataRecord('UnregisterBroker', 30, { brokerId: 1 }),
    metadataRecord('ClearElr', 30, { topicName: 'a' }),
    metadataRecord('RemoveDelegationToken', 30, { tokenId: 'x' }),
  )
  assert.equal(image.skipped, 7)
  assert.deepEqual([...image.snapshotRecords()], [])
})

test('a configuration that is set to nothing is gone, one that is set to empty is empty', () => {
  const image = new MetadataImage()
  const config = (value: string | null) =>
    metadataRecord('Config', 30, { resourceType: 4, resourceName: '', name: 'k', value })
  applyAll(image, config('v'))
  const held = image.config(4, '')
  applyAll(image, config(''))
  assert.deepEqual([...image.config(4, '')], [['k', '']])
  applyAll(image, config(null))
  assert.equal(image.config(4, '').size, 0)
  assert.deepEqual([...held], [['k', 'v']])
})

test('a copy is what the image was, whatever comes after', () => {
  const image = new MetadataImage()
  const quota = (value: number) =>
    metadataRecord('ClientQuota', 30, {
      entity: [{ entityType: 'user', entityName: 'bob' }],
      key: 'consumer_byte_rate',
      value,
      remove: false,
    })
  applyAll(
    image,
    metadataRecord('FeatureLevel', 30, { name: 'metadata.version', featureLevel: 30 }),
    topic('a', A),
    partition(A, 0),
    metadataRecord('Config', 30, { resourceType: 2, resourceName: 'a', name: 'k', value: 'v' }),
    quota(1),
  )
  const before = [...image.snapshotRecords()]
  const copy = image.copy()
  assert.equal(copy.offset, image.offset)
  applyAll(
    image,
    metadataRecord('PartitionChange', 30, { topicId: A, partitionId: 0, leader: 2 }),
    partition(A, 1),
    quota(2),
    topic('b', B),
    metadataRecord('Config', 30, { resourceType: 2, resourceName: 'a', name: 'k', value: 'w' }),
  )
  assert.deepEqual([...copy.snapshotRecords()], before)
  assert.notDeepEqual([...image.snapshotRecords()], before)
})

test('48,000 partitions are folded, and changed, in no time', () => {
  const image = new MetadataImage({ deltas: true })
  for (let index = 0; index < 48; index++) {
    const id = Buffer.from(`topic-id-${String(index).padStart(7, '0')}`).toString('base64url')
    applyAll(image, topic(`t${index}`, id))
    for (let each = 0; each < 1000; each++) applyAll(image, partition(id, each))
  }
  assert.equal([...image.snapshotRecords()].length, 48_048)
  for (const { id, partitions } of image.topics.values()) {
    for (const index of partitions.keys()) {
      applyAll(image, metadataRecord('PartitionChange', 30, { topicId: id, partitionId: index, leader: 2 }))
    }
  }
  const changed = [...(image.takeDelta()?.topics.values() ?? [])]
  assert.equal(
    changed.reduce((sum, { partitions }) => sum + partitions.size, 0),
    48_000,
  )
})
