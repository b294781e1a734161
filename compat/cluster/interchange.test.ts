/** Kafka's nodes and ours in one cluster: each kind leads and follows the other, as brokers and as controllers. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { tool, withoutKafka } from '../reliability/rig.ts'
import { type ClusterOptions, FEATURES_OF_KAFKA, type Member, MixedCluster } from './members.ts'
import { eventually } from './nodes.ts'
import { makeTopic, passed, Trial } from './trial.ts'

// A run that takes too long is ended by a signal; the nodes that it has started end with it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

const skip = await withoutKafka()

/** Nine seconds of waiting for each broker that Kafka has to miss are too many for a test. */
const QUICK = { 'broker.session.timeout.ms': '3000', 'broker.heartbeat.interval.ms': '500' }
/** Voters of Kafka's that do not hurry to become candidates: where nobody leads, ours does. */
const PATIENT = {
  'controller.quorum.election.timeout.ms': '15000',
  'controller.quorum.election.backoff.max.ms': '15000',
}

async function clusterOf(t: TestContext, options: ClusterOptions): Promise<MixedCluster> {
  const cluster = await MixedCluster.create({ ...options, settings: { ...QUICK, ...options.settings } })
  t.after(() => cluster.remove())
  return cluster
}

/** What each controller's metadata log holds below an offset, byte for byte. */
function sameMetadata(controllers: readonly Member[], below: number): number {
  const [first, ...others] = controllers.map(member => ({ member, bytes: batchesBelow(member.folder, below) }))
  assert.ok(first !== undefined && first.bytes.length > 0)
  for (const { member, bytes } of others)
    assert.ok(bytes.equals(first.bytes), `the metadata of node ${member.id} is another than that of ${first.member.id}`)
  return first.bytes.length
}

function batchesBelow(folder: string, offset: number): Buffer {
  const bytes = readFileSync(join(folder, '__cluster_metadata-0', '00000000000000000000.log'))
  let end = 0
  // Base offset, 8 bytes; length of what follows, 4; the last offset's delta stands 23 bytes in.
  while (end + 61 <= bytes.length && bytes.readUInt32BE(end + 8) > 0) {
    if (Number(bytes.readBigUInt64BE(end)) + bytes.readUInt32BE(end + 23) >= offset) break
    end += 12 + bytes.readUInt32BE(end + 8)
  }
  return bytes.subarray(0, end)
}

test('brokers and a controller of ours among those of Kafka: they hold replicas, lead, are led, and vote', {
  skip,
  timeout: 240_000,
}, async t => {
  const cluster = await clusterOf(t, {
    members: [
      { kind: 'kafka', roles: 'broker,controller', settings: PATIENT },
      { kind: 'kafka', roles: 'broker,controller', settings: PATIENT },
      { kind: 'tidemark', roles: 'broker,controller' },
      { kind: 'tidemark', roles: 'broker' },
    ],
  })
  cluster.start()
  await cluster.untilLive()
  const trial = await Trial.begin(cluster, {
    topic: 'mixed',
    placement: [
      [1, 4, 3],
      [2, 4, 1],
      [3, 1, 4],
      [4, 2, 1],
    ],
    minIsr: 2,
    writers: ['tidemark', 'java'],
    readers: ['tidemark'],
    perSecond: 100,
  })
  t.after(() => trial.abandon())
  await trial.untilInSync()
  assert.deepEqual(await trial.leaders(), [1, 2, 3, 4])
  const { leaderId } = await cluster.untilLed()
  assert.equal(leaderId, 3, 'ours votes first, and is voted for')

  const told: string[] = []
  /** What is done, and how long it was felt. */
  const felt = async (what: string, act: () => Promise<void>) => {
    const from = Date.now()
    await act()
    await trial.untilWritten(10)
    told.push(`${what}: felt for ${JSON.stringify(trial.gaps(from))} ms`)
  }
  const back = async (...ids: number[]) => {
    cluster.start(...ids)
    await cluster.untilLive()
    await trial.untilInSync()
  }

  await felt('kill -9 of our controller that leads, with its broker', () =>
    cluster
      .member(3)
      .kill()
      .then(() => {}),
  )
  const { leaderId: theirs } = await cluster.untilLed(({ leaderId: now }) => now === 1 || now === 2)
  await back(3)

  // Ours is ahead of the follower that is killed, and so the only one who can lead once that is back.
  const follower = 3 - theirs
  await felt('kill -9 of a Kafka that follows', () =>
    cluster
      .member(follower)
      .kill()
      .then(() => {}),
  )
  await delay(1500)
  const from = Date.now()
  await cluster.member(theirs).kill()
  cluster.start(follower)
  await cluster.untilLed(({ leaderId: now }) => now === 3)
  await trial.untilWritten(10)
  told.push(`kill -9 of two of three voters, one is back: felt for ${JSON.stringify(trial.gaps(from))} ms`)
  await back(theirs)

  await felt('kill -9 of our broker', () =>
    cluster
      .member(4)
      .kill()
      .then(() => {}),
  )
  await back(4)
  told.push(passed(await trial.verdict()))

  const { highWatermark } = await cluster.untilLed()
  for (const member of cluster.members) await member.stop()
  const controllers = [1, 2, 3].map(id => cluster.member(id))
  told.push(`${sameMetadata(controllers, highWatermark)} bytes of metadata are the same in all three`)
  const segment = join(cluster.member(3).folder, '__cluster_metadata-0', '00000000000000000000.log')
  const { stdout } = await tool(
    'kafka-dump-log',
    '--cluster-metadata-decoder',
    '--skip-record-metadata',
    '--files',
    segment,
  )
  assert.match(stdout, /"type":"REGISTER_BROKER_RECORD"/)
  assert.doesNotMatch(stdout, /isvalid: false|could not be decoded|Error/i)
  for (const line of told) t.diagnostic(line)
})

test('a cluster of Kafka is replaced by ours node by node, on the same folders and under load, and back', {
  skip,
  timeout: 300_000,
}, async t => {
  const member = { kind: 'kafka', roles: 'broker,controller' } as const
  const cluster = await clusterOf(t, { members: [member, member, member] })
  cluster.start()
  await cluster.untilLive()
  const trial = await Trial.begin(cluster, {
    topic: 'replaced',
    placement: [
      [1, 2, 3],
      [2, 3, 1],
      [3, 1, 2],
    ],
    minIsr: 2,
    writers: ['java', 'tidemark'],
    readers: ['tidemark', 'java'],
    perSecond: 100,
  })
  t.after(() => trial.abandon())
  await trial.untilInSync()
  const told: string[] = []
  const replace = async (id: number, kind: 'kafka' | 'tidemark') => {
    const node = cluster.member(id)
    const from = Date.now()
    const before = node.kind
    const code = await node.stop()
    assert.ok([0, 143].includes(Number(code)), `${before} ended with ${code}`)
    node.kind = kind
    cluster.start(id)
    await cluster.untilLive()
    await trial.untilInSync()
    await trial.untilWritten(10)
    const took = ((Date.now() - from) / 1000).toFixed(1)
    told.push(`node ${id}: ${before} to ${kind} in ${took} s, felt for ${JSON.stringify(trial.gaps(from))} ms`)
  }
  for (const kind of ['tidemark', 'kafka'] as const) {
    for (const id of [1, 2, 3]) await replace(id, kind)
    const { leaderId } = await cluster.untilLed()
    told.push(`all are ${kind}; controller ${leaderId} leads`)
  }
  told.push(passed(await trial.verdict()))
  for (const line of told) t.diagnostic(line)
})

test('brokers of Kafka and ours under controllers of ours, one of which is killed', {
  skip,
  timeout: 240_000,
}, async t => {
  const controller = { kind: 'tidemark', roles: 'controller' } as const
  const cluster = await clusterOf(t, {
    members: [
      controller,
      controller,
      controller,
      { kind: 'kafka', roles: 'broker' },
      { kind: 'kafka', roles: 'broker' },
      { kind: 'tidemark', roles: 'broker' },
    ],
  })
  cluster.start(1, 2, 3)
  await cluster.untilFounded()
  cluster.start(4, 5, 6)
  await cluster.untilLive()
  const trial = await Trial.begin(cluster, {
    topic: 'under-ours',
    placement: [
      [4, 5, 6],
      [5, 6, 4],
      [6, 4, 5],
    ],
    minIsr: 2,
    writers: ['tidemark', 'java'],
    readers: ['java', 'tidemark'],
    perSecond: 100,
  })
  t.after(() => trial.abandon())
  await trial.untilInSync()
  const told: string[] = []
  const kill = async (id: number, what: string) => {
    const from = Date.now()
    await cluster.member(id).kill()
    await trial.untilWritten(10)
    told.push(`kill -9 of ${what}: felt for ${JSON.stringify(trial.gaps(from))} ms`)
    cluster.start(id)
    await cluster.untilLive()
    await trial.untilInSync()
  }
  const { leaderId } = await cluster.untilLed()
  await kill(leaderId, 'the active controller')
  await cluster.untilLed(({ leaderId: now, voters }) => now !== leaderId && voters.length === 3)
  await kill(4, "Kafka's broker")
  await kill(6, 'our broker')
  told.push(passed(await trial.verdict()))
  for (const line of told) t.diagnostic(line)
})

/** What Kafka has by default and we do not have yet keeps our brokers out; it is told, and can be lowered. */
async function refusedForItsFeatures(cluster: MixedCluster, id: number): Promise<void> {
  const node = cluster.member(id)
  cluster.start(id)
  await cluster.during(eventually(`node ${id} ends`, async () => !node.isRunning))
  assert.match(
    node.log(),
    /the cluster refuses broker 4 \(UNSUPPORTED_VERSION\): .* \(group\.version 1, .*transaction\.version 2\)/,
  )
  const lower = FEATURES_OF_KAFKA.flatMap(name => ['--feature', `${name}=0`])
  const at = `127.0.0.1:${cluster.member(1).port}`
  const { stdout } = await tool('kafka-features', '--bootstrap-server', at, 'downgrade', ...lower)
  assert.match(stdout, /transaction\.version was downgraded to 0/)
}

for (const founder of ['kafka', 'tidemark'] as const)
  test(`a quorum whose voters are records, founded by ${founder}: the other kind joins it, and leads when the founder dies`, {
    skip,
    timeout: 240_000,
  }, async t => {
    const other = founder === 'kafka' ? 'tidemark' : 'kafka'
    const joins = { roles: 'controller', settings: { 'controller.quorum.auto.join.enable': 'true' } } as const
    const cluster = await clusterOf(t, {
      quorum: 'dynamic',
      features: 'kafka',
      members: [
        { kind: founder, roles: 'broker,controller', settings: founder === 'kafka' ? PATIENT : {} },
        { kind: other, ...joins },
        { kind: 'tidemark', ...joins },
        { kind: other, roles: 'broker' },
      ],
    })
    cluster.start(1)
    await cluster.untilFounded()
    await cluster.untilLed()
    if (founder === 'kafka') {
      await cluster.untilLive(1)
      await refusedForItsFeatures(cluster, 4)
    }
    cluster.start(2, 3, 4)
    const votes = (...ids: number[]) =>
      cluster.untilLed(({ voters }) => ids.every(id => voters.some(({ replicaId }) => replicaId === id)))
    await votes(1, 2, 3)
    await cluster.untilLive()
    const before = await cluster.untilLed()
    await cluster.member(before.leaderId).kill()
    const { leaderId } = await cluster.untilLed(({ leaderId: now }) => now !== before.leaderId)
    cluster.start(before.leaderId)
    await cluster.untilLive()
    await votes(1, 2, 3)
    const client = await cluster.client()
    await makeTopic(client, 'made-by-the-second', [[4], [1]])
    client.close()
    const { highWatermark } = await cluster.untilLed()
    const controllers = [1, 2, 3].map(id => cluster.member(id))
    const held = () => controllers.every(({ folder }) => batchesBelow(folder, highWatermark).length > 0)
    await eventually('all hold what is committed', async () => held() && sameMetadata(controllers, highWatermark) > 0)
    t.diagnostic(`controller ${before.leaderId} led, then ${leaderId}`)
  })
