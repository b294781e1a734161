/** Damaged bytes end in a value or a typed error. RECORDS_FUZZ sets how many batches are damaged. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { DecodeError } from '#base/bytes.ts'
import { SeededRandom } from '#base/random.ts'
import * as batch from './batch.ts'
import { validateProduced } from './produced.ts'
import { openRecords } from './records.ts'

const ROUNDS = Number(process.env.RECORDS_FUZZ ?? 30_000)
const DECOMPRESSED_BYTES_MAX = 1024 * 1024

const PRODUCED = {
  messageBytesMax: DECOMPRESSED_BYTES_MAX,
  segmentBytes: DECOMPRESSED_BYTES_MAX,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: 1000,
  timestampAfterMaxMs: 1000,
  compacted: true,
  now: 1_700_000_000_000,
  records: 'all',
  decompressedBytesMax: DECOMPRESSED_BYTES_MAX,
} as const

function readAll(bytes: Buffer): void {
  try {
    for (const at of batch.batchesOf(bytes)) {
      batch.checkCrc(bytes, at)
      const wrong = batch.checkBatch(bytes, at, bytes.length)
      if (wrong !== undefined) assert.equal(typeof wrong.code, 'string')
      const records = openRecords(bytes, at, { decompressedBytesMax: DECOMPRESSED_BYTES_MAX })
      while (records.next()) {
        const { offset, timestamp, key, value, headers } = records.record()
        assert.ok(Number.isSafeInteger(offset) && Number.isSafeInteger(timestamp))
        assert.ok((key?.length ?? 0) + (value?.length ?? 0) + headers.length <= DECOMPRESSED_BYTES_MAX)
      }
    }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
  }
}

/** Without asking first whether a whole batch is there. */
function readFirst(bytes: Buffer): void {
  try {
    openRecords(bytes, 0, { decompressedBytesMax: DECOMPRESSED_BYTES_MAX })
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
  }
}

function sealed(bytes: Buffer): Buffer {
  if (batch.wholeBatchSize(bytes, 0, bytes.length) >= batch.BATCH_OVERHEAD && batch.magic(bytes, 0) === 2) {
    bytes.writeUInt32BE(batch.computeCrc(bytes, 0), batch.CRC_AT)
  }
  return bytes
}

test('damaged and random batches end in a value or a typed error', () => {
  const seed = Number(process.env.RECORDS_SEED ?? 1)
  const random = new SeededRandom(seed)
  const sample = gunzipSync(readFileSync(new URL('testdata/batches.jsonl.gz', import.meta.url)))
  const corpus = sample
    .toString()
    .split('\n')
    .filter(line => line !== '')
    .map(line => Buffer.from(JSON.parse(line).hex, 'hex'))
  for (let round = 0; round < ROUNDS; round++) {
    let bytes = Buffer.from(corpus[random.below(corpus.length)] ?? [])
    const kind = random.below(8)
    if (kind === 0) bytes = bytes.subarray(0, random.below(bytes.length + 1))
    if (kind === 1) for (let at = 17; at < bytes.length; at++) bytes[at] = random.below(256)
    for (let left = random.below(5); left > 0 && bytes.length > 0; left--) {
      const at = random.below(bytes.length)
      bytes[at] = random.below(2) === 0 ? random.below(256) : ([0, 1, 0x7f, 0x80, 0xff][random.below(5)] ?? 0)
    }
    const hex = bytes.toString('hex')
    try {
      readAll(bytes)
      if (kind === 0) readFirst(bytes)
      validateProduced(sealed(bytes), 0, bytes.length, PRODUCED)
    } catch (error) {
      assert.fail(`seed ${seed} round ${round}: ${hex}: ${error instanceof Error ? error.stack : error}`)
    }
  }
})
