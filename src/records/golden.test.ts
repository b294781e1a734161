/** Agreement with Kafka's own reader and writer: a checked-in sample always, the whole corpus where Java and the peer are. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import * as batch from './batch.ts'
import { BatchBuilder } from './builder.ts'
import { buildControlBatch, buildEndMarker } from './control.ts'
import { messageCompression, messageHasAppendTime, messageOffset, messageTimestamp } from './legacy.ts'
import { type ProducedOptions, validateProduced } from './produced.ts'
import { recordsOf } from './records.ts'

interface GoldenRecord {
  offset: string | number
  timestamp: string | number
  keyHex: string | null
  valueHex: string | null
  headers: [string, string | null][]
}
interface GoldenBatch {
  [field: string]: unknown
  records: GoldenRecord[]
}
interface GoldenLine {
  name: string
  hex: string
  decoded?: GoldenBatch & { batches?: GoldenBatch[] }
  produceError?: string
}

const SAMPLE = new URL('testdata/batches.jsonl.gz', import.meta.url)
const GOLDEN = fileURLToPath(new URL('../../../shared/peer/golden', import.meta.url))
const MAX = Number.MAX_SAFE_INTEGER

function golden(args: string[], input?: string): string | undefined {
  if (!existsSync(GOLDEN) || spawnSync('java', ['-version']).status !== 0) return undefined
  const run = spawnSync(GOLDEN, args, { input, maxBuffer: 256 * 1024 * 1024 })
  assert.equal(run.status, 0, run.stderr.toString())
  return run.stdout.toString()
}

function lines(text: string): GoldenLine[] {
  return text
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))
}

// `golden batches --string-longs`, without the batches over 2 KiB. To write it anew: RECORDS_SAMPLE=write node --test …
function sample(): GoldenLine[] {
  const full = process.env.RECORDS_SAMPLE === 'write' ? golden(['batches', '--string-longs']) : undefined
  if (full !== undefined) {
    const small = full.split('\n').filter(line => line !== '' && JSON.parse(line).hex.length <= 4096)
    writeFileSync(SAMPLE, gzipSync(`${small.join('\n')}\n`, { level: 9 }))
  }
  return lines(gunzipSync(readFileSync(SAMPLE)).toString())
}

const OPTIONS: ProducedOptions = {
  messageBytesMax: MAX,
  segmentBytes: MAX,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: MAX,
  timestampAfterMaxMs: MAX,
  compacted: false,
  now: 1_700_000_000_000,
  records: 'all',
}

/** Numbers that Kafka's samples drive beyond 2^53 on purpose: we refuse them rather than round. */
const BEYOND_EXACT = /timestamp-delta-over-32-bits|highest-offsets/
const PRODUCER_BEYOND_EXACT = /\/transactional$|control\/(commit|abort)-highest/

const STREAM_BROKEN = 'UNKNOWN_SERVER_ERROR'

function hex(value: Buffer | null): string | null {
  return value === null ? null : value.toString('hex')
}

function recordsAt(bytes: Buffer, at: number): GoldenRecord[] {
  return [...recordsOf(bytes, at)].map(record => ({
    offset: String(record.offset),
    timestamp: String(record.timestamp),
    keyHex: hex(record.key),
    valueHex: hex(record.value),
    headers: record.headers.map(header => [header.key, hex(header.value)]),
  }))
}

function header(bytes: Buffer, at: number): Record<string, unknown> {
  if (batch.magic(bytes, at) < 2) {
    const compression = messageCompression(bytes, at)
    const time = messageHasAppendTime(bytes, at) ? 'LogAppendTime' : 'CreateTime'
    return {
      messageSize: batch.sizeInBytes(bytes, at) - batch.LOG_OVERHEAD,
      magic: batch.magic(bytes, at),
      compression,
      timestampType: batch.magic(bytes, at) === 0 ? 'NoTimestampType' : time,
      lastOffset: String(messageOffset(bytes, at)),
      maxTimestamp: String(messageTimestamp(bytes, at)),
    }
  }
  const view = new batch.BatchView(bytes, at)
  return {
    baseOffset: String(view.baseOffset),
    batchLength: view.sizeInBytes - batch.LOG_OVERHEAD,
    partitionLeaderEpoch: view.leaderEpoch,
    magic: view.magic,
    crc: view.crc,
    attributes: view.attributes,
    compression: view.compression,
    timestampType: view.timestampType,
    isTransactional: view.isTransactional,
    isControl: view.isControl,
    deleteHorizonMs: view.hasDeleteHorizon ? String(view.baseTimestamp) : null,
    lastOffsetDelta: view.lastOffsetDelta,
    lastOffset: String(view.lastOffset),
    baseTimestamp: String(view.baseTimestamp),
    maxTimestamp: String(view.maxTimestamp),
    producerId: String(view.producerId),
    producerEpoch: view.producerEpoch,
    baseSequence: view.baseSequence,
    lastSequence: view.lastSequence,
    count: view.recordsCount,
  }
}

function rebuild(bytes: Buffer, at: number): Buffer {
  const view = new batch.BatchView(bytes, at)
  const builder = new BatchBuilder({
    baseOffset: view.baseOffset,
    leaderEpoch: view.leaderEpoch,
    logAppendTime: view.timestampType === 'LogAppendTime' ? view.maxTimestamp : undefined,
    producerId: view.producerId,
    producerEpoch: view.producerEpoch,
    baseSequence: view.baseSequence,
    transactional: view.isTransactional,
    control: view.isControl,
    deleteHorizonMs: view.hasDeleteHorizon ? view.baseTimestamp : undefined,
    lastOffset: view.lastOffset,
    maxTimestamp: view.maxTimestamp,
  })
  for (const { offset, timestamp, key, value, headers } of recordsOf(bytes, at)) {
    builder.appendAt(offset, timestamp, key, value, headers)
  }
  return builder.build()
}

function agree(corpus: readonly GoldenLine[]): void {
  let rebuilt = 0
  for (const line of corpus) {
    const bytes = Buffer.from(line.hex, 'hex')
    if (line.decoded === undefined) {
      const answer = validateProduced(bytes, 0, bytes.length, OPTIONS)?.code ?? 'NONE'
      // Kafka reads a damaged stream until it stumbles, over a record or the stream; we decompress it first.
      if (/\/flipped$/.test(line.name) && line.produceError === 'INVALID_RECORD' && answer === STREAM_BROKEN) continue
      assert.equal(answer, line.produceError, line.name)
      continue
    }
    if (BEYOND_EXACT.test(line.name)) {
      assert.match(batch.checkBatch(bytes, 0, bytes.length)?.message ?? '', /beyond/, line.name)
      continue
    }
    const wanted = line.decoded.batches ?? [line.decoded]
    const positions = [...batch.batchesOf(bytes)]
    assert.equal(positions.length, wanted.length, line.name)
    for (const [index, at] of positions.entries()) {
      const { records, ...fields } = wanted[index] ?? { records: [] }
      const found = header(bytes, at)
      if (PRODUCER_BEYOND_EXACT.test(line.name)) found.producerId = fields.producerId
      else assert.equal(batch.checkBatch(bytes, at, bytes.length), undefined, line.name)
      assert.equal(batch.checkCrc(bytes, at), undefined, line.name)
      for (const field of Object.keys(found)) assert.deepEqual(found[field], fields[field], `${line.name} ${field}`)
      const plain = records.map(({ offset, timestamp, keyHex, valueHex, headers }) => {
        return { offset, timestamp, keyHex, valueHex, headers }
      })
      assert.deepEqual(recordsAt(bytes, at), plain, line.name)
      // The times that records had before their batch got its own cannot be told from what a reader sees.
      const canRebuild = found.magic === 2 && found.compression === 'none' && found.timestampType === 'CreateTime'
      if (!canRebuild || PRODUCER_BEYOND_EXACT.test(line.name)) continue
      const size = batch.sizeInBytes(bytes, at)
      assert.equal(rebuild(bytes, at).toString('hex'), bytes.toString('hex', at, at + size), line.name)
      rebuilt++
    }
  }
  assert.ok(rebuilt >= 20, `only ${rebuilt} batches were built anew`)
}

test('the sample of batches is read, refused and built as by Kafka', () => agree(sample()))

describe('with Kafka beside us', {
  skip: golden(['list']) === undefined && '../shared/peer or java is missing',
}, () => {
  test('all batches are read, refused and built as by Kafka', () => {
    for (const seed of ['1', '2']) agree(lines(golden(['batches', '--string-longs', '--seed', seed]) ?? ''))
  })

  test('Kafka reads what we build', () => {
    const asked: { id: number; op: string; hex: string; stringLongs: boolean }[] = []
    const ours: Buffer[] = []
    const ask = (op: string, bytes: Buffer) => {
      asked.push({ id: ours.length, op, hex: bytes.toString('hex'), stringLongs: true })
      ours.push(bytes)
    }
    for (const compression of batch.COMPRESSION_NAMES) {
      for (const sizes of [[1], [0, 10, 100], [70_000, 5], [300_000], new Array<number>(3000).fill(40)]) {
        const builder = new BatchBuilder({ compression, producerId: 7, producerEpoch: 1, baseSequence: 2 ** 31 - 2 })
        for (const [index, size] of sizes.entries()) {
          const noise = Buffer.from(Array.from({ length: size }, (_, n) => (n * n * index + (n >> 3)) & 0xff))
          builder.append(1_700_000_000_000 - index, index % 3 === 0 ? null : Buffer.from(`key ${index}`), noise, [
            { key: 'ключ', value: index % 2 === 0 ? null : noise.subarray(0, 3) },
          ])
        }
        const built = builder.build()
        ask('records', built)
        ask('produce', built)
      }
    }
    const times = { baseOffset: 5, leaderEpoch: 3, timestamp: 1_700_000_000_000 }
    const marker = { producerId: 9, producerEpoch: 2, coordinatorEpoch: 4, timestamp: times.timestamp }
    ask('records', buildEndMarker({ type: 'commit', ...marker }, { baseOffset: 5, leaderEpoch: 3 }))
    ask('records', buildEndMarker({ type: 'abort', ...marker }))
    ask('records', buildControlBatch(times, [{ type: 'kraftVersion', value: Buffer.from('0000000100', 'hex') }]))
    const input = `${asked.map(question => JSON.stringify(question)).join('\n')}\n`
    const answers = (golden(['pipe'], input) ?? '').trim().split('\n')
    assert.equal(answers.length, asked.length)
    for (const text of answers) {
      const answer: { id: number; error?: string; produceError?: string; decoded?: GoldenBatch } = JSON.parse(text)
      const bytes = ours[answer.id] ?? Buffer.alloc(0)
      assert.equal(answer.error, undefined)
      if (asked[answer.id]?.op === 'produce') {
        assert.equal(answer.produceError, 'NONE')
        continue
      }
      const wanted = answer.decoded?.records.map(({ offset, timestamp, keyHex, valueHex, headers }) => {
        return { offset, timestamp, keyHex, valueHex, headers }
      })
      assert.deepEqual(recordsAt(bytes, 0), wanted)
    }
    const commit = JSON.parse(answers.at(-3) ?? '')
    assert.match(JSON.stringify(commit.decoded.records[0].control), /COMMIT/i)
  })
})
