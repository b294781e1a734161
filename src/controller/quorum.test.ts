import assert from 'node:assert/strict'
import { test } from 'node:test'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Controller } from './controller.ts'
import { QuorumError } from './quorum-error.ts'
import { brokerOf, recordsOf, simulated } from './testing/quorum-rig.ts'
import { Client } from './testing/rig.ts'

test('three new nodes of a fixed list found one cluster, elect one of them and agree', async () => {
  await simulated(1, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const active = await rig.active()
    const client = await brokerOf(simulation.node('broker').world, active)
    assert.equal((await client.createTopic('tides', 3))?.errorCode, 0)
    await rig.caughtUp()
    const ids = rig.running.map(({ clusterId }) => clusterId)
    assert.equal(typeof ids[0], 'string')
    assert.deepEqual(new Set(ids).size, 1)
    await rig.until(() => active.image?.controllers.size === 3, 'all have registered')
    await rig.caughtUp()
    for (const controller of rig.running) {
      assert.deepEqual(recordsOf(controller), recordsOf(active))
      assert.equal(controller.leaderId, active.nodeId)
      assert.equal(controller.kraftVersion, 0)
    }
    await rig.stopAll()
  })
})

test('nothing is written while nothing happens', async () => {
  await simulated(1, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const active = await rig.active()
    await rig.until(() => active.image?.controllers.size === 3, 'all have registered')
    await rig.caughtUp()
    const { nextOffset, epoch } = active
    await simulation.wait(600_000)
    assert.deepEqual([active.isActive, active.epoch, active.nextOffset], [true, epoch, nextOffset])
    await rig.stopAll()
  })
})

test('a leader that dies is followed by another without a reload, and comes back as a follower', async () => {
  await simulated(2, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const first = await rig.active()
    const client = await brokerOf(simulation.node('broker').world, first)
    for (let index = 0; index < 5; index++) await client.createTopic(`topic-${index}`)
    await rig.caughtUp()
    const member = rig.memberOf(first)
    const { epoch } = first
    const died = simulation.schedule.now
    rig.crash(member)
    const second = await rig.active()
    // The refused dial tells, not the fetch timeout of two seconds.
    assert.ok(simulation.schedule.now - died < 1_000_000, `${(simulation.schedule.now - died) / 1000} ms`)
    assert.ok(second.epoch > epoch)
    assert.equal(second.image?.topics.size, 5)
    const again = await brokerOf(simulation.node('broker').world, second)
    assert.equal((await again.createTopic('after'))?.errorCode, 0)
    await rig.start(member)
    await rig.caughtUp()
    for (const controller of rig.running) assert.deepEqual(recordsOf(controller), recordsOf(second))
    await rig.stopAll()
  })
})

test('a leader that stops hands over', async () => {
  await simulated(3, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const first = await rig.active()
    await rig.caughtUp()
    const began = simulation.schedule.now
    await rig.stop(rig.memberOf(first))
    await rig.active()
    assert.ok(simulation.schedule.now - began < 500_000, `${(simulation.schedule.now - began) / 1000} ms`)
    await rig.stopAll()
  })
})

test('what a leader without a majority appended is cut off when it comes back', async () => {
  await simulated(4, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const first = await rig.active()
    const client = await brokerOf(simulation.node('broker').world, first)
    await client.createTopic('kept')
    await rig.caughtUp()
    const alone = rig.memberOf(first)
    const others = rig.members.filter(member => member !== alone)
    rig.cutOff(alone)
    const lost = client.createTopic('lost')
    await rig.until(() => others.some(({ controller }) => controller?.isActive === true), 'the others elect')
    const second = others.find(({ controller }) => controller?.isActive === true)?.controller as Controller
    const elsewhere = await brokerOf(simulation.node('broker').world, second)
    assert.equal((await elsewhere.createTopic('other'))?.errorCode, 0)
    assert.notEqual((await lost)?.errorCode, 0)
    rig.rejoin(alone)
    await rig.until(() => !first.isActive, 'the old leader has stepped down')
    await rig.caughtUp()
    assert.equal(first.image?.topicByName('lost'), undefined)
    for (const controller of rig.running) assert.deepEqual(recordsOf(controller), recordsOf(second))
    await rig.stopAll()
  })
})

test('a node that is far behind begins at a snapshot of the leader', async () => {
  await simulated(5, async (rig, simulation) => {
    rig.addStatic(3, { snapshotBytes: 2000 })
    await rig.startAll()
    const active = await rig.active()
    const client = await brokerOf(simulation.node('broker').world, active)
    await rig.caughtUp()
    const behind = rig.members.find(({ controller }) => controller !== active)
    assert.ok(behind !== undefined)
    rig.crash(behind)
    for (let index = 0; active.logStartOffset < 50; index++) await client.createTopic(`topic-${index}`)
    const late = await rig.start(behind)
    await rig.caughtUp()
    assert.ok(late.logStartOffset >= 50)
    assert.deepEqual(recordsOf(late), recordsOf(active))
    rig.crash(behind, 'powerCut')
    await client.createTopic('more')
    const again = await rig.start(behind)
    await rig.caughtUp()
    assert.deepEqual(recordsOf(again), recordsOf(active))
    await rig.stopAll()
  })
})

test('a snapshot that rots on the leader is replaced: who is behind comes up, and so does who reads it first', async () => {
  for (const seed of [5, 6, 7]) {
    await simulated(seed, async (rig, simulation) => {
      rig.addStatic(3, { snapshotBytes: 2000 })
      await rig.startAll()
      const active = await rig.active()
      const client = await brokerOf(simulation.node('broker').world, active)
      await rig.caughtUp()
      const behind = rig.members.find(({ controller }) => controller !== active)
      assert.ok(behind !== undefined)
      rig.crash(behind)
      for (let index = 0; active.logStartOffset < 50; index++) await client.createTopic(`topic-${index}`)
      const { disk } = rig.memberOf(active).machine.world
      const folder = '/data/__cluster_metadata-0'
      const names = (await disk.list(folder)).map(({ name }) => name).filter(name => name.endsWith('.checkpoint'))
      // Both, or the last one alone.
      for (const name of names.toSorted().slice(seed === 7 ? 1 : 0)) {
        const file = await disk.open(`${folder}/${name}`, { create: false, write: true })
        // In the header, in the middle, in the last byte of the footer.
        const at = { 5: 30, 6: (await file.size()) >> 1, 7: (await file.size()) - 1 }[seed] ?? 0
        const byte = Buffer.alloc(1)
        await file.read(byte, at)
        await file.write([Buffer.from([(byte[0] as number) ^ 1])], at)
        await file.close()
      }
      const late = await rig.start(behind)
      await rig.caughtUp(3000)
      assert.deepEqual(recordsOf(late), recordsOf(active))
      await rig.stopAll()
      const left = await disk.list(folder)
      assert.ok(left.filter(({ name }) => name.includes('.checkpoint')).length <= 2)
      await rig.startAll()
      await rig.caughtUp()
      await rig.stopAll()
    })
  }
})

test('no snapshot of before is stored while the log begins anew at one of the leader', async () => {
  await simulated(21, async (rig, simulation) => {
    rig.addStatic(3, { snapshotBytes: 20_000, snapshotIntervalMs: 20_000 })
    await rig.startAll()
    const active = await rig.active()
    const client = await brokerOf(simulation.node('broker').world, active)
    await rig.caughtUp()
    const behind = rig.members.find(({ controller }) => controller !== active)
    assert.ok(behind !== undefined)
    rig.cutOff(behind)
    const end = behind.controller?.nextOffset ?? 0
    for (let index = 0; active.logStartOffset <= end; index++) await client.createTopic(`topic-${index}`)
    // Its own snapshot is due while the leader's takes the place of its log.
    await simulation.wait(14_500 - simulation.schedule.now / 1000)
    const quick = behind.machine.disk.faults
    behind.machine.disk.faults = { ...quick, latencyUs: [300_000, 400_000], writesNow: 0 }
    rig.rejoin(behind)
    await simulation.wait(15_000)
    behind.machine.disk.faults = quick
    await rig.caughtUp()
    const late = behind.controller as Controller
    assert.ok(late.logStartOffset > end)
    const files = (await behind.machine.world.disk.list('/data/__cluster_metadata-0')).map(({ name }) => name)
    for (const file of files.filter(name => name.endsWith('.checkpoint'))) {
      assert.ok(
        Number(file.slice(0, 20)) >= late.logStartOffset,
        `${file} in a log that begins at ${late.logStartOffset}`,
      )
    }
    await rig.stopAll()
  })
})

test('a leader waits for the only other voter that is there while that reads a snapshot over a slow link', async () => {
  await simulated(17, async (rig, simulation) => {
    rig.addStatic(3, { snapshotBytes: 50_000 })
    await rig.startAll()
    const active = await rig.active()
    const client = await brokerOf(simulation.node('broker').world, active)
    await rig.caughtUp()
    const [behind, dead] = rig.members.filter(({ controller }) => controller !== active)
    assert.ok(behind !== undefined && dead !== undefined)
    rig.crash(behind)
    for (let first = 0; first < 1500; first += 100) {
      const names = Array.from({ length: 100 }, (_, index) => `${first + index}`.padEnd(200, '-'))
      const topics = names.map(name => ({ name, numPartitions: 1, replicationFactor: 1 }))
      await client.channel.ask(API.CreateTopics, { topics, timeoutMs: 10_000 })
    }
    await rig.until(() => active.logStartOffset > 1000, 'what it lacks is only in a snapshot')
    rig.crash(dead)
    simulation.network.faults.bytesPerSecond = 50_000
    const { epoch } = active
    const late = await rig.start(behind)
    const from = simulation.schedule.now
    await rig.until(() => late.highWatermark >= active.highWatermark, 'it has caught up', 60_000)
    assert.ok(simulation.schedule.now - from > 5e6, 'longer than a leader waits for who does not fetch')
    assert.deepEqual([active.isActive, active.epoch], [true, epoch])
    await rig.stopAll()
  })
})

test('who asks for a voter that never catches up and goes away leaves the way free; what no voter can have is refused', async () => {
  await simulated(16, async (rig, simulation) => {
    const first = await rig.start(rig.add())
    const { endpoint, clusterId = null } = first
    const { world } = simulation.node('client')
    const hasty = await Client.connect(world, first.address)
    const voter = { clusterId, voterId: 9, voterDirectoryId: 'Jwk4kZqYQ2uPqSxq8bT7Zg', timeoutMs: 0x7fff_ffff }
    const add = { ...voter, listeners: [endpoint] }
    hasty.channel.ask(API.AddRaftVoter, add).catch(() => {})
    await simulation.wait(100)
    const patient = await Client.connect(world, first.address)
    const meanwhile = await patient.channel.ask(API.AddRaftVoter, { ...add, voterId: 8, timeoutMs: 500 })
    assert.equal(meanwhile.errorMessage, 'another change of the voters is under way')
    hasty.channel.close()
    await simulation.wait(100)
    const after = await patient.channel.ask(API.AddRaftVoter, { ...add, voterId: 8, timeoutMs: 500 })
    assert.equal(after.errorMessage, 'the change of voters was not committed in time')

    const many = Array.from({ length: 64 }, (_, index) => ({ name: `L${index}`, host: 'h', port: 1 }))
    const long = [endpoint, { name: 'L', host: 'h'.repeat(256), port: 1 }]
    for (const listeners of [[endpoint, ...many], long, [{ ...endpoint, host: '' }], [{ ...endpoint, port: 0 }]]) {
      const refused = await patient.channel.ask(API.AddRaftVoter, { ...add, listeners })
      assert.equal(refused.errorCode, ErrorCode.INVALID_REQUEST)
      const { directoryId: voterDirectoryId, epoch: currentLeaderEpoch } = first
      const kRaftVersionFeature = { minSupportedVersion: 0, maxSupportedVersion: 1 }
      const own = { clusterId, voterId: 1, voterDirectoryId, currentLeaderEpoch, listeners, kRaftVersionFeature }
      assert.equal((await patient.channel.ask(API.UpdateRaftVoter, own)).errorCode, ErrorCode.INVALID_REQUEST)
    }
    assert.equal(first.voters.length, 1)
    await rig.stopAll()
  })
})

test('a node joins a cluster of one by itself, and leaves it again; the one that leads may leave too', async () => {
  await simulated(6, async (rig, simulation) => {
    const founder = rig.add()
    const first = await rig.start(founder)
    assert.equal(first.isActive, true)
    const bootstrapServers = [{ host: founder.machine.host, port: 9093 }]
    const joined = await rig.start(rig.add({ bootstrapServers, autoJoin: true }))
    await rig.until(() => joined.voters.length === 2, 'the second one votes')
    await rig.start(rig.add({ bootstrapServers, autoJoin: true }))
    await rig.until(() => first.voters.length === 3, 'the third one votes')
    await rig.caughtUp()
    assert.equal(joined.clusterId, first.clusterId)
    assert.equal(joined.kraftVersion, 1)

    const observer = await rig.start(rig.add({ bootstrapServers }))
    await rig.caughtUp()
    assert.equal(observer.voters.length, 3)
    const client = await Client.connect(simulation.node('client').world, first.address)
    const { nodeId: voterId, directoryId: voterDirectoryId, endpoint, clusterId = null } = observer
    const add = { clusterId, voterId, voterDirectoryId, listeners: [endpoint], timeoutMs: 5000 }
    assert.equal((await client.channel.ask(API.AddRaftVoter, add)).errorCode, 0)
    assert.equal(first.voters.length, 4)
    assert.equal((await client.channel.ask(API.AddRaftVoter, add)).errorCode, ErrorCode.DUPLICATE_VOTER)
    const foreign = { ...add, clusterId: 'another' }
    assert.equal((await client.channel.ask(API.AddRaftVoter, foreign)).errorCode, ErrorCode.INCONSISTENT_CLUSTER_ID)

    const topics = [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }]
    const described = await client.channel.ask(API.DescribeQuorum, { topics })
    assert.deepEqual(
      described.topics[0]?.partitions[0]?.currentVoters.map(({ replicaId }) => replicaId),
      [1, 2, 3, 4],
    )
    assert.deepEqual(
      described.nodes.map(({ listeners }) => listeners[0]?.host),
      rig.members.map(m => m.machine.host),
    )

    const leaving = { clusterId, voterId: 1, voterDirectoryId: first.directoryId }
    assert.equal((await client.channel.ask(API.RemoveRaftVoter, leaving)).errorCode, 0)
    await rig.until(() => rig.running.some(each => each !== first && each.isActive), 'another one leads')
    await rig.caughtUp()
    for (const controller of rig.running)
      assert.deepEqual(
        controller.voters.map(({ id }) => id),
        [2, 3, 4],
      )
    // It was told of nobody when it founded the cluster, and finds the others by their records.
    await rig.stop(founder)
    const again = await rig.start(founder)
    await rig.caughtUp()
    assert.equal(again.isActive, false)
    assert.deepEqual(
      again.voters.map(({ id }) => id),
      [2, 3, 4],
    )
    await rig.stopAll()
  })
})

test('a node that was killed while it joined does not begin a quorum of its own when nobody is named any more', async () => {
  await simulated(9, async (rig, simulation) => {
    const founder = rig.add()
    await rig.start(founder)
    const bootstrapServers = [{ host: founder.machine.host, port: 9093 }]
    const late = rig.add({ bootstrapServers, autoJoin: true })
    simulation.network.cut(late.machine, founder.machine)
    await rig.start(late)
    await simulation.wait(100)
    rig.crash(late)
    late.config = {}
    await assert.rejects(rig.start(late), QuorumError)
    simulation.network.heal(late.machine, founder.machine)
    late.config = { bootstrapServers, autoJoin: true }
    const joined = await rig.start(late)
    await rig.until(() => joined.voters.length === 2, 'it votes')
    await rig.stopAll()
  })
})

test('a fixed list becomes records when kraft.version is raised, and survives the leader', async () => {
  await simulated(8, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const active = await rig.active()
    await rig.until(() => active.image?.controllers.size === 3, 'all have registered')
    await rig.caughtUp()
    const client = await Client.connect(simulation.node('client').world, active.address)
    const featureUpdates = [{ feature: 'kraft.version', maxVersionLevel: 1 }]
    const raise = () => client.channel.ask(API.UpdateFeatures, { featureUpdates })
    // Voters tell their directories a moment after they have caught up.
    await rig.until(() => rig.running.every(({ leaderId }) => leaderId === active.nodeId), 'all follow')
    let errorCode: number = ErrorCode.INVALID_UPDATE_VERSION
    for (let tries = 0; errorCode === ErrorCode.INVALID_UPDATE_VERSION && tries < 20; tries++) {
      ;({ errorCode } = await raise())
      await simulation.wait(500)
    }
    assert.equal(errorCode, 0)
    await rig.caughtUp()
    for (const { kraftVersion, voters } of rig.running) {
      assert.equal(kraftVersion, 1)
      assert.deepEqual(
        voters.map(({ id }) => id),
        [1, 2, 3],
      )
      assert.ok(voters.every(({ directoryId }) => directoryId !== 'AAAAAAAAAAAAAAAAAAAAAA'))
    }
    const member = rig.memberOf(active)
    rig.crash(member)
    await rig.active()
    await rig.start(member)
    await rig.caughtUp()
    for (const { kraftVersion } of rig.running) assert.equal(kraftVersion, 1)
    await rig.stopAll()
  })
})

test('features of one request are raised together or not at all, kraft.version among them', async () => {
  await simulated(8, async (rig, simulation) => {
    rig.addStatic(3)
    const silent = rig.members[2]
    assert.ok(silent !== undefined)
    await rig.startAll()
    let active = await rig.active()
    while (active === silent.controller) {
      await rig.stop(silent)
      active = await rig.active()
      await rig.start(silent)
    }
    await rig.until(() => active.image?.controllers.size === 3, 'all have registered')
    await rig.caughtUp()
    // A leader hears the directories of those that follow it; of this one it does not.
    rig.crash(silent)
    const other = rig.members.find(({ controller }) => controller !== undefined && controller !== active)
    assert.ok(other !== undefined)
    await rig.stop(rig.memberOf(active))
    await rig.start(rig.memberOf(active))
    active = await rig.active()
    const client = await Client.connect(simulation.node('client').world, active.address)
    const elr = 'eligible.leader.replicas.version'
    const level = () => active.image?.features.get(elr) ?? 0
    assert.equal(level(), 1)
    const ask = async (kraftVersion: number, elrLevel: number, validateOnly = false, versionMax = 2) => {
      const featureUpdates = [
        { feature: elr, maxVersionLevel: elrLevel, upgradeType: elrLevel === 0 ? 3 : 1 },
        { feature: 'kraft.version', maxVersionLevel: kraftVersion },
      ]
      return await client.channel.ask(API.UpdateFeatures, { featureUpdates, validateOnly }, { versionMax })
    }
    for (const validateOnly of [true, false]) {
      const refused = await ask(1, 0, validateOnly)
      assert.equal(refused.errorCode, ErrorCode.INVALID_UPDATE_VERSION, `${refused.errorMessage}`)
      assert.equal((await ask(1, 0, validateOnly, 1)).errorCode, ErrorCode.INVALID_UPDATE_VERSION)
      assert.equal(level(), 1)
    }
    await rig.start(silent)
    await rig.caughtUp()
    await simulation.wait(1000)
    assert.notEqual((await ask(1, 7)).errorCode, 0)
    assert.equal((await ask(1, 0, true)).errorCode, 0)
    assert.deepEqual([level(), active.kraftVersion], [1, 0])
    assert.equal((await ask(1, 0)).errorCode, 0)
    assert.deepEqual([level(), active.kraftVersion], [0, 1])
    await rig.stopAll()
  })
})

test('requests that only the active controller serves are refused by the others, which name it', async () => {
  await simulated(7, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const active = await rig.active()
    await rig.caughtUp()
    const other = rig.running.find(each => each !== active) as Controller
    const client = await Client.connect(simulation.node('client').world, other.address)
    client.leaderEpoch = active.epoch
    client.clusterId = active.clusterId ?? ''
    assert.equal((await client.heartbeat()).errorCode, ErrorCode.NOT_CONTROLLER)
    const fetched = await client.fetch(0, 0)
    assert.equal(fetched.errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert.equal(fetched.currentLeader.leaderId, active.nodeId)
    await rig.stopAll()
  })
})
