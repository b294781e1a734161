import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const FILE = fileURLToPath(new URL('./stop-signals.ts', import.meta.url))

/** A process that takes two seconds to stop and says how often it was told to. */
const SLOW = `
import { onStopSignal } from ${JSON.stringify(FILE)}
const alive = setInterval(() => {}, 1000)
onStopSignal(() => {
  process.stdout.write('stopping\\n')
  setTimeout(() => { clearInterval(alive); process.stdout.write('stopped\\n') }, 2000)
})
process.stdout.write('ready\\n')
`

async function slow(t: TestContext) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', SLOW], { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  let text = ''
  child.stdout.on('data', chunk => (text += chunk))
  const has = async (word: string) => {
    while (!text.includes(word)) await once(child.stdout, 'data')
  }
  await has('ready')
  return { child, gone, has, text: () => text }
}

for (const signals of [['SIGTERM', 'SIGTERM'], ['SIGINT', 'SIGINT'], ['SIGHUP'], ['SIGTERM', 'SIGHUP']] as const)
  test(`${signals.join(' and ')} within a moment ask for one clean stop`, async t => {
    const { child, gone, has, text } = await slow(t)
    child.kill(signals[0])
    await has('stopping')
    for (const signal of signals.slice(1)) child.kill(signal)
    await gone
    assert.equal(child.exitCode, 0)
    assert.equal(text(), 'ready\nstopping\nstopped\n')
  })

test('who asks again later has the process end at once', async t => {
  const { child, gone, has, text } = await slow(t)
  child.kill('SIGTERM')
  await has('stopping')
  await new Promise(resolve => setTimeout(resolve, 1200))
  child.kill('SIGTERM')
  await gone
  assert.equal(child.exitCode, 130)
  assert.equal(text(), 'ready\nstopping\n')
})
