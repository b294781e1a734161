import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { fuzzFrames, type Seedling } from './fuzz.ts'
import type { GoldenMessage } from './golden.ts'
import { schemaByName } from './schemas.ts'

/** FUZZ_FRAMES sets how many; a full run takes a million and more. */
const frames = Number(process.env.FUZZ_FRAMES ?? 50_000)
const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 1e9))

function readSeedlings(): Seedling[] {
  const text = gunzipSync(readFileSync(new URL('testdata/golden.jsonl.gz', import.meta.url))).toString()
  return text
    .trim()
    .split('\n')
    .map(line => {
      const { name, version, hex }: GoldenMessage = JSON.parse(line)
      const schema = schemaByName(name)
      assert.ok(schema)
      return { schema, version, bytes: Buffer.from(hex, 'hex') }
    })
}

test(`${frames} mutated frames end in a value or a DecodeError`, () => {
  const seedlings = readSeedlings()
  const started = performance.now()
  const { decoded, refused } = fuzzFrames(seedlings, frames, seed)
  const seconds = (performance.now() - started) / 1000
  console.log(`seed ${seed}: ${decoded} decoded, ${refused} refused, ${Math.round(frames / seconds)} frames/s`)
  assert.equal(decoded + refused, frames)
  assert.ok(decoded > frames / 50 && refused > frames / 50, 'the mutations no longer reach both ends')
})
