// The only plain-JavaScript program here: it runs on whatever Node started npm, brings the packages when the lock
// file changed, makes sure the Node that we run on is there, and hands over to it.
//
//   node scripts/setup.js                       just the set-up
//   node scripts/setup.js run FILE [ARGS...]    then run a TypeScript file on our Node
//   node scripts/setup.js bin NAME [ARGS...]    then run a package's program (tsc, biome)
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
const stamp = join(modules, '.tidemark-setup')
const ourNode = join(modules, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')

function fail(message) {
  process.stderr.write(`setup: ${message}\n`)
  process.exit(1)
}

function npm(args, cwd = root) {
  // npm_execpath is the npm that started us, if one did: the same client with the same settings.
  const viaNode = process.env.npm_execpath?.endsWith('.js') === true
  const command = viaNode ? process.execPath : process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const result = spawnSync(command, viaNode ? [process.env.npm_execpath, ...args] : args, {
    cwd,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32' && !viaNode,
    env: { ...process.env, npm_config_global: 'false' },
  })
  if (result.error !== undefined) fail(`npm could not be started (${result.error.message}); install npm 10 or newer`)
  return result.status === 0
}

/** The lock file's hash: what was installed is what it names, or we install again. */
function wanted() {
  const lock = join(root, 'package-lock.json')
  if (!existsSync(lock)) fail('package-lock.json is missing; the checkout is incomplete')
  return createHash('sha256').update(readFileSync(lock)).digest('hex')
}

/** Runs the `node` package's own install step where npm was told not to run install scripts. */
function bringNode() {
  if (existsSync(ourNode)) return
  const script = join(modules, 'node', 'installArchSpecificPackage.js')
  if (existsSync(script)) spawnSync(process.execPath, [script], { cwd: join(modules, 'node'), stdio: ['ignore', 2, 2] })
  if (!existsSync(ourNode)) {
    fail(
      `the package "node" brought no program for ${process.platform}-${process.arch} (looked for ${ourNode}). ` +
        'Check that the npm registry is reachable, then run `npm install` again.',
    )
  }
}

const major = Number(process.versions.node.split('.')[0])
if (major < 20) fail(`Node ${process.versions.node} is too old to set up with; install Node 20 or newer`)

const hash = wanted()

function isSetUp() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === hash && existsSync(ourNode)
}

function isAlive(pid) {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Three nodes may be started at once in a new checkout: one brings the packages, the others wait for it. */
function alone(work) {
  const lock = join(root, '.cache', 'setup.lock')
  mkdirSync(dirname(lock), { recursive: true })
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' })
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    const holder = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : 0
    // It may be about to write its number.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
    if (existsSync(lock) && Number(readFileSync(lock, 'utf8')) === holder && !isAlive(holder))
      rmSync(lock, { force: true })
  }
  const release = () => rmSync(lock, { force: true })
  process.once('exit', release)
  work()
  process.off('exit', release)
  release()
}

if (!isSetUp())
  alone(() => {
    if (isSetUp()) return
    process.stderr.write('setup: bringing the packages that package-lock.json names\n')
    if (!npm(['ci', '--no-audit', '--no-fund', '--loglevel=error'])) {
      fail('`npm ci` failed; its message is above. Once the registry is reachable, run the same command again.')
    }
    bringNode()
    writeFileSync(stamp, hash)
  })

const [mode, name, ...rest] = process.argv.slice(2)
if (mode !== undefined) {
  if (name === undefined) fail('usage: setup.js [run FILE | bin NAME] [ARGS...]')
  const cache = join(modules, '.cache', 'compile')
  mkdirSync(cache, { recursive: true })
  const args = mode === 'run' ? [join(root, name), ...rest] : [join(modules, '.bin', name), ...rest]
  const child = spawn(mode === 'run' ? ourNode : args.shift(), args, {
    stdio: 'inherit',
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? cache,
      PATH: `${dirname(ourNode)}:${process.env.PATH ?? ''}`,
    },
  })
  // Passed on, as it may be sent to us alone; where the whole group got it, the child takes two for one.
  let told = false
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) {
    process.on(signal, () => {
      told = true
      child.kill(signal)
    })
  }
  // npm passes a signal on to its shell, which ends without telling us; without this a node would run on unseen.
  const parent = process.ppid
  const orphaned = setInterval(() => {
    if (process.ppid === parent || process.env.npm_lifecycle_event === undefined) return
    clearInterval(orphaned)
    if (!told) child.kill('SIGTERM')
  }, 500)
  orphaned.unref()
  child.on('error', error => fail(`${name} could not be started: ${error.message}`))
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 143)))
}
