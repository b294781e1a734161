import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const FILE = fileURLToPath(new URL('./stop-signals.ts', import.meta.url))

/** A process that sends itself more signals when it is told to stop, and stops once it has heard them all, or never. */
const SLOW = `
import { onStopSignal } from ${JSON.stringify(FILE)}
const [then, ...others] = process.argv.slice(1)
const alive = setInterval(() => {}, 1000)
let heard = 0
const signalAll = () => others.forEach(signal => process.kill(process.pid, signal))
onStopSignal(() => {
  process.stdout.write('stopping\\n')
  if (then === 'stop') signalAll()
  else setTimeout(signalAll, 1100)
})
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
  process.on(signal, () => {
    heard++
    if (then !== 'stop' || heard <= others.length) return
    clearInterval(alive)
    process.stdout.write('stopped\\n')
  })
process.stdout.write('ready\\n')
`

/** Signals such a process; how it ended, and what it said. */
async function signalled(
  t: TestContext,
  first: NodeJS.Signals,
  then: 'stop' | 'go on',
  others: readonly NodeJS.Signals[],
) {
  const args = ['--input-type=module', '-e', SLOW, then, ...others]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'close')
  t.after(() => child.kill('SIGKILL'))
  let text = ''
  child.stdout.on('data', chunk => (text += chunk))
  while (!text.includes('ready')) await once(child.stdout, 'data')
  child.kill(first)
  await gone
  return { exitCode: child.exitCode, text }
}

for (const [first, ...others] of [
  ['SIGTERM', 'SIGTERM'],
  ['SIGINT', 'SIGINT'],
  ['SIGHUP'],
  ['SIGTERM', 'SIGHUP'],
] as const)
  test(`${[first, ...others].join(' and ')} within a moment ask for one clean stop`, async t => {
    assert.deepEqual(await signalled(t, first, 'stop', others), { exitCode: 0, text: 'ready\nstopping\nstopped\n' })
  })

test('who asks again later has the process end at once', async t => {
  assert.deepEqual(await signalled(t, 'SIGTERM', 'go on', ['SIGTERM']), { exitCode: 130, text: 'ready\nstopping\n' })
})
