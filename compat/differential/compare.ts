/** Compares two answers field by field, as their table says, after putting aside what two servers must differ in. */
import { ZERO_UUID } from '#base/uuid.ts'
import { errorOf } from '#protocol/errors.ts'
import { type Field, type Fields, includesVersion, type Schema } from '#protocol/schema.ts'
import * as batch from '#records/batch.ts'

import type { Same } from './same.ts'

export interface Difference {
  /** Such as `topics[].partitions[].errorCode`; an entry of configurations has its name in the brackets. */
  readonly path: string
  readonly left: string
  readonly right: string
}

export interface Sides {
  readonly same: Same
  /** Texts that name a server itself (its folder, its port), replaced wherever they occur. */
  readonly own: readonly [readonly (readonly [string, string])[], readonly (readonly [string, string])[]]
}

type Struct = Readonly<Record<string, unknown>>

/** Values that each server chooses, by field: equal wherever one of them is met again. */
const CHOSEN: Readonly<Record<string, string>> = {
  memberId: 'member',
  leader: 'member',
  sessionId: 'session',
  producerId: 'producer',
  clusterId: 'cluster',
}
/** Values that only have to be of the same sign. */
const MEASURED = new Set(['totalBytes', 'usableBytes', 'finalizedFeaturesEpoch', 'throttleTimeMs'])
const MEASURED_IN: Readonly<Record<string, ReadonlySet<string>>> = {
  DescribeLogDirs: new Set(['partitionSize']),
  DescribeQuorum: new Set([
    'highWatermark',
    'logEndOffset',
    'leaderEpoch',
    'lastFetchTimestamp',
    'lastCaughtUpTimestamp',
  ]),
}
/** Texts for people: both have one, or none. */
const PROSE = new Set(['errorMessage', 'batchIndexErrorMessage', 'documentation'])
/** What tells the elements of an array apart. */
const IDENTITY = [
  'name', 'topicName', 'topic', 'topicId', 'resourceType', 'resourceName', 'groupId', 'key', 'partitionIndex',
  'partition', 'index', 'apiKey', 'logDir', 'memberId', 'clientId', 'memberMetadata', 'metadata', 'producerId',
] // biome-ignore format: a list
const NAMED = new Set(['configs', 'synonyms', 'supportedFeatures', 'finalizedFeatures', 'apiKeys', 'configResources'])
const RECENT_MS = 3_600_000

export class Comparison {
  readonly #schema: Schema
  readonly #api: string
  readonly #version: number
  readonly #sides: Sides
  readonly differences: Difference[] = []

  constructor(api: string, schema: Schema, version: number, sides: Sides) {
    this.#api = api
    this.#schema = schema
    this.#version = version
    this.#sides = sides
  }

  run(left: object, right: object): Difference[] {
    this.#struct(this.#schema.fields, left as Struct, right as Struct, '')
    return this.differences
  }

  #differ(path: string, left: unknown, right: unknown): void {
    this.differences.push({ path, left: brief(left), right: brief(right) })
  }

  #struct(fields: Fields, left: Struct, right: Struct, path: string): void {
    for (const [name, field] of Object.entries(fields)) {
      if (!includesVersion(field.versions, this.#version)) continue
      this.#value(name, field, left[name], right[name], path === '' ? name : `${path}.${name}`)
    }
    const tags = [left, right].map(side => JSON.stringify(side.unknownTags ?? []))
    if (tags[0] !== tags[1]) this.#differ(`${path}.unknownTags`, tags[0], tags[1])
  }

  #value(name: string, field: Field, left: unknown, right: unknown, path: string): void {
    if (left === null || right === null || left === undefined || right === undefined) {
      if (left !== right) this.#differ(path, nullOr(name, left), nullOr(name, right))
    } else if (field.type === 'array') this.#array(name, field, left as unknown[], right as unknown[], path)
    else if (field.type === 'struct') this.#struct(field.fields as Fields, left as Struct, right as Struct, path)
    else if (field.type === 'records') this.#records(left as Buffer, right as Buffer, path)
    else if (field.type === 'bytes') {
      if (!(left as Buffer).equals(right as Buffer)) this.#differ(path, hex(left as Buffer), hex(right as Buffer))
    } else this.#primitive(name, field, left as Primitive, right as Primitive, path)
  }

  #primitive(name: string, field: Field, left: Primitive, right: Primitive, path: string): void {
    if (PROSE.has(name)) return
    if (MEASURED.has(name) || MEASURED_IN[this.#api]?.has(name)) {
      if (Math.sign(Number(left)) !== Math.sign(Number(right))) this.#differ(path, left, right)
      return
    }
    const kind = field.type === 'uuid' ? 'uuid' : CHOSEN[name]
    if (kind !== undefined) {
      const free = isChosen(left) && isChosen(right)
      if (!free && left === right) return
      if (!free || shape(left) !== shape(right)) this.#differ(path, shape(left), shape(right))
      else if (!this.#sides.same.accepts(kind, left, right)) this.#differ(path, 'one that was met before', 'another')
      return
    }
    if (name.endsWith('errorCode') || name.endsWith('ErrorCode')) {
      if (left !== right) this.#differ(path, errorOf(left as number).name, errorOf(right as number).name)
      return
    }
    const l = this.#plain(name, left, 0)
    const r = this.#plain(name, right, 1)
    if (l !== r) this.#differ(path, l, r)
  }

  #plain(name: string, value: Primitive, side: 0 | 1): Primitive {
    if (typeof value === 'string') {
      let text = value
      for (const [own, word] of this.#sides.own[side]) text = withWord(text, own, word)
      return text
    }
    if (name === 'port') return this.#sides.own[side].some(([own]) => own === String(value)) ? 'its port' : value
    if (/timestamp|TimeMs$/i.test(name) && Math.abs(Number(value) - Date.now()) < RECENT_MS) return 'now'
    return value
  }

  #array(name: string, field: Field, left: unknown[], right: unknown[], path: string): void {
    if (field.fields === undefined) {
      const of = (side: unknown[]): string => JSON.stringify([...side].sort())
      if (of(left) !== of(right)) this.#differ(path, of(left), of(right))
      return
    }
    const lefts = this.#keyed(left as Struct[], 0)
    const rights = this.#keyed(right as Struct[], 1)
    for (const [key, struct] of lefts) {
      const at = `${path}[${NAMED.has(name) ? labelOf(struct) : again(key)}]`
      const other = rights.get(key)
      rights.delete(key)
      if (other === undefined) this.#differ(at, here(struct), 'absent')
      else this.#struct(field.fields, struct, other, at)
    }
    for (const [key, struct] of rights) {
      this.#differ(`${path}[${NAMED.has(name) ? labelOf(struct) : again(key)}]`, 'absent', here(struct))
    }
  }

  /** By what tells them apart; equal ones are numbered in their order. */
  #keyed(structs: readonly Struct[], side: 0 | 1): Map<string, Struct> {
    const keyed = new Map<string, Struct>()
    for (const struct of structs) {
      const named = IDENTITY.filter(name => name in struct && (name !== 'topicId' || !struct.name))
      const parts = named.map(name => this.#identity(name, struct[name], side))
      const key = parts.join('\u0000')
      let nth = 0
      while (keyed.has(`${key}\u0000${nth}`)) nth++
      keyed.set(`${key}\u0000${nth}`, struct)
    }
    return keyed
  }

  #identity(name: string, value: unknown, side: 0 | 1): string {
    const { same, own } = this.#sides
    if (name === 'topicId') return value === ZERO_UUID ? '' : same.nameOf('uuid', side, value)
    // Members of a group are told apart by what they say of themselves: their ids may not have been met yet.
    if (name === 'memberId') return ''
    if (name === 'producerId') return same.nameOf('producer', side, value)
    if (name === 'logDir') return ''
    if (Buffer.isBuffer(value)) return value.toString('base64')
    return own[side].reduce((text, [theirs, word]) => withWord(text, theirs, word), String(value))
  }

  #records(left: Buffer, right: Buffer, path: string): void {
    if (left.equals(right)) return
    const [ls, rs] = [describeBatches(left), describeBatches(right)]
    if (ls.length !== rs.length) this.#differ(`${path}.count`, ls.length, rs.length)
    for (let i = 0; i < Math.min(ls.length, rs.length); i++) {
      const [l, r] = [ls[i] as Described, rs[i] as Described]
      for (const field of Object.keys(l)) {
        if (field === 'producerId' && this.#sides.same.accepts('producer', l[field], r[field])) continue
        if (l[field] !== r[field]) this.#differ(`${path}[].${field}`, l[field], r[field])
      }
    }
  }
}

type Primitive = string | number | boolean | bigint
type Described = Record<string, Primitive>

/** The CRC follows from the rest, and is compared where nothing in the batch is the server's own. */
function describeBatches(bytes: Buffer): Described[] {
  const described: Described[] = []
  for (const at of batch.batchesOf(bytes)) {
    const size = batch.wholeBatchSize(bytes, at, bytes.length)
    if (batch.magic(bytes, at) < 2) {
      described.push({ magic: batch.magic(bytes, at), bytes: hex(bytes.subarray(at, at + size)) })
      continue
    }
    const appendTime = batch.timestampType(bytes, at) === 'LogAppendTime'
    described.push({
      baseOffset: batch.baseOffset(bytes, at),
      size,
      leaderEpoch: batch.leaderEpoch(bytes, at),
      attributes: batch.attributes(bytes, at),
      lastOffsetDelta: batch.lastOffsetDelta(bytes, at),
      baseTimestamp: bytes.readBigInt64BE(at + batch.BASE_TIMESTAMP_AT),
      maxTimestamp: appendTime ? 'append time' : bytes.readBigInt64BE(at + batch.MAX_TIMESTAMP_AT),
      producerId: batch.producerId(bytes, at),
      producerEpoch: batch.producerEpoch(bytes, at),
      baseSequence: batch.baseSequence(bytes, at),
      count: batch.recordsCount(bytes, at),
      crc: batch.checkCrc(bytes, at) === undefined ? 'right' : 'wrong',
      records: hex(bytes.subarray(at + batch.RECORDS_AT, at + size)),
    })
  }
  return described
}

/** Whether a server made it up; 0, -1, '' and what clients send for none are not. */
function isChosen(value: Primitive): boolean {
  return value !== '' && value !== ZERO_UUID && Number(value) !== -1 && value !== 0
}

/** What kind of id it is: a made-up part replaced by its form. */
function shape(value: Primitive): Primitive {
  if (typeof value === 'number') return isChosen(value) ? 'a number' : value
  if (typeof value !== 'string' || value === '' || value === ZERO_UUID) return value
  const text = value.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/i, '<uuid>')
  return /^[\w-]{22}$/.test(text) ? '<id>' : text
}

/** A number is replaced where it stands by itself, not among the digits of a larger one. */
function withWord(text: string, own: string, word: string): string {
  return /^\d+$/.test(own)
    ? text.replaceAll(new RegExp(`(?<!\\d)${own}(?!\\d)`, 'g'), word)
    : text.replaceAll(own, word)
}

const nullOr = (name: string, value: unknown): unknown => {
  if (value === null || value === undefined) return null
  return PROSE.has(name) ? 'a text' : here(value)
}
const here = (value: unknown): string => {
  const text = JSON.stringify(value, (_, field) => (typeof field === 'bigint' ? String(field) : field)) ?? 'undefined'
  return typeof value === 'object' ? 'present' : text
}
const labelOf = (struct: Struct): string => String(struct.name ?? struct.apiKey ?? struct.resourceName ?? '')
/** One that its array holds already is told as such. */
const again = (key: string): string => (key.endsWith('\u00000') ? '' : 'again')
const hex = (bytes: Buffer): string => {
  const text = bytes.toString('hex')
  return text.length > 80 ? `${text.slice(0, 80)}… ${bytes.length} bytes` : text
}
const brief = (value: unknown): string => {
  const text = String(value)
  return text.length > 160 ? `${text.slice(0, 160)}…` : text
}
