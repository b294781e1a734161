// The same calls to Kafka and to us; every difference is printed, and one that is not explained fails.
//
//   node compat/differential/main.ts [--seed N] [--against tidemark|kafka] [--only topics,produce] [--all]
import { parseArgs } from 'node:util'
import { run } from './run.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    against: { type: 'string', default: 'tidemark' },
    only: { type: 'string' },
    all: { type: 'boolean', default: false },
  },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
const tell = (line: string): void => void process.stdout.write(`${line}\n`)
const begun = performance.now()
const findings = await run({
  seed: Number(values.seed),
  against: values.against === 'kafka' ? 'kafka' : 'tidemark',
  ...(values.only !== undefined && { only: values.only.split(',') }),
  tell,
})
// Between Kafka and itself nothing has to be explained.
const open = values.against === 'kafka' ? findings.all : findings.unexplained
tell(findings.print(values.all ? findings.all : open))
tell(findings.coverage)
tell(findings.times)
for (const { why } of values.only === undefined && values.against !== 'kafka' ? findings.idle : [])
  tell(`explains nothing: ${why}`)
tell(`seed ${values.seed}: ${findings.all.length} kinds of difference, ${open.length} of them not explained`)
tell(`${((performance.now() - begun) / 1000).toFixed(1)} s`)
process.exit(open.length === 0 ? 0 : 1)
