// Writes docs/compatibility.md: which APIs there are, in which versions, from the tables, and which of them are served,
// as a node answers to ApiVersions. With --check it only says whether the page is up to date.
//
//   node scripts/compatibility.ts [--check]

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serverConfig } from '#core/config/server.ts'
import { Channel, type VersionSpan } from '#network/channel.ts'
import { APIS } from '#protocol/apis.ts'
import { parseVersions, type SchemaKind, type VersionRange } from '#protocol/schema.ts'
import { SCHEMAS } from '#protocol/schemas.ts'
import { realWorld } from '#world/real/real.ts'
import { startNode } from '../src/node.ts'

type Served = ReadonlyMap<number, VersionSpan>

const page = fileURLToPath(new URL('../docs/compatibility.md', import.meta.url))

/** What a node serves at its listener for clients and at that for controllers. */
async function askNode(): Promise<{ readonly broker: Served; readonly controller: Served }> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-compatibility-'))
  const overrides = [`log.dirs=${folder}`, 'listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0']
  const result = serverConfig({ overrides })
  if ('errors' in result) throw new Error(result.errors.map(({ message }) => message).join('\n'))
  // A node that does not come up must not hold up whoever checks the page.
  setTimeout(() => {
    console.error('the node that is asked what it serves did not answer in 30 s')
    process.exit(1)
  }, 30_000).unref()
  const world = realWorld({ log: { level: 'error', format: 'line' } })
  const node = await startNode(world, result.config)
  const ask = async (listener: string): Promise<Served> => {
    const address = node.listeners.find(({ name }) => name === listener)?.address
    if (address === undefined) throw new Error(`the node has no listener ${listener}`)
    const channel = await Channel.connect(world, address)
    await channel.negotiate()
    const { versions = new Map<number, VersionSpan>() } = channel
    channel.close()
    return versions
  }
  try {
    return { broker: await ask('PLAINTEXT'), controller: await ask('CONTROLLER') }
  } finally {
    await node.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function rangeText({ first, last }: VersionRange): string {
  return first === last ? `${first}` : `${first}–${last}`
}

/** A client is told Produce from version 0 on, as it infers features from that; versions that are gone are not served. */
function servedText(span: VersionSpan | undefined, exist: VersionRange): string {
  return span === undefined ? '–' : rangeText({ first: Math.max(span.min, exist.first), last: span.max })
}

function apiRows(broker: Served, controller: Served): string[] {
  return APIS.map(({ key, name, versions, lastVersion, flexibleFrom }) => {
    const unstable = lastVersion > versions.last ? ` (${lastVersion} not final)` : ''
    const flexible = Number.isFinite(flexibleFrom) ? `${flexibleFrom}+` : '–'
    const served = [servedText(broker.get(key), versions), servedText(controller.get(key), versions)]
    return `| ${[key, name, rangeText(versions) + unstable, flexible, ...served].join(' | ')} |`
  })
}

function recordRows(): string[] {
  const kinds: Partial<Record<SchemaKind, string>> = {
    metadata: 'metadata record',
    'coordinator-key': 'key',
    'coordinator-value': 'value',
    data: 'data',
  }
  return SCHEMAS.filter(({ kind }) => kinds[kind] !== undefined).map(
    ({ name, kind, apiKey, versions }) =>
      `| ${name} | ${kinds[kind]} | ${apiKey ?? '–'} | ${rangeText(parseVersions(versions))} |`,
  )
}

const { broker, controller } = await askNode()
const text = `# Compatibility with Apache Kafka 4.3

Made by \`node scripts/compatibility.ts\` from the tables in \`src/protocol\` and from what a node answers to ApiVersions;
do not edit.

## APIs

"Kafka" has the versions that Kafka 4.3 has; our codecs of all of them agree with Kafka's byte for byte. "Broker" and
"controller" are what the two listeners serve: ${broker.size} and ${controller.size} of ${APIS.length} APIs. What is not served is not advertised either, so
clients see it before they ask. What is left out within an API stands at the top of its file in \`src/broker/requests\`
and \`src/controller/requests\`.

| key | API | Kafka | flexible | broker | controller |
| ---: | --- | --- | --- | --- | --- |
${apiRows(broker, controller).join('\n')}

## Records and files

| schema | kind | type | versions |
| --- | --- | ---: | --- |
${recordRows().join('\n')}
`

if (process.argv.includes('--check')) {
  if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
    console.error('docs/compatibility.md is out of date: run node scripts/compatibility.ts')
    process.exitCode = 1
  }
} else writeFileSync(page, text)
