import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONFIG_RESOURCE } from './config-resource.ts'
import { ControllerHarness, testUuid, topicUuid } from './controller-harness.test.ts'
import { metadataRecord } from './record.ts'
import { partitionRecord } from './snapshot.ts'

const COUNT = 200_000
const TOPICS = 1000

/** Two brokers that are there, and partitions that the first one leads. */
function largeCluster(): ControllerHarness {
  const harness = new ControllerHarness()
  harness.start(1)
  harness.start(2)
  const partition = {
    replicas: [1, 2],
    directories: [testUuid(1001), testUuid(1002)],
    isr: [1, 2],
    removingReplicas: [],
    addingReplicas: [],
    eligibleLeaderReplicas: [],
    lastKnownElr: [],
    leader: 1,
    leaderRecoveryState: 0,
    leaderEpoch: 0,
    partitionEpoch: 0,
  }
  for (const image of [harness.machine.image, harness.follower]) {
    for (let topic = 1; topic <= TOPICS; topic++) {
      const topicId = topicUuid(topic)
      image.apply(metadataRecord('Topic', 30, { name: `t${topic}`, topicId }), harness.nextOffset, 1)
      for (let index = 0; index < COUNT / TOPICS; index++)
        image.apply(partitionRecord(topicId, index, partition, 30), harness.nextOffset, 1)
    }
  }
  return harness
}

// More arguments than some 120,000 are a RangeError: records are gathered one by one.
test('a broker that comes back anew may have led any number of partitions', { timeout: 60_000 }, () => {
  const harness = largeCluster()
  harness.now += 5000
  harness.heartbeat(2)
  harness.now += 5000
  const { records, response } = harness.register(1, { incarnationId: testUuid(99) })
  assert.equal(response['errorCode'], 0)
  assert.equal(records.length, COUNT + 1)
})

test('a directory that fails may have held any number of partitions', { timeout: 60_000 }, () => {
  const { records } = largeCluster().heartbeat(1, { offlineLogDirs: [testUuid(1001)] })
  assert.equal(records.length, COUNT + 1)
})

test('any number of settings may be altered at once', { timeout: 60_000 }, () => {
  const harness = new ControllerHarness()
  harness.start(1)
  const configs = Array.from({ length: COUNT }, (_, index) => ({
    name: `of.a.plug.in.${index}`,
    configOperation: 0,
    value: 'x',
  }))
  const resource = { resourceType: CONFIG_RESOURCE.BROKER, resourceName: '1', configs }
  const request = { resources: [resource], validateOnly: false }
  // Decided only: each that is applied costs as much as the broker has settings.
  const { entries } = harness.machine.decide({ kind: 'incremental-alter-configs', version: 1, request }, harness.now)
  assert.equal(entries.length, COUNT)
})
