// Writes src/protocol/testdata/golden.jsonl.gz: a compact sample of messages as Kafka's own classes encode them, every
// schema and version at least once. Needs the oracle (../shared/peer).
//
//   node scripts/protocol-sample.ts [seed]

import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { parseVersions } from '#protocol/schema.ts'
import { schemaByName } from '#protocol/schemas.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const seed = process.argv[2] ?? '3'

const lines = execFileSync(
  `${root}../shared/peer/golden`,
  ['messages', '--seed', seed, '--per-version', '3', '--string-longs'],
  { encoding: 'utf8', maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'inherit'] },
)

const sample: string[] = []
for (const line of lines.split('\n')) {
  if (line === '') continue
  const { name, version, shape, json, unknownTags, hex, framed } = JSON.parse(line)
  const { last } = parseVersions(schemaByName(name)?.versions)
  // Long strings and unknown tags are the same in every version, and large.
  if (shape === 'mixed' && version < last) continue
  const prefix = shape === 'full' ? framed?.slice(0, framed.length - hex.length) : undefined
  sample.push(JSON.stringify({ name, version, json, unknownTags, hex, framed: prefix && prefix + hex }))
}
const packed = gzipSync(`${sample.join('\n')}\n`, { level: 9 })
writeFileSync(`${root}src/protocol/testdata/golden.jsonl.gz`, packed)
console.log(`${sample.length} messages, ${packed.length} bytes`)
