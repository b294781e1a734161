import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MetadataImage } from '#core/metadata/image.ts'
import { type MetadataRecord, metadataRecord } from '#core/metadata/record.ts'
import type { Server } from '#network/server.ts'
import type { ErrorName } from '#protocol/errors.ts'
import { Simulation } from '#world/fake/simulation.ts'
import type { MetadataFollower } from './follower.ts'
import { BrokerLifecycle } from './lifecycle.ts'
import { ControllerDouble } from './testing/controller-double.ts'

const HEARTBEAT_MS = 1000
const INCARNATION = 'AAAAAAAAAAAAAAAAAAAABA'

/** A broker's life beside a controller that does as it is told; the follower has caught up when the test says so. */
class Rig extends ControllerDouble {
  readonly simulation: Simulation
  appliedOffset = 100
  readonly lifecycle: BrokerLifecycle
  readonly #whenApplied: (() => void)[] = []
  readonly image = new MetadataImage()

  constructor(simulation: Simulation, logDirs: readonly string[] = []) {
    super(simulation.node('controller'), simulation.node('broker'))
    this.simulation = simulation
    const rig = this
    const follower = {
      image: this.image,
      get appliedOffset() {
        return rig.appliedOffset
      },
      when: (until: () => boolean) =>
        until() ? Promise.resolve() : new Promise<void>(resolve => this.#whenApplied.push(resolve)),
    } as unknown as MetadataFollower
    const { world } = this.asking
    this.lifecycle = new BrokerLifecycle({
      registration: {
        nodeId: 4,
        clusterId: 'MkU3OEVBNTcwNTJENDM2Qk',
        incarnationId: INCARNATION,
        listeners: [{ name: 'PLAINTEXT', host: this.asking.host, port: 9092, securityProtocol: 0 }],
        features: new Map(),
        rack: null,
        logDirs,
        previousBrokerEpoch: -1,
      },
      link: this.link,
      controllers: this.controllers,
      follower,
      clock: world.clock,
      log: world.log,
      heartbeatMs: HEARTBEAT_MS,
      sessionTimeoutMs: 9000,
      offlineLogDirs: () => [],
      registered: async () => {},
      caughtUp: () => Promise.resolve(),
    })
  }

  apply(offset: number): void {
    this.appliedOffset = offset
    for (const resolve of this.#whenApplied.splice(0)) resolve()
  }
}

function lifeTest(
  name: string,
  body: (rig: Rig, server: Server) => Promise<void>,
  logDirs: readonly string[] = [],
): void {
  test(name, async () => {
    const rig = new Rig(new Simulation(7), logDirs)
    await rig.simulation.run(
      (async () => {
        const server = await rig.listen()
        await body(rig, server)
        rig.lifecycle.stop()
        rig.link.close()
        await server.close()
      })(),
    )
  })
}

lifeTest('a broker registers, is up once it has caught up and is unfenced, and heartbeats from then on', async rig => {
  rig.appliedOffset = 3
  rig.isFenced = true
  let isUp = false
  const up = rig.lifecycle.start().then(() => {
    isUp = true
  })
  await rig.simulation.wait(500)
  // Its own registration is at offset 7: before, it would answer from a past in which it was not there.
  assert.deepEqual([rig.count('registration'), rig.count('heartbeat'), isUp], [1, 0, false])
  rig.apply(8)
  await rig.simulation.wait(100)
  assert.ok(rig.count('heartbeat') > 1 && !isUp, 'it asks again and again whether it may')
  rig.isFenced = false
  await up
  assert.equal(rig.lifecycle.epoch, 7)
  const before = rig.count('heartbeat')
  await rig.simulation.wait(10 * HEARTBEAT_MS)
  const beats = rig.count('heartbeat') - before
  assert.ok(beats >= 9 && beats <= 11, `${beats} heartbeats in ten intervals`)
})

lifeTest('a registration that the cluster has forgotten is made again, under the epoch that it then has', async rig => {
  await rig.lifecycle.start()
  rig.brokerEpoch = 90
  rig.heartbeats.push('STALE_BROKER_EPOCH')
  await rig.simulation.wait(3 * HEARTBEAT_MS)
  assert.deepEqual([rig.count('registration'), rig.lifecycle.epoch], [2, 90])
})

lifeTest('what may pass is asked again; what does not pass ends the start and says what to do', async rig => {
  const passing: ErrorName[] = ['NOT_CONTROLLER', 'DUPLICATE_BROKER_REGISTRATION', 'REQUEST_TIMED_OUT']
  rig.registrations.push(...passing, 'INCONSISTENT_CLUSTER_ID')
  await assert.rejects(rig.lifecycle.start(), /belong to another cluster/)
  assert.equal(rig.count('registration'), passing.length + 1)
})

lifeTest('a broker waits for the session of its life before once more when another controller leads', async rig => {
  // Asked each half second: ten seconds of each, where nine and three are waited for.
  const refusals: ErrorName[] = Array.from({ length: 20 }, () => 'DUPLICATE_BROKER_REGISTRATION')
  rig.registrations.push(...refusals, 'NOT_CONTROLLER', ...refusals)
  await rig.lifecycle.start()
  assert.equal(rig.count('registration'), 2 * refusals.length + 2)
})

lifeTest('so it does when the controller dies and begins anew between two answers', async rig => {
  const refusals: ErrorName[] = Array.from({ length: 40 }, () => 'DUPLICATE_BROKER_REGISTRATION')
  rig.registrations.push(...refusals)
  const { simulation } = rig
  const starting = rig.lifecycle.start()
  await simulation.wait(10_200)
  simulation.network.reset(simulation.node('controller'), simulation.node('broker'))
  await starting
  assert.equal(rig.count('registration'), refusals.length + 1)
})

lifeTest(
  'a controller that comes late is found, and one that is away for a while is not given up',
  async (rig, server) => {
    await rig.lifecycle.start()
    await server.close()
    await rig.simulation.wait(20_000)
    const before = rig.count('heartbeat')
    const again = await rig.listen()
    await rig.simulation.wait(3 * HEARTBEAT_MS)
    assert.ok(rig.count('heartbeat') > before)
    await again.close()
  },
)

lifeTest('a broker that stops waits until its leaders are elsewhere, and no longer than it is told', async rig => {
  await rig.lifecycle.start()
  const { clock } = rig.asking.world
  const begun = clock.monotonic()
  rig.asking.world.clock.after(3000, () => {
    rig.shouldShutDown = true
  })
  await rig.lifecycle.leave(30_000)
  const tookMs = clock.monotonic() - begun
  assert.ok(tookMs >= 3000 && tookMs < 4000, `${tookMs} ms`)
  assert.ok(rig.asked.filter(({ wantShutDown }) => wantShutDown).length > 1)
  const after = rig.count('heartbeat')
  await rig.simulation.wait(5 * HEARTBEAT_MS)
  assert.equal(rig.count('heartbeat'), after, 'nobody hears of it any more')
})

lifeTest('who never may leave does so when his time is over', async rig => {
  await rig.lifecycle.start()
  const { clock } = rig.asking.world
  const begun = clock.monotonic()
  await rig.lifecycle.leave(5000)
  const tookMs = clock.monotonic() - begun
  assert.ok(tookMs >= 5000 && tookMs < 6000, `${tookMs} ms`)
})

lifeTest(
  'a broker tells of its directories once the cluster is raised to a metadata version that knows them',
  async rig => {
    let offset = 0
    const apply = (record: MetadataRecord) => rig.image.apply(record, offset++, 1)
    const raiseTo = (featureLevel: number) =>
      apply(metadataRecord('FeatureLevel', 30, { name: 'metadata.version', featureLevel }))
    const register = (logDirs: readonly string[]) => {
      const known = { brokerId: 4, brokerEpoch: rig.brokerEpoch, incarnationId: INCARNATION, fenced: false, logDirs }
      apply(metadataRecord('RegisterBroker', 30, known))
    }
    const { clock } = rig.asking.world
    const pass = (ms: number) => new Promise<void>(resolve => clock.after(ms, resolve))
    raiseTo(14)
    await rig.lifecycle.start()
    register([])
    await pass(3 * HEARTBEAT_MS)
    assert.equal(rig.count('registration'), 1)
    raiseTo(30)
    await pass(3 * HEARTBEAT_MS)
    assert.equal(rig.count('registration'), 2)
    register(['AAAAAAAAAAAAAAAAAAAABQ'])
    await pass(3 * HEARTBEAT_MS)
    assert.equal(rig.count('registration'), 2)
  },
  ['AAAAAAAAAAAAAAAAAAAABQ'],
)
