import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { BrokerConfigs } from '#core/config/broker-configs.ts'
import { resolveTopic } from '#core/config/topic.ts'
import { CONFIG_RESOURCE } from '#core/metadata/config-resource.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import { LOST_DIRECTORY } from '#core/metadata/partition-image.ts'
import { type MetadataRecord, metadataRecord } from '#core/metadata/record.ts'
import { LogFolders } from '#storage/log-folders.ts'
import { MemoryDisk } from '#storage/testing/memory-disk.ts'
import { LinesLogger, ManualClock, plainBatch } from '#storage/testing/rig.ts'
import type { World } from '#world/world.ts'
import { Deadlines } from '../deadlines.ts'
import type { ControllerLink } from '../metadata/controller-link.ts'
import { Partitions } from './partitions.ts'
import { termsOf } from './terms.ts'

const TOPIC = 'AAAAAAAAAAAAAAAAAAAAAg'
const partitionChange = (leader: number) =>
  metadataRecord('PartitionChange', 1, { topicId: TOPIC, partitionId: 0, leader })
const config = (name: string, value: string) =>
  metadataRecord('Config', 1, { resourceType: CONFIG_RESOURCE.TOPIC, resourceName: 'topic', name, value })

/** The partitions of broker 1, and the metadata that they follow. */
async function broker(paths = ['/data']) {
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const log = new LinesLogger()
  const random = new SeededRandom(1)
  const folders = await LogFolders.open({ disk, clock, log, random, paths, nodeId: 1 })
  const image = new MetadataImage({ deltas: true })
  const configs = new BrokerConfigs()
  const told: { readonly id: string; readonly topics: readonly object[] }[] = []
  const link = {
    ask: async (_api: unknown, { directories }: { readonly directories: typeof told }) => {
      told.push(...directories)
      return { errorCode: 0 }
    },
    rest: async () => {},
  }
  const partitions = new Partitions({
    nodeId: 1,
    folders,
    image: () => image,
    world: { clock, disk, log, random } as unknown as World,
    deadlines: new Deadlines(clock),
    log,
    link: link as unknown as ControllerLink,
    brokerEpoch: () => 0,
    listener: 'PLAINTEXT',
    configs: () => configs,
    followersServeConsumers: () => false,
    termsOf: topic => termsOf(resolveTopic(image.config(CONFIG_RESOURCE.TOPIC, topic), configs)),
    ledChanged() {},
  })
  const change = (...records: MetadataRecord[]): Promise<void> => {
    for (const record of records) image.apply(record, image.offset + 1, 1)
    const delta = image.takeDelta()
    assert.ok(delta !== undefined)
    return partitions.change(delta, false)
  }
  await change(metadataRecord('RegisterBroker', 1, { brokerId: 1, brokerEpoch: 0, fenced: false }))
  const place = { topicId: TOPIC, partitionId: 0, replicas: [1], isr: [1], leader: 1, leaderEpoch: 0 }
  const made = [
    metadataRecord('Topic', 1, { name: 'topic', topicId: TOPIC }),
    metadataRecord('Partition', 1, { ...place, partitionEpoch: 0 }),
  ]
  const find = () => partitions.find('topic', undefined, 0)
  return { disk, clock, folders, image, partitions, told, change, made, find }
}

test('a log that is being opened when settings of its topic change has them when it is open', async () => {
  const { disk, change, made, find } = await broker()
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>()
  const makeFolder = disk.makeFolder.bind(disk)
  disk.makeFolder = path => held.then(() => makeFolder(path))
  const opened = change(...made)
  await change(config('flush.messages', '1'), config('min.insync.replicas', '2'))
  letGo()
  await opened
  const found = find()
  assert.ok(typeof found === 'object')
  assert.equal(found.log.config.flushMessages, 1)
})

test('a broker that is fenced goes on to what the cluster says next, though a disk does not let a log be made', async () => {
  const { disk, clock, change, made } = await broker()
  await change(metadataRecord('BrokerRegistrationChange', 1, { brokerId: 1, brokerEpoch: 0, fenced: 1 }))
  disk.makeFolder = () => new Promise(() => {})
  let isDone = false
  void change(...made).then(() => {
    isDone = true
  })
  const pass = async (ms: number) => {
    clock.advance(ms)
    await new Promise(resolve => setImmediate(resolve))
  }
  await pass(5000)
  assert.ok(!isDone)
  await pass(5000)
  assert.ok(isDone)
})

test('a partition that cannot be opened is tried again by one timer, however often it changes meanwhile', async () => {
  const { disk, clock, change, made, find } = await broker()
  disk.fault = operation => (operation === 'makeFolder' ? 'EIO' : undefined)
  await change(...made)
  assert.equal(find(), 'KAFKA_STORAGE_ERROR')
  const { timers } = clock
  for (let times = 0; times < 10; times++) await change(partitionChange(times % 2 === 0 ? -1 : 1))
  assert.equal(clock.timers, timers)
  disk.fault = () => undefined
  clock.advance(2000)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(typeof find(), 'object')
})

test('a partition that could not be opened and is to be elsewhere is no failing disk any more', async () => {
  const { disk, change, made, find } = await broker()
  disk.fault = operation => (operation === 'makeFolder' ? 'EIO' : undefined)
  await change(...made)
  assert.equal(find(), 'KAFKA_STORAGE_ERROR')
  await change(
    metadataRecord('PartitionChange', 1, { topicId: TOPIC, partitionId: 0, leader: 2, isr: [2], replicas: [2] }),
  )
  assert.equal(find(), 'NOT_LEADER_OR_FOLLOWER')
})

test('a disk that hangs while retention goes over it holds up that of no other', async () => {
  const { disk, clock, image, partitions, change, made } = await broker(['/a', '/b'])
  const place = { topicId: TOPIC, replicas: [1], isr: [1], leader: 1, leaderEpoch: 0, partitionEpoch: 0 }
  await change(...made, metadataRecord('Partition', 1, { ...place, partitionId: 1 }))
  const [first, second] = [...partitions.all()]
  assert.ok(first !== undefined && second !== undefined)
  assert.deepEqual([first.log.folder, second.log.folder], ['/a/topic-0', '/b/topic-1'])
  await change(config('retention.ms', '1000'))
  assert.equal(image.config(CONFIG_RESOURCE.TOPIC, 'topic').get('retention.ms'), '1000')
  const rename = disk.rename.bind(disk)
  disk.rename = (from, to) => (from.startsWith('/a/') ? new Promise(() => {}) : rename(from, to))
  for (const round of [1, 2]) {
    for (const partition of [first, second]) {
      const batch = plainBatch(0, 1, 10, clock.now())
      partition.produce(batch, 0, batch.length, 0, { settle: () => {} })
    }
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    clock.advance(60_000)
    void partitions.retain()
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    assert.equal(second.log.startOffset, round)
  }
})

test('a partition that is new and finds its disk full is handed over to who has made it, and follows once there is space', async () => {
  const { disk, clock, folders, partitions, told, change, find } = await broker()
  const [directory] = folders.directoryIds
  disk.fault = operation => (operation === 'makeFolder' ? 'ENOSPC' : undefined)
  const place = { topicId: TOPIC, partitionId: 0, replicas: [1, 2], isr: [1, 2], leader: 1, leaderEpoch: 0 }
  const directories = [directory as string, 'AAAAAAAAAAAAAAAAAAAAEQ']
  await change(
    metadataRecord('FeatureLevel', 20, { name: 'metadata.version', featureLevel: 20 }),
    metadataRecord('Topic', 20, { name: 'topic', topicId: TOPIC }),
    metadataRecord('Partition', 20, { ...place, partitionEpoch: 0, directories }),
  )
  const pass = async (ms: number) => {
    clock.advance(ms)
    partitions.handOverFailing()
    await new Promise(resolve => setImmediate(resolve))
  }
  // Told again until the cluster says so.
  const ids = () => [...new Set(told.map(({ id }) => id))]
  await pass(2000)
  assert.deepEqual(ids(), [])
  await pass(3000)
  assert.deepEqual(ids(), [LOST_DIRECTORY])
  const lost = [LOST_DIRECTORY, 'AAAAAAAAAAAAAAAAAAAAEQ']
  await change(
    metadataRecord('PartitionChange', 20, { topicId: TOPIC, partitionId: 0, leader: 2, isr: [2], directories: lost }),
  )
  const { length } = told
  await pass(2000)
  assert.equal(told.length, length)
  disk.fault = () => undefined
  await pass(2000)
  await pass(0)
  assert.equal(typeof find(), 'object')
  assert.deepEqual(ids(), [LOST_DIRECTORY, directory])
})
