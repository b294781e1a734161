// The package as its users get it: packed, installed in an empty folder, and run on the oldest Node that it promises.
//
//   node compat/package.ts
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import kafkajs from 'kafkajs'
import { scenario } from './scenario.ts'
import { root, Server } from './server.ts'

const OLDEST_NODE = '22.15.0'

const dir = await mkdtemp(join(tmpdir(), 'tidemark-package-'))
process.on('exit', () =>
  spawnSync(process.execPath, ['-e', `fs.rmSync(${JSON.stringify(dir)}, {recursive: true, force: true})`]),
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

function run(program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = process.env): string {
  const result = spawnSync(program, args, { cwd, env, encoding: 'utf8', timeout: 120_000 })
  if (result.status !== 0) {
    const said = `${result.error?.message ?? ''}${result.stdout}${result.stderr}`
      .trim()
      .split('\n')
      .slice(-15)
      .join('\n')
    throw new Error(`${program} ${args.join(' ')} ended with ${result.status ?? result.signal}: ${said}`)
  }
  return result.stdout
}

const npm = (args: readonly string[], cwd: string): string =>
  process.env.npm_execpath?.endsWith('.js') === true
    ? run(process.execPath, [process.env.npm_execpath, ...args], cwd)
    : run('npm', args, cwd)

const QUIET = ['--no-audit', '--no-fund', '--loglevel=error']
const app = join(dir, 'app')
const oldNode = join(dir, 'node', 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node')
let entry = ''

await scenario('npm pack', async () => {
  npm(['pack', '--pack-destination', dir, '--loglevel=error'], root)
  const [tarball] = readdirSync(dir).filter(file => file.endsWith('.tgz'))
  assert.ok(tarball, 'there is a tarball')
  const files = run('tar', ['-tzf', join(dir, tarball)], dir)
    .trim()
    .split('\n')
  const stray = files.filter(file => !/^package\/(bin\/|dist\/|package\.json$|README|LICENSE|CHANGELOG)/.test(file))
  assert.deepEqual(stray, [])
  assert.deepEqual(
    files.filter(file => /\.ts$|\.test\.|testdata|\/sim\//.test(file)),
    [],
  )
})

await scenario('installs elsewhere, without development dependencies', async () => {
  const [tarball] = readdirSync(dir).filter(file => file.endsWith('.tgz'))
  spawnSync('mkdir', ['-p', app, join(dir, 'node')])
  writeFileSync(join(app, 'package.json'), '{"private": true}')
  writeFileSync(join(dir, 'node', 'package.json'), '{"private": true}')
  npm(['install', ...QUIET, join(dir, tarball ?? '')], app)
  assert.ok(!existsSync(join(app, 'node_modules', 'typescript')), 'no TypeScript is brought')
  entry = join(app, 'node_modules', 'tidemark', 'bin', 'tidemark.js')
  assert.ok(existsSync(join(app, 'node_modules', '.bin', 'tidemark')), 'the program `tidemark` is there')
})

let missing: string | undefined
try {
  npm(['install', ...QUIET, `node-${process.platform}-${process.arch}@${OLDEST_NODE}`], join(dir, 'node'))
} catch (error) {
  missing = `Node ${OLDEST_NODE} cannot be had (${error instanceof Error ? error.message.split('\n').at(-1) : error})`
}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

for (const [name, node] of [
  [`Node ${OLDEST_NODE}`, oldNode],
  ['our Node', process.execPath],
] as const) {
  if (node === oldNode && missing !== undefined) {
    process.stdout.write(`skipped package on ${name}: ${missing}\n`)
    continue
  }
  await scenario(`tidemark --version on ${name}`, async () => {
    assert.match(run(node, [entry, '--version'], app), new RegExp(`\\b${version.replaceAll('.', '\\.')}\\b`))
  })
  await scenario(`tidemark start on ${name}, a record in and out`, async () => {
    const server = await Server.create('tidemark', [node, entry])
    try {
      await server.start()
      await inAndOut(server.address)
      assert.equal(await server.stop(), 0, `SIGTERM did not end it cleanly\n${server.lastLog(10)}`)
    } finally {
      await server.remove()
    }
  })
}

await scenario('an old Node is told what it lacks', async () => {
  const started = spawnSync(process.execPath, ['--input-type=module', '-'], {
    input: `Object.defineProperty(process.versions, 'node', { value: '18.20.0' })
      await import(${JSON.stringify(entry)})`,
    encoding: 'utf8',
    cwd: app,
  })
  assert.match(started.stderr, /needs Node 22\.15 or newer/)
  assert.equal(started.status, 1)
})

async function inAndOut(address: string): Promise<void> {
  const { Kafka, logLevel } = kafkajs
  const kafka = new Kafka({
    brokers: [address],
    logLevel: logLevel.NOTHING,
    retry: { retries: 10, initialRetryTime: 50 },
  })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: 'hello', messages: [{ key: 'k', value: 'first record' }] })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: 'readers', maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topic: 'hello', fromBeginning: true })
  const value = await new Promise<string>((resolve, reject) => {
    setTimeout(() => reject(new Error('no record came within 20 s')), 20_000).unref()
    consumer.run({ eachMessage: async ({ message }) => resolve(String(message.value)) }).catch(reject)
  })
  await consumer.disconnect()
  assert.equal(value, 'first record')
}

await rm(dir, { recursive: true, force: true })
process.exit()
