// Three nodes of ours in real processes, disturbed one way after the other while clients write and read:
//
//   npm run faults -- [--minutes 30] [--seed 1] [--rate 50] [--session 9000] [--only 'rolling|kill']
//
// Prints a line per fault, then how long each kind was felt and what the checker has counted. Exits with 1 when anything
// that was acknowledged is lost, twice, or out of order. FAULTS_KEEP=1 leaves the folder with the nodes' logs.
import { parseArgs } from 'node:util'
import { clientsHere, disturb, FAULTS } from './disturb.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    rate: { type: 'string', default: '50' },
    session: { type: 'string', default: '9000' },
    only: { type: 'string', default: '' },
  },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

const say = (text: string): void => void process.stdout.write(`${text}\n`)
const { clients, python, missing } = await clientsHere()
for (const why of missing) say(`skipped ${why}`)
say(`seed ${values.seed}, ${values.minutes} minutes, written and read by ${clients.join(', ')}`)
try {
  const { wrong } = await disturb({
    seed: Number(values.seed),
    until: ({ elapsedMs }) => elapsedMs >= Number(values.minutes) * 60_000,
    faults: Object.keys(FAULTS).filter(name => new RegExp(values.only).test(name)),
    clients,
    python,
    perSecond: Number(values.rate),
    sessionTimeoutMs: Number(values.session),
    say,
  })
  process.exit(wrong.length === 0 ? 0 : 1)
} catch (error) {
  say(String(error instanceof Error ? error.stack : error))
  process.exit(1)
}
