import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Channel } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { realWorld } from '#world/real/real.ts'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))
const world = realWorld({ log: { level: 'error' } })

interface Process {
  readonly child: ChildProcess
  /** All that it printed. */
  text(): string
  /** Resolves with the exit code. */
  stop(): Promise<number | null>
}

/** Runs `tidemark start` with these arguments; gone when the test is. */
function startProcess(t: TestContext, args: readonly string[]): Process {
  const child = spawn(process.execPath, [MAIN, 'start', '--log-format', 'line', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (text += chunk))
  const gone = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await gone
  })
  return {
    child,
    text: () => text,
    async stop() {
      child.kill('SIGTERM')
      await gone
      return child.exitCode
    },
  }
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 1200; attempt++) {
    if (await holds()) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  assert.fail(`waited in vain: ${what}`)
}

async function isUp(process: Process): Promise<void> {
  await until('the node is up', () => {
    assert.equal(process.child.exitCode, null, process.text())
    return process.text().includes(' is up: ')
  })
}

/** The first of so many ports in a row that are free now. */
async function freePorts(count: number): Promise<number> {
  for (;;) {
    const base = 20_000 + 10 * Math.floor(world.random.fraction() * 1200)
    const free = await Promise.all(Array.from({ length: count }, (_, at) => isFree(base + at)))
    if (free.every(each => each)) return base
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = net.createServer()
    server.once('error', () => resolve(false))
    server.listen(port, () => server.close(() => resolve(true)))
  })
}

async function folder(t: TestContext): Promise<string> {
  const made = await mkdtemp(path.join(os.tmpdir(), 'tidemark-start-'))
  t.after(() => rm(made, { recursive: true, force: true }))
  return made
}

async function asking<T>(port: number, body: (channel: Channel) => Promise<T>): Promise<T> {
  const channel = await Channel.connect(world, { host: '127.0.0.1', port })
  try {
    await channel.negotiate()
    return await body(channel)
  } finally {
    channel.close()
  }
}

/** Node ids of brokers that take part, asked at one of them. */
function brokersAt(port: number): Promise<number[]> {
  return asking(port, async channel =>
    (await channel.ask(API.DescribeCluster, {})).brokers.map(({ brokerId }) => brokerId).sort(),
  )
}

function quorumAt(port: number): Promise<{ leader: number; voters: number[] }> {
  return asking(port, async channel => {
    const topics = [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }]
    const answer = await channel.ask(API.DescribeQuorum, { topics })
    const { leaderId = -1, currentVoters = [] } = answer.topics[0]?.partitions[0] ?? {}
    return { leader: leaderId, voters: currentVoters.map(({ replicaId }) => replicaId).sort() }
  })
}

async function clusterIdIn(dir: string): Promise<string> {
  return /^cluster\.id=(.+)$/m.exec(await readFile(path.join(dir, 'meta.properties'), 'utf8'))?.[1] ?? ''
}

test('several brokers in one process: one cluster, replicas on all, a clean stop, and the same again', async t => {
  const data = await folder(t)
  const port = await freePorts(5)
  const args = ['--brokers', '3', '--port', `${port}`, '--data', data]
  const first = startProcess(t, args)
  await isUp(first)
  assert.deepEqual(await brokersAt(port + 4), [1, 2, 3])
  const made = await asking(port, channel =>
    channel.ask(API.CreateTopics, { topics: [{ name: 't', numPartitions: 6, replicationFactor: 1 }], timeoutMs: 9000 }),
  )
  assert.equal(made.topics[0]?.errorCode, 0)
  const { topics } = await asking(port, channel => channel.ask(API.Metadata, { topics: [{ name: 't' }] }))
  assert.deepEqual(topics[0]?.partitions.map(({ leaderId }) => leaderId).sort(), [1, 1, 2, 2, 3, 3])
  assert.equal(await first.stop(), 0, first.text())
  const again = startProcess(t, args)
  await isUp(again)
  assert.deepEqual(await brokersAt(port), [1, 2, 3])
  assert.equal(await again.stop(), 0, again.text())
  const alone = startProcess(t, ['--port', `${port}`, '--data', data])
  await once(alone.child, 'exit')
  assert.equal(alone.child.exitCode, 1)
  assert.match(alone.text(), /holds the folders of several brokers/)
})

test('one of several brokers that cannot start ends the process with a line that says why', async t => {
  const data = await folder(t)
  const port = await freePorts(5)
  const taken = net.createServer().listen(port + 2)
  t.after(() => taken.close())
  await once(taken, 'listening')
  const refused = startProcess(t, ['--brokers', '3', '--port', `${port}`, '--data', data])
  await once(refused.child, 'exit')
  assert.equal(refused.child.exitCode, 1)
  assert.match(refused.text(), new RegExp(`error: broker 2: cannot listen on :${port + 2}: another process`))
})

test('brokers join by the address of a broker or a controller, and are refused with one line', async t => {
  const data = await folder(t)
  const port = await freePorts(9)
  const one = startProcess(t, ['--port', `${port}`, '--data', `${data}/1`])
  await isUp(one)
  const join = (id: number, own: number, at: number, more: readonly string[] = []) => [
    ...['--node-id', `${id}`, '--port', `${own}`, '--data', `${data}/${id}`, '--join', `localhost:${at}`],
    ...['--roles', 'broker', ...more],
  ]
  const two = startProcess(t, join(2, port + 2, port))
  const three = startProcess(t, join(3, port + 4, port + 1))
  await Promise.all([isUp(two), isUp(three)])
  assert.deepEqual(await brokersAt(port + 4), [1, 2, 3])
  assert.equal(await clusterIdIn(`${data}/2`), await clusterIdIn(`${data}/1`))
  assert.equal(await two.stop(), 0, two.text())
  const back = startProcess(t, join(2, port + 2, port))
  await isUp(back)
  await until('all are there', async () => (await brokersAt(port)).length === 3)

  const other = startProcess(t, ['--port', `${port + 6}`, '--data', `${data}/4`])
  await isUp(other)
  const refusals: readonly [readonly string[], RegExp][] = [
    [join(1, port + 8, port, ['--data', `${data}/4`, '-o', 'node.id=1']), /error: .*4 is in use by another process/],
    [
      join(3, port + 8, port, ['--data', `${data}/5`, '-o', 'broker.session.timeout.ms=100']),
      /error: the cluster refuses broker 3 \(DUPLICATE_BROKER_REGISTRATION\): another node that runs has its number/,
    ],
    [
      join(6, port + 8, 1, ['-o', 'initial.broker.registration.timeout.ms=300']),
      /error: cannot join a cluster: localhost:1 refused the connection/,
    ],
  ]
  for (const [args, message] of refusals) {
    const refused = startProcess(t, args)
    await once(refused.child, 'exit')
    assert.equal(refused.child.exitCode, 1, refused.text())
    assert.match(refused.text(), message)
  }
  await other.stop()
  const foreign = startProcess(t, join(1, port + 6, port, ['--data', `${data}/4`]))
  await once(foreign.child, 'exit')
  assert.match(foreign.text(), /error: .*4 belongs to cluster .*, and the nodes to join are of cluster .*; choose/)
})

test('a node that is told to stop while it looks for its cluster stops', async t => {
  const data = await folder(t)
  const port = await freePorts(2)
  const looking = startProcess(t, ['--node-id', '2', '--port', `${port}`, '--data', data, '--join', 'localhost:1'])
  await until('it looks', () => looking.text().includes('looking for the cluster'))
  assert.equal(await looking.stop(), 0)
  assert.match(looking.text(), /stopped before it was up/)
})

test('three commands make a quorum of three, which outlives the death of its leader', async t => {
  const data = await folder(t)
  const port = await freePorts(6)
  const one = startProcess(t, ['--node-id', '1', '--port', `${port}`, '--data', `${data}/1`])
  const join = (id: number) =>
    startProcess(t, [
      ...['--node-id', `${id}`, '--port', `${port + 2 * (id - 1)}`, '--data', `${data}/${id}`],
      ...['--join', `localhost:${port}`],
    ])
  const others = [join(2), join(3)]
  await Promise.all([one, ...others].map(each => isUp(each)))
  await until('all vote', async () => (await quorumAt(port)).voters.length === 3)
  assert.deepEqual((await quorumAt(port + 2)).voters, [1, 2, 3])
  assert.deepEqual(await brokersAt(port + 2), [1, 2, 3])
  // Brokers and controllers say the same of the cluster's features, also of the one that is raft's own.
  const features = (at: number) =>
    asking(at, async channel => {
      const about = { clientSoftwareName: 'test', clientSoftwareVersion: '1' }
      const { finalizedFeatures } = await channel.ask(API.ApiVersions, about)
      return finalizedFeatures.map(({ name, maxVersionLevel }) => `${name} ${maxVersionLevel}`).sort()
    })
  assert.ok((await features(port)).includes('kraft.version 1'))
  assert.deepEqual(await features(port + 2), await features(port + 1))
  const { leader } = await quorumAt(port)
  const nodes = [one, ...others]
  nodes[leader - 1]?.child.kill('SIGKILL')
  const rest = [1, 2, 3].filter(id => id !== leader)
  const ask = port + 2 * ((rest[0] ?? 1) - 1)
  await until('another one leads', async () => rest.includes((await quorumAt(ask)).leader))
  await until('the dead one is fenced', async () => (await brokersAt(ask)).join() === rest.join())
  for (const id of rest) assert.equal(await nodes[id - 1]?.stop(), 0, nodes[id - 1]?.text() ?? '')
})

test("a folder is nobody's again after a start that failed before it served", async t => {
  const data = await folder(t)
  const port = await freePorts(6)
  const one = startProcess(t, ['--port', `${port}`, '--data', `${data}/1`])
  await isUp(one)
  const own = ['--data', `${data}/2`]
  const join = ['--join', `localhost:${port}`, '--roles', 'broker']
  const failures: readonly [readonly string[], RegExp][] = [
    [['--port', `${port}`], /another process listens there/],
    [['--port', `${port - 1}`], /another process listens there/],
    [
      [
        '--port',
        `${port + 2}`,
        '--node-id',
        '4',
        '--join',
        'localhost:1',
        '-o',
        'initial.broker.registration.timeout.ms=300',
      ],
      /cannot join a cluster/,
    ],
    [['--port', `${port + 2}`, '--node-id', '1', '-o', 'broker.session.timeout.ms=100', ...join], /DUPLICATE_BROKER/],
  ]
  for (const [args, message] of failures) {
    const failed = startProcess(t, [...own, ...args])
    await once(failed.child, 'exit')
    assert.equal(failed.child.exitCode, 1, failed.text())
    assert.match(failed.text(), message)
    assert.deepEqual(
      (await readdir(`${data}/2`).catch(() => [])).filter(name => name !== '.lock'),
      [],
    )
  }
  const seven = startProcess(t, [...own, '--port', `${port + 2}`, '--node-id', '7', ...join])
  await isUp(seven)
  seven.child.kill('SIGHUP')
  seven.child.kill('SIGTERM')
  assert.equal(await seven.stop(), 0, seven.text())
  assert.match(seven.text(), /everything is on disk.*stopped/s)
})
