import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { encodeToBuffer, UnsupportedFieldError } from './codec.ts'
import { disagreement, type GoldenMessage, messageFromJson } from './golden.ts'
import {
  decodeVersioned,
  decodeWhole,
  encodeCoordinatorKey,
  encodeMetadataRecord,
  encodeVersioned,
  METADATA_RECORDS,
  openCoordinatorKey,
  openMetadataRecord,
  TRANSACTION_RECORDS,
} from './records/framing.ts'
import { parseVersions } from './schema.ts'
import { SCHEMAS, schemaByName } from './schemas.ts'

const golden = new URL('../../../shared/peer/golden', import.meta.url).pathname

function missingOracle(): string | false {
  if (!existsSync(golden)) return 'the oracle ../shared/peer/golden is not there'
  try {
    execFileSync('java', ['-version'], { stdio: 'ignore' })
    return false
  } catch {
    return 'java is not there'
  }
}

const skip = missingOracle()

function runGolden(...args: string[]): string {
  return execFileSync(golden, args, { encoding: 'utf8', maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'ignore'] })
}

function parseLines(text: string): GoldenMessage[] {
  return text
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))
}

function readSample(): GoldenMessage[] {
  return parseLines(gunzipSync(readFileSync(new URL('testdata/golden.jsonl.gz', import.meta.url))).toString())
}

function assertAgreement(messages: readonly GoldenMessage[]): void {
  const met = new Set<string>()
  for (const message of messages) {
    met.add(`${message.name} ${message.version}`)
    const different = disagreement(message)
    assert.equal(different, undefined, `${message.name} ${message.version}: ${different}\n${message.hex}`)
  }
  for (const { name, versions } of SCHEMAS) {
    const { first, last } = parseVersions(versions)
    for (let version = first; version <= last; version++) assert.ok(met.has(`${name} ${version}`), `${name} ${version}`)
  }
}

test('every schema and version agrees with the bytes of Kafka in the checked-in sample', () => {
  assertAgreement(readSample())
})

test('every schema and version agrees with what Kafka generates now', { skip }, () => {
  const seed = Number(process.env.GOLDEN_SEED ?? 1)
  console.log(`golden messages --seed ${seed}`)
  assertAgreement(parseLines(runGolden('messages', '--seed', String(seed), '--string-longs')))
})

test('records are framed as in their topics', () => {
  let framedRecords = 0
  for (const message of readSample()) {
    if (message.framed === undefined) continue
    framedRecords++
    const schema = schemaByName(message.name)
    assert.ok(schema)
    const { version, framed } = message
    const bytes = Buffer.from(framed, 'hex')
    const value = messageFromJson(schema, message)
    if (schema.kind === 'metadata') {
      assert.equal(encodeMetadataRecord(schema, version, value).toString('hex'), framed)
    } else if (schema.kind === 'coordinator-key') {
      assert.equal(encodeCoordinatorKey(schema, value).toString('hex'), framed)
      const { type, message } = openCoordinatorKey(bytes)
      assert.equal(type, schema.apiKey)
      assert.deepEqual({ ...decodeWhole(schema, 0, message) }, value)
    } else {
      assert.equal(encodeVersioned(schema, version, value).toString('hex'), framed)
    }
  }
  assert.ok(framedRecords > 80)
})

test('framed records come back', () => {
  const { RegisterBrokerRecord } = METADATA_RECORDS
  const registered = { brokerId: 4, brokerEpoch: 9, logDirs: ['AAAAAAAAAAAAAAAAAAAAAQ'] }
  const { apiKey, version, message } = openMetadataRecord(encodeMetadataRecord(RegisterBrokerRecord, 3, registered))
  assert.deepEqual([apiKey, version], [RegisterBrokerRecord.apiKey, 3])
  const record = decodeWhole(RegisterBrokerRecord, version, message)
  assert.deepEqual([record.brokerId, record.fenced], [4, true])
  const { value } = TRANSACTION_RECORDS.TransactionLog
  const bytes = encodeVersioned(value, 1, { producerId: 7, nextProducerEpoch: 2 })
  const transaction = decodeVersioned(value, bytes)
  assert.deepEqual([transaction.producerId, transaction.nextProducerEpoch], [7, 2])
  assert.throws(() => decodeVersioned(value, Buffer.concat([bytes, Buffer.alloc(1)])), /1 bytes behind/)
  assert.throws(() => openMetadataRecord(Buffer.from('02000000', 'hex')), /frame version 2/)
})

/** Values that a version cannot carry: whether Kafka refuses to encode them, and whether we do. */
const UNSUPPORTED: readonly [name: string, version: number, json: { [name: string]: unknown }, field?: string][] = [
  ['HeartbeatRequest', 0, { groupInstanceId: 'i' }, 'groupInstanceId'],
  ['HeartbeatRequest', 3, { groupInstanceId: 'i' }],
  ['HeartbeatRequest', 0, { groupInstanceId: null }],
  ['FindCoordinatorRequest', 0, { keyType: 1 }, 'keyType'],
  ['FindCoordinatorRequest', 4, { key: 'k', coordinatorKeys: ['k'] }, 'key'],
  ['InitProducerIdRequest', 2, { producerId: 5 }, 'producerId'],
  ['CreateTopicsRequest', 2, { validateOnly: true }],
  ['MetadataRequest', 3, { allowAutoTopicCreation: false }, 'allowAutoTopicCreation'],
  ['MetadataRequest', 0, { topics: null }, 'topics'],
  ['FetchRequest', 4, { sessionId: 7 }],
  ['FetchRequest', 11, { replicaState: { replicaId: 3, replicaEpoch: 1 } }, 'replicaState'],
]

/** Kafka's JSON needs every field of the version. */
function sampleJson(name: string, version: number): object | undefined {
  return readSample().find(message => message.name === name && message.version === version)?.json
}

test('values that a version cannot carry are refused, where they are not ignorable', () => {
  for (const [name, version, json, field] of UNSUPPORTED) {
    const schema = schemaByName(name)
    assert.ok(schema)
    const run = () => encodeToBuffer(schema, version, json)
    if (field === undefined) assert.doesNotThrow(run, `${name} ${version}`)
    else {
      assert.throws(run, error => {
        assert.ok(error instanceof UnsupportedFieldError)
        assert.deepEqual([error.schema, error.field, error.version], [name, field, version])
        return true
      })
    }
  }
})

test('Kafka refuses the same values', { skip }, () => {
  const questions = UNSUPPORTED.map(([name, version, json]) =>
    JSON.stringify({ op: 'encode', name, version, json: { ...sampleJson(name, version), ...json } }),
  )
  const answers = execFileSync(golden, ['pipe'], { input: questions.join('\n'), encoding: 'utf8' })
    .trim()
    .split('\n')
  for (const [index, [name, version, , field]] of UNSUPPORTED.entries()) {
    const { hex, error } = JSON.parse(answers[index] ?? '{}')
    if (field === undefined) assert.ok(hex, `${name} ${version}: ${error}`)
    else assert.match(error, new RegExp(`non-default ${field} |NullPointer|Can't read version`), `${name} ${version}`)
  }
})
