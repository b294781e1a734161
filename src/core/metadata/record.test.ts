import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { DecodeError } from '#base/bytes.ts'
import { batchesOf, isControl } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { recordsOf } from '#records/records.ts'
import { MetadataImage } from './image.ts'
import { decodeMetadataRecord, encodeMetadataRecord, type MetadataRecord, metadataRecord } from './record.ts'

interface Dumped {
  readonly offset: number
  readonly type: string
  readonly version: number
  readonly data: Record<string, unknown>
}

/** The metadata log of a Kafka 4.3.1 node, and what kafka-dump-log says of it. */
const segment = readFileSync(new URL('testdata/kafka-4.3.1.segment', import.meta.url))
const dump: Dumped[] = readFileSync(new URL('testdata/kafka-4.3.1.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map(line => JSON.parse(line))

function valuesOf(log: Buffer): Map<number, Buffer> {
  const values = new Map<number, Buffer>()
  for (const at of batchesOf(log)) {
    if (isControl(log, at)) continue
    for (const record of recordsOf(log, at)) if (record.value !== null) values.set(record.offset, record.value)
  }
  return values
}

function kafkaType(record: MetadataRecord): string {
  return `${record.type.replace(/(?!^)[A-Z]/g, letter => `_${letter}`).toUpperCase()}_RECORD`
}

/** A decoded value in the form of Kafka's JSON: bytes as base64. */
function asJson(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, field) =>
      field?.type === 'Buffer' ? Buffer.from(field.data).toString('base64') : field,
    ),
  )
}

test('every record of a Kafka log is read as Kafka reads it, and written back as it was', () => {
  const values = valuesOf(segment)
  assert.equal(values.size, dump.length)
  for (const { offset, type, version, data } of dump) {
    const bytes = values.get(offset)
    assert.ok(bytes !== undefined)
    const record = decodeMetadataRecord(bytes)
    assert.ok(record.type !== 'Unknown')
    assert.equal(kafkaType(record), type)
    assert.equal(record.version, version)
    const read = asJson(record.value) as Record<string, unknown>
    for (const [name, value] of Object.entries(data)) assert.deepEqual(read[name], value, `${offset} ${name}`)
    assert.deepEqual(encodeMetadataRecord(record), bytes)
  }
})

test("a Kafka log folds into the image that Kafka's node had", () => {
  const image = new MetadataImage()
  for (const [offset, bytes] of valuesOf(segment)) image.apply(decodeMetadataRecord(bytes), offset, 1)
  assert.equal(image.skipped, 0)
  assert.equal(image.metadataVersion, 30)
  assert.equal(image.feature('transaction.version'), 2)
  assert.deepEqual([...image.topicIds.keys()], ['a.b'])
  const topic = image.topicByName('a.b')
  assert.equal(topic?.partitions.length, 3)
  assert.deepEqual(
    { ...topic?.partitions[0], directories: [] },
    {
      replicas: [1],
      directories: [],
      isr: [],
      removingReplicas: [],
      addingReplicas: [],
      eligibleLeaderReplicas: [1],
      lastKnownElr: [1],
      leader: -1,
      leaderRecoveryState: 0,
      leaderEpoch: 1,
      partitionEpoch: 1,
    },
  )
  assert.deepEqual(
    [...image.config(2, 'a.b')],
    [
      ['cleanup.policy', 'compact,delete'],
      ['min.insync.replicas', '2'],
    ],
  )
  assert.equal(image.config(4, '').get('log.retention.ms'), '77777')
  assert.deepEqual(
    { ...image.broker(1), features: 0, logDirs: 0, incarnationId: 0 },
    {
      id: 1,
      epoch: 11,
      incarnationId: 0,
      endPoints: [{ name: 'PLAINTEXT', host: '127.0.0.1', port: 31920, securityProtocol: 0 }],
      features: 0,
      rack: 'rack1',
      fenced: true,
      inControlledShutdown: true,
      logDirs: 0,
      cordonedLogDirs: [],
    },
  )
  assert.deepEqual(
    [...image.quotas()].map(({ values }) => [...values]),
    [[['consumer_byte_rate', 10]]],
  )
  assert.equal(image.scramCredential('bob', 1)?.iterations, 4096)
})

test('a type or version of a later release is Unknown, and counted by the image', () => {
  const later = decodeMetadataRecord(Buffer.from([1, 99, 0, 0]))
  assert.deepEqual(later, { type: 'Unknown', apiKey: 99, version: 0 })
  assert.deepEqual(decodeMetadataRecord(Buffer.from([1, 2, 9, 0])), { type: 'Unknown', apiKey: 2, version: 9 })
  const image = new MetadataImage()
  image.apply(later, 0, 0)
  assert.equal(image.skipped, 1)
})

test('another frame and a value that is cut short are DecodeErrors', () => {
  assert.throws(() => decodeMetadataRecord(Buffer.from([0, 2, 0])), DecodeError)
  const whole = encodeMetadataRecord(metadataRecord('FeatureLevel', 30, { name: 'metadata.version', featureLevel: 30 }))
  for (let size = 0; size < whole.length; size++) {
    assert.throws(() => decodeMetadataRecord(whole.subarray(0, size)), DecodeError)
  }
  assert.throws(() => decodeMetadataRecord(Buffer.concat([whole, Buffer.from([0])])), DecodeError)
})

const tool = fileURLToPath(new URL('../../../../shared/peer/tool', import.meta.url))

function oracleMissing(): string | false {
  if (!existsSync(tool)) return 'the oracle ../shared/peer/tool is not there'
  try {
    execFileSync('java', ['-version'], { stdio: 'ignore' })
    return false
  } catch {
    return 'java is not installed'
  }
}

test("kafka-dump-log reads our metadata log with Kafka's decoder", { skip: oracleMissing() }, () => {
  const image = new MetadataImage()
  for (const [offset, bytes] of valuesOf(segment)) image.apply(decodeMetadataRecord(bytes), offset, 1)
  const records = [...image.snapshotRecords()]
  records.push(
    metadataRecord('PartitionChange', 30, {
      topicId: image.topicIds.get('a.b') ?? '',
      partitionId: 0,
      leader: 1,
      isr: [1],
    }),
    metadataRecord('ProducerIds', 30, { brokerId: 1, brokerEpoch: 11, nextProducerId: 1000 }),
    metadataRecord('NoOp', 30, {}),
  )
  const builder = new BatchBuilder({ baseOffset: 0, leaderEpoch: 1 })
  for (const record of records) builder.append(1_700_000_000_000, null, encodeMetadataRecord(record))
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-metadata-'))
  try {
    const path = join(folder, '00000000000000000000.log')
    writeFileSync(path, builder.build())
    const output = execFileSync(tool, ['kafka-dump-log', '--cluster-metadata-decoder', '--files', path], {
      encoding: 'utf8',
    })
    const payloads = [...output.matchAll(/payload: (\{.*\})$/gm)].map(match => JSON.parse(match[1] as string) as Dumped)
    assert.deepEqual(
      payloads.map(({ type, version }) => `${type} ${version}`),
      records.map(record => `${kafkaType(record)} ${record.version}`),
    )
    for (const [index, { data }] of payloads.entries()) {
      const written = asJson(records[index]?.value) as Record<string, unknown>
      for (const [name, value] of Object.entries(data)) assert.deepEqual(written[name], value, name)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
