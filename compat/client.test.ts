/** Our own client and command line against our server, and against Kafka where ../shared/peer and Java are. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { admin } from '../src/client/admin/admin.ts'
import { type Client, ClientError, connect } from '../src/client/client.ts'
import { type ConsumedRecord, Consumer, type ConsumerOptions } from '../src/client/consumer.ts'
import { Producer } from '../src/client/producer.ts'
import { realClock } from '../src/world/real/clock.ts'
import { realNetwork } from '../src/world/real/network.ts'
import { realRandom } from '../src/world/real/random.ts'
import { peer, root, runs, Server, type ServerKind } from './server.ts'

const world = { clock: realClock, network: realNetwork, random: realRandom }

async function missing(kind: ServerKind): Promise<string | false> {
  if (kind === 'tidemark') return false
  if (!existsSync(peer)) return '../shared/peer is missing'
  return (await runs('java', ['-version'])) ? false : 'java is missing'
}

/** Polls until `enough`; fails when that takes too long. */
async function until(
  consumer: Consumer,
  enough: (all: readonly ConsumedRecord[]) => boolean,
): Promise<ConsumedRecord[]> {
  const all: ConsumedRecord[] = []
  for (const end = Date.now() + 30_000; !enough(all); ) {
    assert.ok(Date.now() < end, `only ${all.length} records came`)
    all.push(...(await consumer.poll(100)))
  }
  return all
}

function held({ assignment }: Consumer, count: number): boolean {
  return assignment.length === count
}

async function failure(promise: Promise<unknown>): Promise<ClientError> {
  const error = await promise.then(
    () => undefined,
    reason => reason,
  )
  assert.ok(error instanceof ClientError, `it ended with ${error}`)
  return error
}

for (const kind of ['tidemark', 'kafka'] as const) {
  const skip = await missing(kind)
  describe(`our client and commands against ${kind}`, { skip, timeout: 180_000 }, () => {
    let server: Server
    let client: Client

    before(async () => {
      server = await Server.create(kind)
      await server.start()
      client = await connect({ world, bootstrap: server.address })
    })

    after(async () => {
      client?.close()
      await server?.remove()
    })

    const opened: Consumer[] = []
    const consumer = (options: Partial<ConsumerOptions>): Consumer => {
      const made = new Consumer(client, { maxWaitMs: 100, ...options })
      opened.push(made)
      return made
    }
    // What a failed test left open must not keep the others waiting.
    afterEach(async () => void (await Promise.all(opened.splice(0).map(each => each.close()))))

    for (const compression of ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const) {
      test(`records go and come back whole, ${compression}`, async () => {
        const topic = `whole-${compression}`
        await admin(client).createTopic({ name: topic, partitions: 2 })
        const producer = new Producer(client, { compression })
        const large = Buffer.alloc(900_000, 'large')
        const written = await producer.send(topic, [
          { key: 'k', value: 'v', headers: { h: 'x', none: null }, partition: 1, timestamp: 1_700_000_000_000 },
          { key: null, value: null, partition: 1 },
          { key: '', value: '', partition: 1 },
          { key: 'large', value: large, partition: 1 },
        ])
        assert.deepEqual(
          written.map(({ partition, offset }) => [partition, offset]),
          [0, 1, 2, 3].map(offset => [1, offset]),
        )
        await producer.close()
        const reader = consumer({})
        reader.assign([{ topic, partition: 1, from: 'earliest' }])
        const [first, second, third, fourth] = await until(reader, all => all.length >= 4)
        assert.deepEqual([`${first?.key}`, `${first?.value}`, first?.timestamp], ['k', 'v', 1_700_000_000_000])
        assert.deepEqual(
          first?.headers.map(({ key, value }) => [key, value === null ? null : `${value}`]),
          [
            ['h', 'x'],
            ['none', null],
          ],
        )
        assert.deepEqual([second?.key, second?.value], [null, null])
        assert.deepEqual([third?.key?.length, third?.value?.length], [0, 0])
        assert.ok(fourth?.value?.equals(large))
        await reader.close()
      })
    }

    test('many sends at once arrive once each and in order per key', async () => {
      const producer = new Producer(client, { compression: 'lz4', lingerMs: 1 })
      const keys = Array.from({ length: 20 }, (_, key) => `key-${key}`)
      const sends = Array.from({ length: 100 }, (_, round) =>
        producer.send(
          'many',
          keys.map(key => ({ key, value: `${round}` })),
        ),
      )
      await Promise.all(sends)
      await producer.close()
      const { partitions } = await client.topic('many')
      const reader = consumer({})
      reader.assign(partitions.map(({ partition }) => ({ topic: 'many', partition, from: 'earliest' as const })))
      const all = await until(reader, records => records.length >= 2000)
      assert.equal(all.length, 2000)
      for (const key of keys) {
        const values = all.filter(record => `${record.key}` === key).map(record => Number(`${record.value}`))
        assert.deepEqual(values, [...values.keys()])
      }
      await reader.close()
    })

    test('reading begins at offsets, times and ends, and follows', async () => {
      const topic = 'places'
      await admin(client).createTopic({ name: topic, partitions: 1 })
      const producer = new Producer(client, { lingerMs: 0 })
      for (let at = 0; at < 5; at++)
        await producer.send(topic, [{ value: `${at}`, timestamp: 1_700_000_000_000 + at * 1000 }])
      const from = async (
        place: Parameters<Consumer['assign']>[0][number]['from'],
        count: number,
      ): Promise<string[]> => {
        const reader = consumer({ offsetReset: 'earliest' })
        reader.assign([{ topic, partition: 0, from: place }])
        const records = await until(reader, all => all.length >= count)
        await reader.close()
        return records.map(record => `${record.value}`)
      }
      assert.deepEqual(await from(3, 2), ['3', '4'])
      assert.deepEqual(await from({ timestamp: 1_700_000_001_500 }, 3), ['2', '3', '4'])
      assert.deepEqual(await from(99, 5), ['0', '1', '2', '3', '4'], 'out of range: the reset')
      const follower = consumer({})
      follower.assign([{ topic, partition: 0, from: 'latest' }])
      await follower.poll(300)
      await producer.send(topic, [{ value: 'new' }])
      assert.equal(`${(await until(follower, all => all.length >= 1))[0]?.value}`, 'new')
      const strict = consumer({ offsetReset: 'none' })
      strict.assign([{ topic, partition: 0, from: 99 }])
      const refused = await failure(until(strict, all => all.length > 0))
      assert.equal(refused.code, 'OFFSET_OUT_OF_RANGE')
      assert.ok(refused.hint !== undefined)
      await Promise.all([follower.close(), strict.close(), producer.close()])
    })

    for (const assignors of [['range'], ['cooperative-sticky'], ['roundrobin']]) {
      test(`a group shares, rebalances and goes on where it was, ${assignors}`, async () => {
        const topic = `shared-${assignors}`
        const group = `group-${assignors}`
        await admin(client).createTopic({ name: topic, partitions: 4 })
        const producer = new Producer(client, { lingerMs: 0 })
        const write = (from: number): Promise<unknown> =>
          producer.send(
            topic,
            Array.from({ length: 40 }, (_, at) => ({ value: `${from + at}`, partition: at % 4 })),
          )
        await write(0)
        const options = {
          group,
          assignors,
          offsetReset: 'earliest',
          sessionTimeoutMs: 6000,
          heartbeatIntervalMs: 200,
        } as const
        const one = consumer(options)
        one.subscribe([topic])
        const read = new Map<string, number>()
        const count = (records: readonly ConsumedRecord[]): void => {
          for (const { value } of records) read.set(`${value}`, (read.get(`${value}`) ?? 0) + 1)
        }
        count(await until(one, all => all.length >= 40))
        assert.equal(one.assignment.length, 4)
        const two = consumer(options)
        two.subscribe([topic])
        for (const end = Date.now() + 30_000; !held(one, 2) || !held(two, 2); ) {
          assert.ok(Date.now() < end, 'the group does not settle')
          count([...(await one.poll(50)), ...(await two.poll(50))])
        }
        await write(40)
        for (const end = Date.now() + 30_000; read.size < 80; ) {
          assert.ok(Date.now() < end, `only ${read.size} records came`)
          count([...(await one.poll(50)), ...(await two.poll(50))])
        }
        await one.close()
        for (const end = Date.now() + 30_000; !held(two, 4); ) {
          assert.ok(Date.now() < end, 'the one that is left does not get everything')
          count(await two.poll(50))
        }
        await two.commit()
        await two.close()
        assert.deepEqual(
          [...read.values()].filter(times => times !== 1),
          [],
          'each once: commits went along with partitions',
        )
        const offsets = await admin(client).fetchOffsets(group)
        assert.deepEqual(
          offsets.map(({ offset }) => offset),
          [20, 20, 20, 20],
        )
        await producer.close()
      })
    }

    test('administration: topics, settings, offsets, groups, folders', async () => {
      const calls = admin(client)
      const created = await calls.createTopic({ name: 'admin', partitions: 2, configs: { 'retention.ms': '5000000' } })
      assert.deepEqual([created.partitions, created.replicationFactor], [2, 1])
      assert.equal((await failure(calls.createTopic({ name: 'admin' }))).code, 'TOPIC_ALREADY_EXISTS')
      assert.equal(
        (await failure(calls.createTopic({ name: 'no', replicationFactor: 9 }))).code,
        'INVALID_REPLICATION_FACTOR',
      )
      /** A broker of a cluster learns of a change a moment after its controller. */
      const becomes = async (...expected: string[]): Promise<void> => {
        for (const end = Date.now() + 5000; ; await new Promise(resolve => setTimeout(resolve, 20))) {
          const [entry] = await calls.describeConfigs({ type: 'topic', name: 'admin' }, { names: ['retention.ms'] })
          const actual = [entry?.value, entry?.source]
          if (`${actual}` === `${expected}`) return
          if (Date.now() > end) assert.deepEqual(actual, expected)
        }
      }
      await becomes('5000000', 'topic')
      await calls.alterConfigs({ type: 'topic', name: 'admin' }, [{ name: 'retention.ms', op: 'delete' }])
      await becomes('604800000', 'default')
      await calls.createPartitions('admin', 3)
      assert.equal((await client.topic('admin', { fresh: true })).partitions.length, 3)
      const producer = new Producer(client)
      await producer.send(
        'admin',
        Array.from({ length: 10 }, (_, at) => ({ value: `${at}`, partition: 0 })),
      )
      await producer.close()
      const [low] = await calls.deleteRecords([{ topic: 'admin', partition: 0, offset: 4 }])
      assert.equal(low?.lowWatermark, 4)
      const spots = await calls.listOffsets([{ topic: 'admin', partition: 0, spec: 'earliest' }])
      assert.equal(spots[0]?.offset, 4)
      await calls.commitOffsets('admins', [{ topic: 'admin', partition: 0, offset: 7 }])
      assert.equal((await calls.fetchOffsets('admins'))[0]?.offset, 7)
      assert.ok((await calls.listGroups()).some(({ group }) => group === 'admins'))
      await calls.deleteGroup('admins')
      assert.equal((await failure(calls.describeGroup('admins'))).code, 'GROUP_ID_NOT_FOUND')
      assert.equal((await calls.describeCluster()).brokers.length, 1)
      assert.equal((await calls.describeQuorum()).voters.length, 1)
      const dirs = await calls.describeLogDirs('admin')
      assert.equal(dirs.flatMap(({ partitions }) => partitions).length, 3)
      await calls.deleteTopic('admin')
      assert.equal((await failure(client.topic('admin', { fresh: true }))).code, 'UNKNOWN_TOPIC_OR_PARTITION')
    })

    test('administration of a cluster: elections, reassignments, brokers, voters', async () => {
      const calls = admin(client)
      await calls.createTopic({ name: 'placed', partitions: 2 })
      const [broker] = (await calls.describeCluster()).brokers
      assert.ok(broker !== undefined && !broker.fenced)
      const { id } = broker
      // Kafka answers before every broker has heard of the topic.
      const described = await (async () => {
        for (let attempt = 0; ; attempt++) {
          try {
            return await calls.describeTopic('placed')
          } catch (error) {
            if (attempt === 50) throw error
            await new Promise(resolve => setTimeout(resolve, 100))
          }
        }
      })()
      assert.deepEqual(
        described.partitions.map(({ leader, replicas, isr, eligible }) => ({ leader, replicas, isr, eligible })),
        [0, 1].map(() => ({ leader: id, replicas: [id], isr: [id], eligible: [] })),
      )
      assert.equal((await failure(calls.describeTopic('no-such-topic'))).code, 'UNKNOWN_TOPIC_OR_PARTITION')

      assert.deepEqual(await calls.electLeaders('preferred'), [])
      const elections = await calls.electLeaders('preferred', [
        { topic: 'placed', partition: 1 },
        { topic: 'placed', partition: 9 },
      ])
      assert.deepEqual(elections.map(({ partition, error }) => [partition, error?.code]).sort(), [
        [1, 'ELECTION_NOT_NEEDED'],
        [9, 'UNKNOWN_TOPIC_OR_PARTITION'],
      ])

      assert.deepEqual(await calls.alterReassignments([{ topic: 'placed', partition: 0, replicas: [id] }]), [])
      assert.deepEqual(await calls.listReassignments(), [])
      const refused = await calls.alterReassignments([
        { topic: 'placed', partition: 0, replicas: [id, 77] },
        { topic: 'placed', partition: 1, replicas: null },
      ])
      assert.deepEqual(refused.map(({ partition, error }) => [partition, error.code]).sort(), [
        [0, 'INVALID_REPLICA_ASSIGNMENT'],
        [1, 'NO_REASSIGNMENT_IN_PROGRESS'],
      ])

      assert.equal((await failure(calls.unregisterBroker(77))).code, 'BROKER_ID_NOT_REGISTERED')
      const { voters, leaderId } = await calls.describeQuorum()
      assert.deepEqual([voters.map(voter => voter.id), leaderId], [[id], id])
      await calls.deleteTopic('placed')
    })

    test('a restart in the middle: what is sent arrives, once, and readers go on', async () => {
      await admin(client).createTopic({ name: 'restart', partitions: 1 })
      const producer = new Producer(client, { lingerMs: 0 })
      await producer.send('restart', [{ value: 'before' }])
      const reader = consumer({ group: 'restart', offsetReset: 'earliest', heartbeatIntervalMs: 500 })
      reader.subscribe(['restart'])
      await until(reader, all => all.length >= 1)
      await reader.commit()
      const sends: Promise<unknown>[] = []
      const restarted = server.restart()
      for (let at = 0; at < 20; at++) {
        sends.push(producer.send('restart', [{ value: `${at}` }]))
        await new Promise(resolve => setTimeout(resolve, 25))
      }
      await restarted
      await Promise.all(sends)
      const after = await until(reader, all => all.length >= 20)
      assert.deepEqual(
        after.map(record => `${record.value}`),
        Array.from({ length: 20 }, (_, at) => `${at}`),
      )
      await Promise.all([reader.close(), producer.close()])
    })

    describe('commands', () => {
      const run = (args: readonly string[], input = ''): Promise<{ code: number | null; out: string; err: string }> =>
        new Promise(resolve => {
          const env = { ...process.env, TIDEMARK_BOOTSTRAP: server.address }
          const child = spawn(process.execPath, [join(root, 'src', 'main.ts'), ...args], { env })
          let out = ''
          let err = ''
          child.stdout.on('data', part => (out += part))
          child.stderr.on('data', part => (err += part))
          child.on('close', code => resolve({ code, out, err }))
          child.stdin.end(input)
        })

      test('a first minute', async () => {
        assert.match(
          (await run(['topics', 'create', 'greetings', '-p', '2'])).out,
          /created topic "greetings": 2 partitions/,
        )
        assert.match((await run(['topics', 'list'])).out, /^greetings +2 +1 +ok$/m)
        assert.match(
          (await run(['produce', 'greetings', 'hello', '-k', 'a', '-H', 'h=x'])).out,
          /^greetings-\d offset 0$/m,
        )
        assert.match((await run(['produce', 'greetings', '--key-separator', ':'], 'a:1\na:2\n')).err, /wrote 2 records/)
        const { out } = await run(['consume', 'greetings', '--format', 'json'])
        const records = out
          .trim()
          .split('\n')
          .map(line => JSON.parse(line))
        assert.deepEqual(
          records.map(({ key, value }) => [key, value]),
          [
            ['a', 'hello'],
            ['a', '1'],
            ['a', '2'],
          ],
        )
        assert.deepEqual(records[0].headers, [{ key: 'h', value: 'x' }])
        assert.equal((await run(['consume', 'greetings', '--from', '-1', '--format', 'hex', '-k'])).out, '61\t32\n')
        assert.equal((await run(['consume', 'greetings', '-g', 'readers', '-n', '2'])).out, 'hello\n1\n')
        assert.match((await run(['groups', 'describe', 'readers'])).out, /greetings +\d +2 +3 +1 +[\d.]+ (?:ms|s) +-/)
        const planned = JSON.parse(
          (await run(['groups', 'reset', 'readers', '--to', 'beginning', '--dry-run', '--json'])).out,
        )
        assert.ok(planned.dryRun && planned.offsets.every(({ offset }: { offset: number }) => offset === 0))
        await run(['groups', 'reset', 'readers', '--shift', '-1'])
        assert.equal((await run(['consume', 'greetings', '-g', 'readers'])).out, '1\n2\n')
        assert.match((await run(['groups', 'list'])).out, /^readers +Empty +classic/m)
        assert.equal((await run(['groups', 'delete', 'readers'])).code, 0)
        assert.equal((await run(['configs', 'set', 'topic', 'greetings', 'retention.ms=7000000'])).code, 0)
        assert.match((await run(['configs', 'describe', 'topic', 'greetings'])).out, /^retention.ms +7000000 +topic$/m)
        assert.equal((await run(['configs', 'delete', 'topic', 'greetings', 'retention.ms'])).code, 0)
        assert.match((await run(['cluster'])).out, /^cluster \S+, controller 1/)
        const doctor = await run(['doctor'])
        assert.deepEqual([doctor.code, doctor.out.includes('clients can work from here')], [0, true])
        assert.equal((await run(['topics', 'delete', 'greetings'])).code, 0)
      })

      test('what goes wrong ends with the right code, and a hint', async () => {
        await run(['topics', 'create', 'orders'])
        const typo = await run(['topics', 'describe', 'odrers'])
        assert.deepEqual([typo.code, /did you mean "orders"\?/.test(typo.err)], [1, true])
        const setting = await run(['configs', 'set', 'topic', 'orders', 'retension.ms=1'])
        assert.deepEqual([setting.code, /did you mean "?retention.ms"?\?/i.test(setting.err)], [1, true])
        const nobody = await run(['topics', 'list', '-b', '127.0.0.1:1', '--json'])
        const { error } = JSON.parse(nobody.err)
        assert.deepEqual([nobody.code, error.code], [1, 'CONNECTION_FAILED'])
        assert.match(error.hint, /tidemark start/)
        for (const args of [
          [],
          ['topisc'],
          ['topics', 'create'],
          ['consume', 'orders', '--from', 'nowhere'],
          ['produce', 'x', '--acks', '7'],
        ]) {
          assert.equal((await run(args)).code, 2, args.join(' '))
        }
        assert.equal((await run(['--help'])).code, 0)
        assert.match((await run(['consume', '--help'])).out, /Examples:/)
      })
    })
  })
}
