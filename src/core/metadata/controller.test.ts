import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { testTranscripts } from '../testing/transcripts.ts'
import { ControllerHarness, dumpImage, testUuid, topicUuid } from './controller-harness.test.ts'
import { MetadataImage } from './image.ts'
import { MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY } from './partition-image.ts'
import { decodeMetadataRecord, encodeMetadataRecord, type MetadataRecord, metadataRecord } from './record.ts'

/**
 * Transcripts in testdata/: commands, a rule of dashes, and all that they lead to, which TIDEMARK_REWRITE=1 writes anew.
 *
 *   config NAME=VALUE...              begins anew with another configuration of the node
 *   start ID...                       registers brokers and unfences them
 *   register ID {more}                heartbeat ID {more}
 *   wait MS   fail-over   died ID     beat ID... MS: time in which these brokers are heard of every two seconds
 *   KIND[/VERSION] {request}          any request, as JSON with names as JavaScript
 *   doubted {request}                 an AlterPartition of a leader that is silent
 *   show TOPIC
 *
 * In a request `#N` is the id of the topic that was created as the Nth, `dir:N` the directory of broker N, `epoch:N` its
 * epoch. Fields that have their defaults are left out of what is shown.
 */
class Script {
  harness = new ControllerHarness()

  run(line: string): string {
    const [head = '', rest = ''] = line.split(/ (.*)/s)
    const [kind = '', version] = head.split('/')
    const words = rest.split(' ').filter(word => word !== '')
    switch (kind) {
      case 'config':
        this.harness = new ControllerHarness(new Map(words.map(word => word.split('=') as [string, string])))
        return ''
      case 'start':
        for (const id of words) this.harness.start(Number(id))
        return ''
      case 'register':
      case 'heartbeat': {
        const more = rest.includes(' ') ? this.#json(rest.slice(rest.indexOf(' '))) : {}
        return this.#print(this.harness[kind](Number(words[0]), more))
      }
      case 'wait':
        return this.#records(this.harness.pass(Number(words[0])))
      case 'beat': {
        const until = this.harness.now + Number(words.at(-1))
        const records: MetadataRecord[] = []
        while (this.harness.now < until) {
          records.push(...this.harness.pass(Math.min(2000, until - this.harness.now)))
          for (const id of words.slice(0, -1)) records.push(...this.harness.heartbeat(Number(id)).records)
        }
        return this.#records(records)
      }
      case 'died': {
        const brokerId = Number(words[0])
        const brokerEpoch = this.harness.epochOf(brokerId)
        return this.#records(this.harness.do({ kind: 'broker-died', brokerId, brokerEpoch }).records)
      }
      case 'unreachable':
      case 'reachable': {
        const brokerId = Number(words[0])
        const isReached = kind === 'reachable'
        const brokerEpoch = this.harness.epochOf(brokerId)
        return this.#records(this.harness.do({ kind: 'broker-reached', brokerId, brokerEpoch, isReached }).records)
      }
      case 'doubted':
        return this.#print(this.harness.ask('alter-partition', this.#json(rest), undefined, { isDoubted: true }))
      case 'fail-over':
        return this.#records(this.harness.failOver().records)
      case 'show':
        return this.#show(rest)
      default:
        return this.#print(
          this.harness.ask(kind, this.#json(rest), version === undefined ? undefined : Number(version)),
        )
    }
  }

  #json(text: string): Record<string, unknown> {
    const quoted = text
      .replace(/epoch:(\d+)/g, (_, id) => String(this.harness.epochOf(Number(id))))
      .replace(/#(\d+)/g, (_, number) => `"${topicUuid(Number(number))}"`)
      .replace(/dir:(\d+)/g, (_, id) => `"${testUuid(1000 + Number(id))}"`)
      .replace(/([{,]\s*)([a-zA-Z]\w*):/g, '$1"$2":')
      .replaceAll("'", '"')
    return JSON.parse(quoted === '' ? '{}' : quoted)
  }

  #print({ records, response }: { records: readonly MetadataRecord[]; response: unknown }): string {
    return `${this.#records(records)}= ${show(response)}\n`
  }

  #records(records: readonly MetadataRecord[]): string {
    return records.map(record => `+ ${record.type} ${show(record.value)}\n`).join('')
  }

  #show(name: string): string {
    const topic = this.harness.machine.image.topicByName(name)
    if (topic === undefined) return 'no such topic\n'
    return topic.partitions
      .map((partition, index) => {
        const { replicas, isr, leader, leaderEpoch, partitionEpoch, leaderRecoveryState } = partition
        const ids: [string, readonly number[]][] = [
          ['adding', partition.addingReplicas],
          ['removing', partition.removingReplicas],
          ['elr', partition.eligibleLeaderReplicas],
          ['last', partition.lastKnownElr],
        ]
        const more = ids.filter(([, list]) => list.length > 0).map(([key, list]) => ` ${key} ${list}`)
        const recovering = leaderRecoveryState === 1 ? ' recovering' : ''
        return `${index}: replicas ${replicas} isr ${isr} leader ${leader} epochs ${leaderEpoch}/${partitionEpoch}${more.join('')}${recovering}\n`
      })
      .join('')
  }
}

/** Ids as they are written in commands, error codes by name, and nothing that has its default. */
function show(value: unknown, key = ''): string {
  if (key.toLowerCase().endsWith('errorcode')) return errorOf(value as number).name
  if (Array.isArray(value)) {
    if (key === 'configs' && value.length > 3) return `<${value.length} configs>`
    return `[${value.map(item => show(item)).join(', ')}]`
  }
  if (typeof value === 'string') {
    const [, number] = KNOWN_IDS.find(([id]) => id === value) ?? []
    return number ?? `'${value}'`
  }
  if (value === null || typeof value !== 'object') return String(value)
  const fields = Object.entries(value)
    .filter(([name, field]) => !isDefault(name, field))
    .map(([name, field]) => `${name}: ${show(field, name)}`)
  return `{${fields.join(', ')}}`
}

const KNOWN_IDS: readonly (readonly [string, string])[] = [
  ...Array.from({ length: 20 }, (_, number) => [topicUuid(number), `#${number}`] as const),
  ...Array.from({ length: 20 }, (_, number) => [testUuid(1000 + number), `dir:${number}`] as const),
  ...Array.from({ length: 20 }, (_, number) => [testUuid(number), `incarnation:${number}`] as const),
]

function isDefault(name: string, value: unknown): boolean {
  if (name.toLowerCase().endsWith('errorcode')) return false
  if (name === 'features' || name === 'endPoints' || name === 'incarnationId') return true
  if (Array.isArray(value))
    return value.length === 0 && name !== 'isr' && name !== 'lastKnownElr' && !/Replicas$/.test(name)
  if (name === 'leader' || name === 'partitionId' || name === 'partitionIndex') return value === -2
  if (name === 'leaderRecoveryState') return value === -1
  if (name === 'value') return false
  return value === null || value === false || value === 0 || value === '' || value === 'AAAAAAAAAAAAAAAAAAAAAA'
}

testTranscripts(join(import.meta.dirname, 'testdata'), () => new Script())

type Step = (harness: ControllerHarness) => void

const id = fc.integer({ min: 1, max: 4 })
const ids = fc.uniqueArray(id, { minLength: 1, maxLength: 4 })
const topicName = fc.constantFrom('a', 'b', 'c', 'd.e', 'd_e', 'bad name')
const partition = fc.integer({ min: 0, max: 3 })

/** Random calls, sensible and not, that reach every kind of record. */
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ id, incarnation: fc.nat(2), previous: fc.boolean() }).map(
    ({ id, incarnation, previous }): Step =>
      h =>
        h.register(id, {
          incarnationId: testUuid(id + 10 * incarnation),
          previousBrokerEpoch: previous ? h.epochOf(id) : -1,
          rack: incarnation === 2 ? 'r' : null,
          logDirs: [testUuid(1000 + id), testUuid(1004 + id)].slice(0, incarnation === 1 ? 2 : 1),
        }),
  ),
  fc.record({ id, wantFence: fc.boolean(), wantShutDown: fc.boolean() }).map(
    ({ id, ...wants }): Step =>
      h =>
        h.heartbeat(id, wants),
  ),
  id.map(
    (id): Step =>
      h =>
        h.heartbeat(id),
  ),
  id.map(
    (id): Step =>
      h =>
        h.heartbeat(id),
  ),
  // Folders fail, all of them or the second one.
  fc.record({ id, all: fc.boolean() }).map(
    ({ id, all }): Step =>
      h =>
        h.heartbeat(id, { offlineLogDirs: all ? [testUuid(1000 + id), testUuid(1004 + id)] : [testUuid(1004 + id)] }),
  ),
  id.map(
    (brokerId): Step =>
      h =>
        h.ask('unregister-broker', { brokerId }),
  ),
  id.map(
    (brokerId): Step =>
      h =>
        h.do({ kind: 'broker-died', brokerId, brokerEpoch: h.epochOf(brokerId) }),
  ),
  fc.nat(12_000).map(
    (ms): Step =>
      h =>
        h.pass(ms),
  ),
  fc.constant<Step>(h => h.failOver()),
  fc
    .record({
      name: topicName,
      numPartitions: fc.integer({ min: -1, max: 5 }),
      replicationFactor: fc.integer({ min: -1, max: 4 }),
      min: fc.constantFrom('1', '2', '0', 'x'),
      unclean: fc.constantFrom('true', 'false'),
    })
    .map(
      ({ min, unclean, ...topic }): Step =>
        h =>
          h.ask('create-topics', {
            topics: [
              {
                ...topic,
                configs: [
                  { name: 'min.insync.replicas', value: min },
                  { name: 'unclean.leader.election.enable', value: unclean },
                ],
              },
            ],
          }),
    ),
  fc.record({ name: topicName, ids }).map(
    ({ name, ids }): Step =>
      h =>
        h.ask('create-topics', {
          topics: [
            { name, numPartitions: -1, replicationFactor: -1, assignments: [{ partitionIndex: 0, brokerIds: ids }] },
          ],
        }),
  ),
  topicName.map(
    (name): Step =>
      h =>
        h.ask('delete-topics', { topics: [{ name }] }),
  ),
  fc.record({ name: topicName, count: fc.integer({ min: 1, max: 8 }) }).map(
    (topic): Step =>
      h =>
        h.ask('create-partitions', { topics: [{ ...topic, assignments: null }] }),
  ),
  // Named once, or twice in one request.
  fc
    .record({
      name: topicName,
      partition,
      isrs: fc.array(ids, { minLength: 1, maxLength: 2 }),
      fromFuture: fc.boolean(),
    })
    .map(
      ({ name, partition, isrs, fromFuture }): Step =>
        h => {
          const topic = h.machine.image.topicByName(name)
          const now = topic?.partitions[partition]
          if (topic === undefined || now === undefined || now.leader < 0) return
          h.ask('alter-partition', {
            brokerId: now.leader,
            brokerEpoch: h.epochOf(now.leader),
            topics: [
              {
                topicId: topic.id,
                partitions: isrs.map(isr => ({
                  partitionIndex: partition,
                  leaderEpoch: now.leaderEpoch,
                  partitionEpoch: now.partitionEpoch + (fromFuture ? 1 : 0),
                  newIsrWithEpochs: isr.map(brokerId => ({ brokerId, brokerEpoch: h.epochOf(brokerId) })),
                })),
              },
            ],
          })
        },
    ),
  fc.record({ electionType: fc.integer({ min: 0, max: 1 }) }).map(
    (request): Step =>
      h =>
        h.ask('elect-leaders', { ...request, topicPartitions: null }),
  ),
  fc
    .record({
      name: topicName,
      partitionIndex: partition,
      words: fc.array(fc.option(ids), { minLength: 1, maxLength: 2 }),
    })
    .map(({ name, partitionIndex, words }): Step => {
      const partitions = words.map(replicas => ({ partitionIndex, replicas }))
      return h => h.ask('alter-partition-reassignments', { topics: [{ name, partitions }] })
    }),
  fc
    .record({
      type: fc.constantFrom(2, 4, 16, 32),
      name: fc.constantFrom('a', 'b', '', '1'),
      key: fc.constantFrom('min.insync.replicas', 'retention.ms', 'interval.ms', 'consumer.session.timeout.ms'),
      value: fc.constantFrom('1', '2', '50000'),
      op: fc.integer({ min: 0, max: 3 }),
    })
    .map(
      ({ type, name, key, value, op }): Step =>
        h =>
          h.ask('incremental-alter-configs', {
            resources: [
              { resourceType: type, resourceName: name, configs: [{ name: key, configOperation: op, value }] },
            ],
          }),
    ),
  fc.record({ name: topicName, id, partitionIndex: partition, dir: fc.integer({ min: 1, max: 9 }) }).map(
    ({ name, id, partitionIndex, dir }): Step =>
      h =>
        h.ask('assign-replicas-to-dirs', {
          brokerId: id,
          brokerEpoch: h.epochOf(id),
          directories: [
            {
              id: testUuid(1000 + dir),
              topics: [
                { topicId: h.machine.image.topicIds.get(name) ?? testUuid(5), partitions: [{ partitionIndex }] },
              ],
            },
          ],
        }),
  ),
  id.map(
    (brokerId): Step =>
      h =>
        h.ask('allocate-producer-ids', { brokerId, brokerEpoch: h.epochOf(brokerId) }),
  ),
  fc
    .record({
      feature: fc.constantFrom('metadata.version', 'eligible.leader.replicas.version', 'group.version'),
      maxVersionLevel: fc.integer({ min: 0, max: 31 }),
      upgradeType: fc.integer({ min: 1, max: 3 }),
    })
    .map(
      (update): Step =>
        h =>
          h.ask('update-features', { featureUpdates: [update] }),
    ),
)

const reserved: ReadonlySet<string> = new Set([UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY])

function checkInvariants(image: MetadataImage): void {
  for (const topic of image.topics.values()) {
    for (const partition of topic.partitions) {
      const { replicas, isr, leader, eligibleLeaderReplicas: elr } = partition
      assert.equal(new Set(replicas).size, replicas.length)
      assert.equal(partition.directories.length, replicas.length)
      assert.ok(
        isr.every(id => replicas.includes(id)),
        'the ISR is part of the replicas',
      )
      assert.ok(
        elr.every(id => !isr.includes(id)),
        'nobody is in the ISR and the ELR',
      )
      assert.ok(
        elr.every(id => replicas.includes(id)),
        'who is eligible is one of the replicas',
      )
      if (leader !== -1) {
        assert.ok(isr.includes(leader), 'a leader is in sync')
        const broker = image.broker(leader)
        assert.ok(broker !== undefined && !broker.fenced && !broker.inControlledShutdown, 'a leader is alive')
        continue
      }
      const eligible = replicas.filter((id, position) => {
        const broker = image.broker(id)
        const directory = partition.directories[position] ?? ''
        const isOnline = reserved.has(directory) || broker?.logDirs.includes(directory)
        const isAlive = broker?.fenced === false && !broker.inControlledShutdown && isOnline
        return isAlive && (isr.length === 0 ? elr : isr).includes(id)
      })
      assert.deepEqual(eligible, [], 'nobody who may lead is left out')
    }
  }
}

/**
 * Which replicas hold all that was committed, as brokers would have it: with enough of them in sync something is committed
 * at any moment, and whoever is not in sync lacks it from then on; a replica that is taken out is deleted; who comes back
 * unclean may lack anything. A leader that is not said to be recovering has to be one of them.
 */
class Holders {
  readonly #byPartition = new Map<string, Set<number>>()

  check({ machine: { image }, unclean }: ControllerHarness): void {
    for (const topic of image.topics.values()) {
      const set = image.config(2, topic.name)
      const min = Number(set.get('min.insync.replicas') ?? image.config(4, '').get('min.insync.replicas') ?? 1)
      const mayLose = set.get('unclean.leader.election.enable') === 'true'
      for (const [index, partition] of topic.partitions.entries()) {
        const { replicas, isr, leader, leaderRecoveryState } = partition
        const holders = this.#byPartition.get(`${topic.id}-${index}`) ?? new Set(isr)
        this.#byPartition.set(`${topic.id}-${index}`, holders)
        for (const id of holders) if (!replicas.includes(id) || unclean.has(id)) holders.delete(id)
        if (leader === -1) continue
        const isCertain = leaderRecoveryState === 0 && !mayLose
        assert.ok(
          !isCertain || holders.has(leader),
          `${leader} leads ${topic.name}-${index} without what was committed`,
        )
        if (!isCertain) holders.clear()
        for (const id of isr) holders.add(id)
        const commits = isr.length >= Math.min(min, replicas.length)
        for (const id of holders) if (commits && !isr.includes(id)) holders.delete(id)
      }
    }
    unclean.clear()
  }
}

test('whatever is asked: logs fold to the same image, snapshots are whole, leaders are alive and in sync', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), steps => {
      const harness = new ControllerHarness()
      const holders = new Holders()
      for (const id of [1, 2, 3]) harness.start(id)
      for (const each of steps) {
        each(harness)
        checkInvariants(harness.machine.image)
        holders.check(harness)
      }
      const image = dumpImage(harness.machine.image)
      assert.equal(harness.machine.image.skipped, 0)
      assert.deepEqual(dumpImage(harness.follower), image)
      const fresh = new MetadataImage()
      for (const { offset, epoch, value } of harness.log) fresh.apply(decodeMetadataRecord(value), offset, epoch)
      assert.deepEqual(dumpImage(fresh), image)
      const restored = new MetadataImage()
      for (const record of harness.machine.image.snapshotRecords()) {
        restored.apply(
          decodeMetadataRecord(encodeMetadataRecord(record)),
          harness.follower.offset,
          harness.follower.epoch,
        )
      }
      assert.deepEqual(dumpImage(restored), image)
    }),
    { numRuns: 400 },
  )
})

test('a broker of 24,000 partitions is fenced in one batch, quickly', () => {
  const harness = new ControllerHarness()
  for (let id = 1; id <= 18; id++) harness.start(id)
  for (let topic = 0; topic < 8; topic++) {
    const { response } = harness.ask('create-topics', {
      topics: [{ name: `t${topic}`, numPartitions: 3000, replicationFactor: 3 }],
    })
    assert.equal((response['topics'] as { errorCode: number }[])[0]?.errorCode, ErrorCode.NONE)
  }
  const leads = new Map<number, number>()
  for (const topic of harness.machine.image.topics.values()) {
    for (const { leader } of topic.partitions) leads.set(leader, (leads.get(leader) ?? 0) + 1)
  }
  assert.ok(Math.max(...leads.values()) - Math.min(...leads.values()) <= 1, 'leaders are even')
  const { records } = harness.do({ kind: 'broker-died', brokerId: 7, brokerEpoch: harness.epochOf(7) })
  assert.equal(records.length, 4000 + 1)
  const after = [...harness.machine.image.topics.values()].flatMap(topic => topic.partitions)
  assert.ok(after.every(({ leader, isr }) => leader !== 7 && leader !== -1 && !isr.includes(7)))
})

test('eligible leaders are not kept before all nodes agree how many replicas are enough', () => {
  const harness = new ControllerHarness()
  harness.start(1)
  const isAt = (name: string, featureLevel: number) =>
    harness.machine.image.apply(metadataRecord('FeatureLevel', 30, { name, featureLevel }), harness.nextOffset, 1)
  const raise = (...features: readonly (readonly [string, number])[]) => {
    const featureUpdates = features.map(([feature, maxVersionLevel]) => ({ feature, maxVersionLevel }))
    const { response, records } = harness.ask('update-features', { featureUpdates })
    return { error: errorOf(response['errorCode'] as number).name, records }
  }
  const alone = { resourceType: 4, resourceName: '1', name: 'min.insync.replicas', value: '1' }
  const noMore = { ...alone, value: null }
  isAt('metadata.version', 17)
  isAt('eligible.leader.replicas.version', 0)
  harness.machine.image.apply(metadataRecord('Config', 17, alone), harness.nextOffset, 1)
  // The broker's own number would come to hold later, with the metadata version: it would commit alone, and who left before
  // be elected.
  assert.equal(raise(['eligible.leader.replicas.version', 1]).error, 'INVALID_UPDATE_VERSION')
  isAt('eligible.leader.replicas.version', 1)
  const { error, records } = raise(['metadata.version', 30])
  assert.equal(error, 'NONE')
  assert.ok(records.some(({ type, value }) => type === 'Config' && JSON.stringify(value) === JSON.stringify(noMore)))
  isAt('metadata.version', 17)
  isAt('eligible.leader.replicas.version', 0)
  assert.equal(raise(['eligible.leader.replicas.version', 1], ['metadata.version', 30]).error, 'NONE')
})

test('an answer does not grow with how often it repeats a name', () => {
  const harness = new ControllerHarness()
  harness.start(1)
  const name = 'n'.repeat(32_000)
  const indexes = Array.from({ length: 1000 }, (_, index) => index)
  const reassigned = indexes.map(partitionIndex => ({ partitionIndex, replicas: null }))
  for (const [kind, request] of [
    ['elect-leaders', { electionType: 0, topicPartitions: [{ topic: name, partitions: indexes }] }],
    ['alter-partition-reassignments', { topics: [{ name, partitions: reassigned }] }],
  ] as const) {
    const { response } = harness.ask(kind, request)
    assert.ok(JSON.stringify(response).length < 600_000, kind)
  }
})

test('no broker has more directories than can be looked through', () => {
  const harness = new ControllerHarness()
  const logDirs = Array.from({ length: 1001 }, (_, index) => testUuid(5000 + index))
  const error = ({ response }: { response: Record<string, unknown> }) => errorOf(response['errorCode'] as number).name
  assert.equal(error(harness.register(1, { logDirs })), 'INVALID_REGISTRATION')
  harness.start(1, { logDirs: logDirs.slice(1) })
  assert.equal(error(harness.heartbeat(1, { offlineLogDirs: logDirs })), 'INVALID_REQUEST')
  assert.equal(error(harness.heartbeat(1, { cordonedLogDirs: logDirs })), 'INVALID_REQUEST')
  assert.equal(error(harness.heartbeat(1, { offlineLogDirs: logDirs.slice(1) })), 'NONE')
})

test('nobody registers more listeners or features than a node has', () => {
  const harness = new ControllerHarness()
  const listener = { name: 'L', host: 'h', port: 1, securityProtocol: 0 }
  const feature = { name: 'f', minSupportedVersion: 0, maxSupportedVersion: 1 }
  for (const more of [{ listeners: Array(101).fill(listener) }, { features: Array(101).fill(feature) }]) {
    const { response, records } = harness.register(1, more)
    assert.deepEqual([errorOf(response['errorCode'] as number).name, records], ['INVALID_REGISTRATION', []])
    const controller = {
      controllerId: 1,
      incarnationId: testUuid(1),
      zkMigrationReady: false,
      listeners: [],
      features: [],
    }
    const refused = harness.ask('register-controller', { ...controller, ...more })
    assert.deepEqual([errorOf(refused.response['errorCode'] as number).name, refused.records], ['INVALID_REQUEST', []])
  }
})

// Some megabytes of request: what costs more than its size would stop the controller for minutes.
test('topics that are named twice cost no more than they are many', { timeout: 60_000 }, () => {
  const harness = new ControllerHarness()
  harness.start(1)
  const once = Array.from({ length: 4_500 }, (_, index) => ({
    name: `t${index}`,
    numPartitions: 0,
    replicationFactor: 1,
  }))
  const { response } = harness.ask('create-topics', { topics: [...once, ...once] })
  assert.equal((response['topics'] as object[]).length, once.length)
})
