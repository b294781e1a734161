// Writes docs/compatibility.md from the tables: which APIs there are, in which versions, and which of them the broker
// serves. With --check it only says whether the page is up to date.
//
//   node scripts/compatibility.ts [--check]

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { APIS } from '#protocol/apis.ts'
import { parseVersions, type SchemaKind, type VersionRange } from '#protocol/schema.ts'
import { SCHEMAS } from '#protocol/schemas.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = `${root}docs/compatibility.md`
const requests = `${root}src/broker/requests/index.ts`

/** The versions that the broker serves, by API key; undefined while it has no table of them. */
async function servedVersions(): Promise<ReadonlyMap<number, VersionRange> | undefined> {
  if (!existsSync(requests)) return undefined
  const { SERVED_VERSIONS } = await import(requests)
  return SERVED_VERSIONS
}

function rangeText({ first, last }: VersionRange): string {
  return first === last ? `${first}` : `${first}–${last}`
}

function apiRows(served: ReadonlyMap<number, VersionRange> | undefined): string[] {
  return APIS.map(({ key, name, versions, lastVersion, flexibleFrom, listeners }) => {
    const unstable = lastVersion > versions.last ? ` (${lastVersion} not final)` : ''
    const flexible = Number.isFinite(flexibleFrom) ? `${flexibleFrom}+` : '–'
    const range = served?.get(key)
    const cells = [key, name, rangeText(versions) + unstable, flexible, listeners.join(', ')]
    if (served !== undefined) cells.push(range === undefined ? '–' : rangeText(range))
    return `| ${cells.join(' | ')} |`
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

const served = await servedVersions()
const column = served === undefined ? '' : ' served |'
const text = `# Compatibility with Apache Kafka 4.3

Made by \`node scripts/compatibility.ts\` from the tables in \`src/protocol\`; do not edit.

## APIs

The codecs of all versions below agree with Kafka's byte for byte.${served === undefined ? '' : ' "Served" is what a broker advertises and answers.'}

| key | API | versions | flexible | listeners |${column}
| ---: | --- | --- | --- | --- |${served === undefined ? '' : ' --- |'}
${apiRows(served).join('\n')}

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
} else {
  mkdirSync(`${root}docs`, { recursive: true })
  writeFileSync(page, text)
}
