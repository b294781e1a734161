// Other people's clients against a running server:
//
//   node compat/main.ts [--server tidemark|kafka] [--only kafkajs,java]
import { parseArgs } from 'node:util'
import { perform } from './program.ts'
import { Server, type ServerKind } from './server.ts'
import { SUITES } from './suites.ts'

const { values } = parseArgs({
  options: {
    server: { type: 'string', default: 'tidemark' },
    only: { type: 'string' },
  },
})
const names = values.only?.split(',')
const unknown = names?.filter(name => !SUITES.some(suite => suite.name === name)) ?? []
if (unknown.length > 0 || (values.server !== 'tidemark' && values.server !== 'kafka')) {
  process.stderr.write(
    `usage: node compat/main.ts [--server tidemark|kafka] [--only ${SUITES.map(s => s.name).join(',')}]\n`,
  )
  process.exit(2)
}
const kind: ServerKind = values.server
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

const counts = { ok: 0, failed: 0, skipped: 0 }
function tell(result: keyof typeof counts, name: string, why?: string): void {
  counts[result]++
  process.stdout.write(`${result} ${name}${why === undefined ? '' : `: ${why}`}\n`)
}

let server: Server | undefined
try {
  for (const suite of SUITES) {
    if (names !== undefined && !names.includes(suite.name)) continue
    const begun = performance.now()
    const prepared = await suite.prepare()
    if ('missing' in prepared) {
      tell('skipped', suite.name, prepared.missing)
      continue
    }
    if (server === undefined) {
      server = await Server.create(kind)
      await server.start()
    }
    const before = counts.failed
    await perform(suite.name, prepared.command, server, tell)
    process.stdout.write(`  ${suite.name}: ${((performance.now() - begun) / 1000).toFixed(1)} s\n`)
    if (counts.failed > before) process.stdout.write(`${server.lastLog().replaceAll(/^/gm, '    | ')}\n`)
  }
  if (server !== undefined) {
    const code = await server.stop()
    // Kafka's JVM ends with 143 after SIGTERM; ours has no reason to.
    const clean = kind === 'kafka' ? [0, 143, 'SIGTERM'] : [0]
    if (clean.includes(code)) tell('ok', 'clean stop on SIGTERM')
    else tell('failed', 'clean stop on SIGTERM', `ended with ${code}`)
  }
} catch (error) {
  tell('failed', `server ${kind}`, (error instanceof Error ? error.message : String(error)).replaceAll('\n', ' ⏎ '))
} finally {
  await server?.remove()
}
process.stdout.write(`${counts.ok} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exit(counts.failed === 0 ? 0 : 1)
