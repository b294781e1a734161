/** Our commands, and Kafka's tools, against three nodes of ours. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { root } from '../server.ts'
import { SUITES } from '../suites.ts'
import { eventually, Nodes } from './nodes.ts'

const java = await SUITES.find(({ name }) => name === 'java')?.prepare()

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

describe('three nodes', { timeout: 300_000 }, () => {
  let nodes: Nodes

  function runProgram(command: readonly string[], input = ''): Promise<Ran> {
    const [program = '', ...args] = command
    return new Promise(resolve => {
      const env = { ...process.env, TIDEMARK_BOOTSTRAP: nodes.bootstrap }
      const child = spawn(program, args, { env, cwd: root })
      let out = ''
      let err = ''
      child.stdout.on('data', part => (out += part))
      child.stderr.on('data', part => (err += part))
      child.on('close', code => resolve({ code, out, err }))
      child.stdin.end(input)
    })
  }

  const run = (args: readonly string[], input?: string): Promise<Ran> =>
    runProgram([process.execPath, '--no-warnings', join(root, 'src', 'main.ts'), ...args], input)

  async function done(args: readonly string[], input?: string): Promise<string> {
    const { code, out, err } = await run(args, input)
    assert.equal(code, 0, `${args.join(' ')} ended with ${code}: ${err}`)
    return out
  }

  const told = async (args: readonly string[], input?: string) => JSON.parse(await done([...args, '--json'], input))

  /** Replicas and ISR of a topic's first partition. */
  async function placeOf(topic: string): Promise<{ leader: number; replicas: number[]; isr: number[] }> {
    const [{ partitions }] = await told(['topics', 'describe', topic])
    return partitions[0]
  }

  const planOf = (topic: string, ...replicas: number[]): string =>
    JSON.stringify({ version: 1, partitions: [{ topic, partition: 0, replicas }] })

  before(async () => {
    nodes = await Nodes.create(3)
    nodes.start(1)
    await eventually('the first node answers', async () => (await run(['topics', 'list'])).code === 0)
    nodes.start(2)
    nodes.start(3)
    await eventually('three brokers', async () => {
      const { nodes: all } = await told(['cluster'])
      return all.filter(({ state }: { state: string }) => state === 'active').length === 3
    })
  })

  after(() => nodes?.remove())

  test('nodes that follow are given votes by their ids', async () => {
    for (const id of ['2', '3']) {
      await eventually(`node ${id} follows`, async () => {
        const { observers } = await told(['cluster', 'voters'])
        return observers.some(
          (each: { id: number; logEndOffset: number }) => `${each.id}` === id && each.logEndOffset > 0,
        )
      })
      await done(['cluster', 'voters', 'add', id])
    }
    const { voters } = await told(['cluster', 'voters'])
    assert.deepEqual(voters.map(({ id }: { id: number }) => id).sort(), [1, 2, 3])
    assert.equal((await run(['cluster', 'voters', 'add', '3'])).code, 1)
  })

  test('a cluster is shown with its racks, roles and quorum', async () => {
    const text = await done(['cluster'])
    assert.match(text, /^3 nodes in 3 racks/m)
    assert.match(text, /^ +1 +\S+ +rack-1 +broker, active controller +active/m)
    assert.match(text, /^ +3 +\S+ +rack-3 +broker, controller +active/m)
    assert.match(text, /^quorum: leader 1, epoch \d+, committed to \d+$/m)
    assert.match(text, /all replicas in sync/)
  })

  test('the features are shown, and what cannot be is refused', async () => {
    const features: { name: string; level: number; max: number }[] = await told(['cluster', 'features'])
    for (const { name, level, max } of features) assert.equal(level, max, name)
    assert.equal(await done(['cluster', 'features', 'upgrade']), 'nothing to do\n')
    assert.equal(await done(['cluster', 'features', 'upgrade', 'kraft.version=1']), 'nothing to do\n')
    const elr = 'eligible.leader.replicas.version'
    const lower = ['cluster', 'features', 'downgrade', `${elr}=0`]
    assert.equal(await done([...lower, '--dry-run']), `${elr} would go from 1 to 0\n`)
    assert.equal(await done(lower), `${elr} went from 1 to 0\n`)
    assert.equal(await done(['cluster', 'features', 'upgrade']), `${elr} went from 0 to 1\n`)
    const refused = await run(['cluster', 'features', 'upgrade', 'transaction.version=2'])
    assert.deepEqual([refused.code, /does not support this feature/.test(refused.err)], [1, true])
    assert.match((await run(['cluster', 'features', 'upgrade', 'kraft.versio=1'])).err, /did you mean "kraft.version"/)
  })

  test('a plan is shown, done and followed to its end; leaders are given back', async () => {
    await done(['topics', 'create', 'moved', '-p', '6', '-r', '2'])
    await done(['produce', 'moved'], 'a record\n'.repeat(5000))
    const planned = await told(['topics', 'reassign', '--brokers', '1,2', '--topics', 'moved'])
    assert.ok(planned.copies > 0 && planned.partitions.length > 0)
    assert.match(await done(['topics', 'reassign', '--brokers', '1,2', '--topics', 'moved']), /would be copied/)
    const progress = await done(['topics', 'reassign', '--file', '-', '--execute', '--wait'], JSON.stringify(planned))
    assert.match(progress, /began to reassign \d partitions? of \d.*all is where it shall be/s)
    const [{ partitions }] = await told(['topics', 'describe', 'moved'])
    for (const { replicas, isr } of partitions)
      assert.deepEqual(
        [replicas.toSorted(), isr.toSorted()],
        [
          [1, 2],
          [1, 2],
        ],
      )
    assert.match(await done(['topics', 'reassign', '--brokers', '1,2', '--topics', 'moved']), /nothing to do/)
    await done(['topics', 'reassign', '--brokers', 'all', '-r', '3', '--topics', 'moved', '--execute', '--wait'])
    await done(['cluster', 'elect'])
    const { health, nodes: all } = await told(['cluster'])
    assert.deepEqual([health.notPreferred, health.underReplicated], [[], []])
    assert.deepEqual(
      all.map(({ leads, replicas }: { leads: number; replicas: number }) => [leads, replicas]),
      [1, 2, 3].map(() => [2, 6]),
    )
    assert.equal((await done(['consume', 'moved'])).split('\n').length, 5001)
  })

  test('a throttled copy shows how far it is, and is taken back', async () => {
    await done(['topics', 'create', 'slow', '-p', '1', '-r', '1'])
    await done(['topics', 'reassign', '--file', '-', '--execute', '--wait'], planOf('slow', 1))
    await done(['produce', 'slow'], `${'x'.repeat(999)}\n`.repeat(20_000))
    await done(['topics', 'reassign', '--file', '-', '--execute', '--throttle', '100k'], planOf('slow', 2))
    const status = await told(['topics', 'reassign', '--status'])
    assert.deepEqual(
      status.reassignments.map(({ topic, adding, removing }: Record<string, unknown>) => ({ topic, adding, removing })),
      [{ topic: 'slow', adding: [2], removing: [1] }],
    )
    assert.ok(status.copiedBytes < status.totalBytes && status.totalBytes > 20_000_000, JSON.stringify(status))
    assert.match(await done(['cluster']), /^reassigning +1 +slow-0$/m)
    assert.match(await done(['topics', 'reassign', '--cancel']), /cancelled 1 reassignment.*throttle is taken away/s)
    const { replicas, isr } = await placeOf('slow')
    assert.deepEqual([replicas, isr], [[1], [1]])
    assert.match(await done(['topics', 'reassign', '--unthrottle']), /nothing is throttled/)
    const refused = await run(
      ['topics', 'reassign', '--file', '-', '--execute', '--throttle', '100k'],
      planOf('slow', 9),
    )
    assert.deepEqual([refused.code, /no such broker is registered/.test(refused.err)], [1, true])
    assert.match(await done(['topics', 'reassign', '--unthrottle']), /nothing is throttled/)
  })

  const missing = java === undefined || 'missing' in java ? (java?.missing ?? 'the suite is missing') : false
  test("Kafka's tools for clusters", { skip: missing }, async () => {
    assert.ok(java !== undefined && 'command' in java)
    const { code, out, err } = await runProgram([...java.command, nodes.bootstrap, 'cluster'])
    assert.doesNotMatch(out, /^failed/m)
    assert.equal(code, 0, err)
    assert.match(out, /^ok kafka-metadata-quorum remove-controller, add-controller$/m)
  })

  test('a broker that is gone is shown, its replicas are replaced, and it is forgotten', async () => {
    assert.equal((await run(['cluster', '--wait', '--check'])).err, '')
    await nodes.stop(3, 'SIGKILL')
    await eventually('it is fenced', async () => {
      const { nodes: all } = await told(['cluster'])
      return all.some(({ id, state }: { id: number; state: string }) => id === 3 && state === 'fenced')
    })
    assert.match(await done(['cluster']), /^under-replicated +\d+ /m)
    const { code, err } = await run(['cluster', '--check'])
    assert.equal(code, 1)
    assert.match(err, /^not well: 1 fenced broker \(3\); \d+ partitions under-replicated/)
    assert.match((await run(['cluster', 'unregister', '3'])).err, /broker 3 has \d+ replicas/)
    assert.match((await run(['topics', 'reassign', '--brokers', '1,2,3'])).err, /broker 3 is down/)
    await done(['cluster', 'voters', 'remove', '3'])
    await done(['topics', 'reassign', '--brokers', 'all', '-r', '2', '--execute', '--wait'])
    await done(['cluster', 'unregister', '3'])
    const { nodes: left, health } = await told(['cluster'])
    assert.deepEqual(
      left.map(({ id }: { id: number }) => id),
      [1, 2],
    )
    assert.deepEqual([health.offline, health.underReplicated], [[], []])
    assert.equal((await done(['consume', 'moved'])).split('\n').length, 5001)
  })
})
