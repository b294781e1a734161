import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatConfigErrors, serverConfig } from '#core/config/server.ts'
import { Channel } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { plainBatch } from '#storage/testing/rig.ts'
import { NO_DISK_FAULTS } from '#world/fake/fake-disk.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { startNode } from './node.ts'

test('a topic whose creation waits for a stuck disk is created once, and its client is told so', async () => {
  const simulation = new Simulation(1)
  await simulation.run(
    (async () => {
      const machine = simulation.node('broker')
      const overrides = ['log.dirs=/data', 'listeners=PLAINTEXT://:9092,CONTROLLER://127.0.0.1:0']
      const result = serverConfig({ overrides })
      assert.ok('config' in result)
      const node = await startNode(machine.world, result.config)
      const client = await Channel.connect(simulation.node('client').world, { host: machine.host, port: 9092 })
      await client.negotiate()
      machine.disk.faults.hangs = true
      const created = client.ask(API.CreateTopics, {
        topics: [{ name: 'slow', numPartitions: 1, replicationFactor: 1 }],
        timeoutMs: 20_000,
      })
      // Longer than a heartbeat is waited for, shorter than a session.
      await simulation.wait(7000)
      machine.disk.unhang()
      assert.equal((await created).topics[0]?.errorCode, ErrorCode.NONE)
      client.close()
      await node.stop()
    })(),
  )
})

test('a node alone whose disk hangs refuses writes until it answers, and keeps nothing of what it refused', async () => {
  const simulation = new Simulation(3)
  await simulation.run(
    (async () => {
      const machine = simulation.node('broker')
      const result = serverConfig({ overrides: ['log.dirs=/data', 'listeners=PLAINTEXT://:9092'] })
      assert.ok('config' in result)
      const node = await startNode(machine.world, result.config)
      const client = await Channel.connect(simulation.node('client').world, { host: machine.host, port: 9092 })
      await client.negotiate()
      await client.ask(API.CreateTopics, {
        topics: [{ name: 't', numPartitions: 1, replicationFactor: 1 }],
        timeoutMs: 9_000,
      })
      const topicId = node.broker?.metadata.image.topicByName('t')?.id as string
      const produce = async () => {
        const since = machine.world.clock.monotonic()
        const partitionData = [{ index: 0, records: plainBatch(0, 1, 10, machine.world.clock.now()) }]
        const asked = { acks: -1, timeoutMs: 30_000, topicData: [{ name: 't', topicId, partitionData }] }
        const { responses } = await client.ask(API.Produce, asked)
        const of = responses[0]?.partitionResponses[0]
        return [errorOf(of?.errorCode ?? -1).name, of?.baseOffset, machine.world.clock.monotonic() - since] as const
      }
      assert.deepEqual((await produce()).slice(0, 2), ['NONE', 0])
      machine.disk.faults.hangs = true
      const [error, , tookMs] = await produce()
      assert.equal(error, 'KAFKA_STORAGE_ERROR')
      assert.ok(tookMs >= 5_000 && tookMs < 6_000, `${tookMs}`)
      const [again, , soonMs] = await produce()
      assert.equal(again, 'KAFKA_STORAGE_ERROR')
      assert.ok(soonMs < 100, `${soonMs}`)
      machine.disk.unhang()
      await simulation.wait(15_000)
      assert.deepEqual((await produce()).slice(0, 2), ['NONE', 1])
      client.close()
      await node.stop()
    })(),
  )
})

test('a node does not begin anew beside partitions whose metadata is lost', async () => {
  const simulation = new Simulation(2)
  await simulation.run(
    (async () => {
      const machine = simulation.node('broker')
      const result = serverConfig({ overrides: ['log.dirs=/data', 'listeners=PLAINTEXT://:9092'] })
      assert.ok('config' in result)
      const { config } = result
      const node = await startNode(machine.world, config)
      const client = await Channel.connect(simulation.node('client').world, { host: machine.host, port: 9092 })
      await client.negotiate()
      await client.ask(API.CreateTopics, {
        topics: [{ name: 't', numPartitions: 1, replicationFactor: 1 }],
        timeoutMs: 9,
      })
      client.close()
      await node.stop()
      const { disk } = machine.world
      const path = '/data/__cluster_metadata-0/00000000000000000000.log'
      const whole = Buffer.from((await disk.readFile(path)) ?? [])
      const file = await disk.open(path, { create: false, write: true })
      await file.write([Buffer.of((whole[70] ?? 0) ^ 0x5a)], 70)
      await assert.rejects(
        startNode(machine.world, config),
        /damaged at its beginning .* Restore this folder from a backup\. Where other nodes .* start it with --join/,
      )
      assert.equal((await disk.readFile(path))?.length, whole.length)
      await file.truncate(0)
      await assert.rejects(startNode(machine.world, config), /is empty .* Restore this folder/)
      await file.write([whole], 0)
      await file.close()
      await (await startNode(machine.world, config)).stop()
    })(),
  )
})

test('a node that is killed at any moment of joining never leads a second quorum of the same cluster by itself', async () => {
  let refused = 0
  for (let step = 0; step < 60; step++) {
    const simulation = new Simulation(7)
    await simulation.run(
      (async () => {
        const configOf = (id: number, host: string, ...more: string[]) => {
          const listeners = `listeners=PLAINTEXT://${host}:9092,CONTROLLER://${host}:9093`
          const result = serverConfig({ overrides: ['log.dirs=/data', `node.id=${id}`, listeners, ...more] })
          assert.ok('config' in result, 'errors' in result ? formatConfigErrors(result.errors) : '')
          return result.config
        }
        const [first, late] = [simulation.node('a'), simulation.node('b')]
        const founder = await startNode(first.world, configOf(1, 'a'))
        const join = ['controller.quorum.bootstrap.servers=a:9093', 'controller.quorum.auto.join.enable=true']
        startNode(late.world, configOf(2, 'b', ...join)).catch(() => {})
        await simulation.wait(step / 4)
        late.crash()
        const alone = await startNode(late.world, configOf(2, 'b')).catch((error: unknown) => {
          assert.match(String(error), /was to join a cluster/)
          refused++
        })
        if (alone !== undefined) assert.notEqual(alone.clusterId, founder.clusterId, `killed after ${step / 4} ms`)
        await alone?.stop()
        if (alone === undefined) {
          const joined = await startNode(late.world, configOf(2, 'b', ...join))
          assert.equal(joined.clusterId, founder.clusterId)
          await joined.stop()
        }
        await founder.stop()
      })(),
    )
  }
  assert.ok(refused > 0)
})

test('a folder of the metadata apart from the others has a name of its own, and is locked', async () => {
  const simulation = new Simulation(4)
  await simulation.run(
    (async () => {
      const machine = simulation.node('a')
      const configOf = (dirs: string, port: number) => {
        const overrides = [`log.dirs=${dirs}`, 'metadata.log.dir=/meta', `listeners=PLAINTEXT://:${port}`]
        const result = serverConfig({ overrides })
        assert.ok('config' in result)
        return result.config
      }
      const node = await startNode(machine.world, configOf('/a,/b', 9092))
      const { clusterId } = node
      const directoryId = node.controller?.directoryId
      await assert.rejects(startNode(machine.world, configOf('/c', 9192)), /\/meta is in use by another process/)
      await node.stop()
      // The disk of the first log folder is a new one, then those of all.
      for (const gone of [['/a'], ['/a', '/b']]) {
        for (const path of gone) await machine.world.disk.remove(path)
        const again = await startNode(machine.world, configOf('/a,/b', 9092))
        assert.deepEqual([again.clusterId, again.controller?.directoryId], [clusterId, directoryId])
        await again.stop()
      }
      // Its own is: to found once more would make a second cluster of the same name.
      await machine.world.disk.remove('/meta')
      await assert.rejects(startNode(machine.world, configOf('/a,/b', 9092)), /metadata is missing .*were used with it/)
      for (const path of ['/a', '/b']) await machine.world.disk.remove(path)
      const anew = await startNode(machine.world, configOf('/a,/b', 9092))
      assert.notEqual(anew.clusterId, clusterId)
      await anew.stop()
      const other = { ...configOf('/d', 9092), nodeId: 2 }
      await assert.rejects(startNode(machine.world, other), /\/meta belongs to node 1, and this is node 2/)
    })(),
  )
})

test('a controller does not begin in one folder while the log of the metadata is in another one of its own', async () => {
  const simulation = new Simulation(6)
  await simulation.run(
    (async () => {
      const machine = simulation.node('a')
      const configOf = (dirs: string, ...more: string[]) => {
        const result = serverConfig({ overrides: [`log.dirs=${dirs}`, 'listeners=PLAINTEXT://:9092', ...more] })
        assert.ok('config' in result)
        return result.config
      }
      const node = await startNode(machine.world, configOf('/a,/b'))
      const { clusterId } = node
      const directoryId = node.controller?.directoryId
      await node.stop()
      for (const other of [configOf('/b,/a'), configOf('/a,/b', 'metadata.log.dir=/c')])
        await assert.rejects(startNode(machine.world, other), /is in \/a\/__cluster_metadata-0, .* name \/a first/)
      assert.ok(!machine.disk.peekNames('/b').some(name => name.startsWith('__cluster')))
      // By its name it may be anywhere, and a start that was refused is none that others have to mind.
      for (const again of [configOf('/b,/a', 'metadata.log.dir=/a'), configOf('/a,/b')]) {
        const back = await startNode(machine.world, again)
        assert.deepEqual([back.clusterId, back.controller?.directoryId], [clusterId, directoryId])
        await back.stop()
      }
    })(),
  )
})

test('a controller does not begin without the folder of its log, nor leaves anything there; a broker does without one', async () => {
  const simulation = new Simulation(5)
  await simulation.run(
    (async () => {
      const machine = simulation.node('broker')
      const overrides = ['log.dirs=/a,/b', 'listeners=PLAINTEXT://:9092']
      const result = serverConfig({ overrides })
      assert.ok('config' in result)
      const { config } = result
      await (await startNode(machine.world, config)).stop()
      for (const [folder, begins] of [
        ['/b', true],
        ['/a', false],
      ] as const) {
        // Only who reads the folder sees it: the log of the metadata could be written.
        machine.disk.faults = { ...NO_DISK_FAULTS, within: `${folder}/meta.properties`, readFails: 1 }
        const before = machine.disk.peekNames(folder)
        const mark = String(machine.disk.peek('/b/.kafka_cleanshutdown'))
        const started = await startNode(machine.world, config).catch((error: Error) => error)
        if (started instanceof Error) {
          assert.match(started.message, /\/a, which has the metadata log, cannot be used/)
          assert.deepEqual(machine.disk.peekNames(folder), before)
          assert.equal(String(machine.disk.peek('/b/.kafka_cleanshutdown')), mark)
        } else await started.stop()
        assert.equal(!(started instanceof Error), begins)
      }
      machine.disk.faults = { ...NO_DISK_FAULTS }
      const node = await startNode(machine.world, config)
      assert.deepEqual(
        node.broker?.logFolders().map(({ online }) => online),
        [true, true],
      )
      await node.stop()
    })(),
  )
})

test('a node that is told to stop while it waits for its cluster stops, whatever it waits for', async () => {
  for (const [seed, abortAfterMs] of [0, 1, 20, 200, 3000].entries()) {
    for (const role of ['broker', 'broker,controller']) {
      const simulation = new Simulation(seed)
      await simulation.run(
        (async () => {
          const machine = simulation.node('b')
          // Whoever else would be needed is not there; the folder is that of a node that knows its cluster.
          const voters = role === 'broker' ? '2@c:9093' : '1@b:9093,2@c:9093'
          const overrides = ['log.dirs=/data', 'node.id=1', 'listeners=PLAINTEXT://:9092,CONTROLLER://:9093']
          const alone = serverConfig({ overrides })
          assert.ok('config' in alone)
          await (await startNode(machine.world, alone.config)).stop()
          await machine.world.disk.remove('/data/__cluster_metadata-0')
          const result = serverConfig({
            overrides: [
              'log.dirs=/data',
              'node.id=1',
              `process.roles=${role}`,
              `listeners=PLAINTEXT://:9092${role === 'broker' ? '' : ',CONTROLLER://:9093'}`,
              `controller.quorum.voters=${voters}`,
            ],
          })
          assert.ok('config' in result, 'errors' in result ? formatConfigErrors(result.errors) : '')
          const abort = new AbortController()
          const starting = startNode(machine.world, result.config, abort.signal)
          const outcome = starting.then(
            () => 'started',
            (error: unknown) => String(error),
          )
          await simulation.wait(abortAfterMs)
          abort.abort()
          const stoppedAt = simulation.schedule.now
          assert.match(await outcome, /stopped/)
          assert.ok(simulation.schedule.now - stoppedAt < 8_000_000)
        })(),
      )
    }
  }
})
