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
const tell = (line: string): void => void process.stdout.write(`${line}\n`)
const begun = performance.now()
const findings = await run({
  seed: Number(values.seed),
  against: values.against === 'kafka' ? 'kafka' : 'tidemark',
  ...(values.only !== undefined && { only: values.only.split(',') }),
  tell,
})
tell(findings.print(values.all ? findings.all : findings.unexplained))
tell(findings.coverage)
tell(findings.times)
tell(
  `seed ${values.seed}: ${findings.all.length} kinds of difference, ${findings.unexplained.length} of them not explained`,
)
tell(`${((performance.now() - begun) / 1000).toFixed(1)} s`)
process.exit(findings.unexplained.length === 0 ? 0 : 1)
