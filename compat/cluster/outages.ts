// How long a cluster of three machines does without what a fault takes from it, as a client sees it:
//
//   npm run outages -- [--only 'stopped|cut'] [--times 5] [--session 9000] [--real]
//
// Three nodes, each broker and controller, partitions with three replicas and min.insync.replicas=2; the rest is as it is
// by default. For each fault, of so many times the shortest and the longest time without a success of: writes with
// acks=all to the partition that the machine led, and to those that it followed; reads of the one that it led; changes of
// the metadata. Clients give up on an answer after a second; what one waits longer where a machine is silent comes on top.
//
// By default machines are simulated: times are virtual, and without what processors take. With --real they are
// processes in network namespaces with disks of their own, which takes Linux and root.
import { parseArgs } from 'node:util'
import { Namespaces, withoutNamespaces } from './namespaces.ts'
import { FAULTS, type Felt, MEASURES, type Measured, Outage } from './outage.ts'
import { SimulatedMachines } from './simulated-machines.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    session: { type: 'string', default: '9000' },
    times: { type: 'string', default: '5' },
    real: { type: 'boolean', default: false },
  },
})
const missing = values.real ? withoutNamespaces() : false
if (missing !== false) {
  process.stdout.write(`skipped: ${missing}\n`)
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

const settings = {
  'offsets.topic.num.partitions': '3',
  'offsets.topic.replication.factor': '3',
  'broker.session.timeout.ms': values.session,
}

function shown(all: readonly Felt[]): string {
  const range = (of: readonly Felt[]): string => {
    const [least = 0, ...more] = of.map(({ ms }) => ms / 1000).toSorted((a, b) => a - b)
    const most = more.at(-1) ?? least
    return least.toFixed(1) === most.toFixed(1) ? `${most.toFixed(2)} s` : `${least.toFixed(1)} to ${most.toFixed(1)} s`
  }
  const within = all.filter(({ afterEnd }) => !afterEnd)
  const beyond = all.filter(({ afterEnd }) => afterEnd)
  return [
    ...(within.length > 0 ? [range(within)] : []),
    ...(beyond.length > 0 ? [`until its end and ${range(beyond)}`] : []),
  ].join(' or ')
}

process.stdout.write(`| fault | lasts | ${MEASURES.join(' | ')} |\n| --- | ---: |${' --- |'.repeat(MEASURES.length)}\n`)
for (const [name, fault] of Object.entries(FAULTS)) {
  if (!new RegExp(values.only).test(name) || (values.real && fault.simulatedOnly === true)) continue
  const measured: Measured[] = []
  for (let time = 1; time <= Number(values.times); time++) {
    const machines = values.real ? new Namespaces(settings) : new SimulatedMachines(time, settings)
    measured.push(await new Outage(machines).measure(fault))
  }
  const cells = MEASURES.map(name => shown(measured.map(each => each[name])))
  process.stdout.write(`| ${name} | ${fault.ms / 1000} s | ${cells.join(' | ')} |\n`)
}
process.exit(0)
