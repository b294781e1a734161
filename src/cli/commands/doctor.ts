import type { Command } from 'commander'
import { parseAddresses } from '#client/client.ts'
import { type Probe, probe } from '#client/probe.ts'
import { globalOptions, wantsJson, world } from '../context.ts'
import { print, printJson } from '../output.ts'

interface Finding {
  readonly level: 'ok' | 'warning' | 'problem'
  readonly text: string
  readonly hint?: string | undefined
}

export function command(program: Command): void {
  program
    .command('doctor')
    .description('dial the cluster as a client would, and say what it meets')
    .addHelpText('after', '\nExample: tidemark doctor -b broker.example.com:9092')
    .action(async (_options: object, self: Command) => {
      const { bootstrap, timeout } = globalOptions(self)
      const findings = await examine(bootstrap, Math.min(timeout, 5000))
      if (wantsJson(self)) printJson(findings)
      else {
        for (const { level, text, hint } of findings) {
          print(`${level === 'ok' ? 'ok      ' : level === 'warning' ? 'warning ' : 'PROBLEM '} ${text}`)
          if (hint !== undefined) print(`          ${hint}`)
        }
      }
      if (findings.some(({ level }) => level === 'problem')) process.exitCode = 1
    })
}

async function examine(bootstrap: string, timeoutMs: number): Promise<Finding[]> {
  const findings: Finding[] = []
  const first: Probe[] = []
  for (const address of parseAddresses(bootstrap)) {
    const found = await probe(world, address, timeoutMs)
    first.push(found)
    findings.push(...describe('bootstrap', found))
  }
  const answered = first.filter(({ error }) => error === undefined)
  const advertised = new Map(
    answered.flatMap(({ brokers }) => brokers).map(each => [`${each.host}:${each.port}`, each]),
  )
  if (answered.length > 0 && advertised.size === 0) {
    findings.push({ level: 'problem', text: 'the cluster names no brokers', hint: 'are all of them fenced?' })
  }
  const clusters = new Set(answered.map(({ clusterId }) => clusterId))
  for (const { id, host, port } of advertised.values()) {
    const found = await probe(world, { host, port }, timeoutMs)
    findings.push(...describe(`broker ${id}`, found))
    if (found.error !== undefined) {
      findings.push({
        level: 'problem',
        text: `clients are told to dial ${host}:${port} for broker ${id}, and cannot`,
        hint: "set advertised.listeners of this broker to an address that can be reached from here, or fix the name's resolution",
      })
    } else clusters.add(found.clusterId)
    if (isLoopback(host) && answered.some(({ address }) => !isLoopback(address.host))) {
      findings.push({
        level: 'problem',
        text: `broker ${id} advertises ${host}, which means this very machine to every client`,
        hint: 'set advertised.listeners to the name by which others reach it',
      })
    }
  }
  if (clusters.size > 1) {
    findings.push({
      level: 'problem',
      text: `the addresses lead to different clusters: ${[...clusters].join(', ')}`,
      hint: 'an old address of another cluster is in the list, or in the configuration of a broker',
    })
  }
  if (findings.every(({ level }) => level === 'ok')) findings.push({ level: 'ok', text: 'clients can work from here' })
  return findings
}

function describe(what: string, found: Probe): Finding[] {
  const { address, error, connectMs, answerMs, apis, missing } = found
  const at = `${what} ${address.host}:${address.port}`
  if (error !== undefined) return [{ level: 'problem', text: `${at}: ${error.message}`, hint: error.hint }]
  const findings: Finding[] = [
    { level: 'ok', text: `${at}: connected in ${ms(connectMs)}, answered in ${ms(answerMs)}, ${apis} APIs` },
  ]
  if (missing.length > 0) {
    const hint = 'this may be a controller listener: give clients the address of a broker'
    findings.push({ level: 'problem', text: `${at} does not offer ${missing.join(', ')}`, hint })
  }
  if (connectMs + answerMs > 1000) {
    findings.push({
      level: 'warning',
      text: `${at} is slow`,
      hint: 'look at the network and at the load of the broker',
    })
  }
  return findings
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
