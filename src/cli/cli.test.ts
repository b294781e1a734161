import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { parsePlace, parseTime, wholeNumber } from './arguments.ts'
import { runCli } from './cli.ts'
import { nearest, UsageError } from './context.ts'
import { bytes, duration, table } from './output.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')

test('places are beginnings, ends, offsets and times', () => {
  for (const text of ['beginning', 'earliest']) assert.equal(parsePlace(text, NOW), 'earliest')
  for (const text of ['end', 'latest']) assert.equal(parsePlace(text, NOW), 'latest')
  assert.deepEqual(parsePlace('42', NOW), { offset: 42 })
  assert.deepEqual(parsePlace('-10', NOW), { offset: -10 })
  assert.deepEqual(parsePlace('1700000000000', NOW), { timestamp: 1_700_000_000_000 })
  assert.deepEqual(parsePlace('90m', NOW), { timestamp: NOW - 5_400_000 })
  assert.equal(parseTime('-1.5h', NOW), NOW - 5_400_000)
  assert.equal(parseTime('2026-01-31', NOW), Date.parse('2026-01-31T00:00:00Z'))
  assert.throws(() => parsePlace('yesterday', NOW), UsageError)
  assert.throws(() => wholeNumber('--max', 1)('0'), /--max must be a whole number of at least 1/)
  assert.throws(() => wholeNumber('--max')('1.5'), UsageError)
})

test('the nearest name is found, and none where all are far', () => {
  const topics = ['orders', 'payments', 'order-items']
  assert.equal(nearest('odrers', topics), 'orders')
  assert.equal(nearest('Payment', topics), 'payments')
  assert.equal(nearest('zzzz', topics), undefined)
  assert.equal(nearest('x', []), undefined)
})

test('tables line up, numbers at the right', () => {
  assert.equal(
    table(
      ['TOPIC', 'LAG'],
      [
        ['a', 5],
        ['größer', 1000],
      ],
    ),
    ['TOPIC    LAG', 'a          5', 'größer  1000'].join('\n'),
  )
  assert.equal(table(['A', 'B'], [[null, undefined]]), 'A  B\n-  -')
})

test('spans and sizes are said as people say them', () => {
  assert.deepEqual([12, 1500, 59_000, 5_400_000, 864_000_000].map(duration), [
    '12 ms',
    '1.5 s',
    '59 s',
    '1.5 h',
    '10 d',
  ])
  assert.deepEqual([-1, 0, 1023, 1536, 5 * 2 ** 30].map(bytes), ['-', '0 B', '1023 B', '1.5 KiB', '5 GiB'])
})

test('start gets what stands behind it, and its code is ours', async () => {
  let given: readonly string[] = []
  const doors = {
    start: (args: readonly string[]) => {
      given = args
      return Promise.resolve(7)
    },
  }
  assert.equal(await runCli(['start', '-o', 'a=b', '--help'], doors), 7)
  assert.deepEqual(given, ['-o', 'a=b', '--help'])
})

/** What is written as text from now on, until the mocks are reset. The test runner's own reports are bytes, and go on. */
function captured(t: TestContext, stream: 'stdout' | 'stderr'): string[] {
  const texts: string[] = []
  const write = process[stream].write.bind(process[stream])
  t.mock.method(process[stream], 'write', (chunk: string | Uint8Array) =>
    typeof chunk === 'string' ? texts.push(chunk) > 0 : write(chunk),
  )
  return texts
}

const NOWHERE = { start: () => Promise.resolve(0) }

test('help for a command is what its --help says, also for start', async t => {
  let given: readonly string[] = []
  const start = (args: readonly string[]) => {
    given = args
    return Promise.resolve(0)
  }
  assert.equal(await runCli(['help', 'start'], { start }), 0)
  assert.deepEqual(given, ['--help'])
  const written = captured(t, 'stdout')
  const code = await runCli(['help', 'topics', 'create'], NOWHERE)
  t.mock.reset()
  assert.equal(code, 0)
  assert.match(written.join(''), /^Usage: tidemark topics create /)
})

for (const [what, args, code, message] of [
  ['a mistyped command', ['topics', 'creat'], 2, /unknown command 'creat'.*create/],
  ['an impossible value', ['consume', 'a', '-n', '0'], 2, /--max must be a whole number/],
  ['a state that groups do not have', ['groups', 'list', '--state', 'Stabel'], 2, /no state "Stabel"/],
  ['a reassignment without a plan', ['topics', 'reassign', '--execute'], 2, /say what to do: --brokers or --file/],
  ['two modes', ['topics', 'reassign', '--status', '--cancel'], 2, /--status and --cancel exclude each other/],
  [
    'a throttle without copies',
    ['topics', 'reassign', '--status', '--throttle', '1M'],
    2,
    /--throttle needs --execute/,
  ],
  ['a rate that is none', ['topics', 'reassign', '--throttle', 'fast'], 2, /"fast" is no rate/],
  ['an unclean election of nothing named', ['cluster', 'elect', '--unclean'], 2, /loses records/],
  ['an address where nobody listens', ['topics', 'list', '-b', '127.0.0.1:1'], 1, /refused the connection/],
  [
    'a wait that --timeout ends',
    ['cluster', '--wait', '-b', '127.0.0.1:1', '--timeout', '200'],
    1,
    /^not well after 200 ms: .*refused the connection/,
  ],
] as const) {
  test(`with --json ${what} is an object on standard error`, async t => {
    const written = captured(t, 'stderr')
    const got = await runCli([...args, '--json'], NOWHERE)
    t.mock.reset()
    assert.equal(got, code)
    assert.match(JSON.parse(written.at(-1) ?? '').error.message, message)
  })
}

for (const shell of ['bash', 'zsh', 'fish']) {
  test(`the completion for ${shell} names commands and options${shell === 'fish' ? '' : ', and the shell reads it'}`, async t => {
    const written = captured(t, 'stdout')
    const code = await runCli(['completion', shell], { start: () => Promise.resolve(0) })
    t.mock.reset()
    const script = written.join('')
    assert.equal(code, 0)
    for (const word of ['add-partitions', 'dry-run', 'bootstrap', 'reassign', 'elect', 'voters', 'unregister'])
      assert.ok(script.includes(word), word)
    if (shell === 'fish' || spawnSync(shell, ['--version']).error !== undefined) return
    const checked = spawnSync(shell, ['-n'], { input: script })
    assert.equal(checked.status, 0, checked.stderr.toString())
    if (shell !== 'bash') return
    const ask = `${script}\nCOMP_WORDS=(tidemark topics cr); COMP_CWORD=2; _tidemark; echo "\${COMPREPLY[@]}"`
    assert.equal(spawnSync('bash', ['-c', ask]).stdout.toString(), 'create\n')
  })
}
