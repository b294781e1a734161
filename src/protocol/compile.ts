import { assert } from '#base/assert.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { type Field, type Fields, INT64_MAX, includesVersion, type PrimitiveType, type Schema } from './schema.ts'
import * as wire from './wire.ts'

/**
 * Source text of codecs for one version of one schema. Every struct of the table becomes one function `name(r)` or
 * `name(w, v)`, so that the code that runs has no loop over fields and no question about versions left in it.
 * In the text, `wire` is wire.ts and the locals of fields start with `$`.
 */
interface Target {
  readonly schema: Schema
  readonly version: number
  readonly integers: Integers
  /**
   * Every struct that holds an array is a generator, which yields between elements when a turn is over; `t` is its
   * wire.Turn. What holds none is read and written in one go.
   */
  readonly inTurns: boolean
  /** The functions of the structs met so far. */
  readonly functions: string[]
}

/** What becomes of a 64-bit integer that no number holds: an error, a bigint, or the edge of what a number holds. */
export type Integers = 'safe' | 'exact' | 'edge'
export type Decoder = (reader: unknown) => unknown
export type Encoder = (writer: unknown, value: unknown) => void
/** A codec that lets others go on between its turns; one whose message holds no array is done at once. */
export type DecoderInTurns = (reader: unknown, turn: unknown) => Generator<undefined, unknown>
export type EncoderInTurns = (writer: unknown, value: unknown, turn: unknown) => Generator<undefined, void>

export function compileDecoder(schema: Schema, version: number, integers: Integers): Decoder {
  const target: Target = { schema, version, integers, inTurns: false, functions: [] }
  const entry = structDecoder(target, schema.fields, schema.name)
  return evaluate<Decoder>(target, entry, `decode.${integers}`)
}

export function compileDecoderInTurns(schema: Schema, version: number, integers: Integers): DecoderInTurns {
  const target: Target = { schema, version, integers, inTurns: true, functions: [] }
  const entry = structDecoder(target, schema.fields, schema.name)
  const call = `${holdsArray(target, schema.fields) ? 'yield* ' : ''}${entry}(r, t)`
  return evaluate<DecoderInTurns>(target, `function* (r, t) { return ${call} }`, `decode.${integers}.turns`)
}

export function compileEncoder(schema: Schema, version: number): Encoder {
  const target: Target = { schema, version, integers: 'safe', inTurns: false, functions: [] }
  const entry = structEncoder(target, schema.fields, schema.name)
  return evaluate<Encoder>(target, entry, 'encode')
}

export function compileEncoderInTurns(schema: Schema, version: number): EncoderInTurns {
  const target: Target = { schema, version, integers: 'safe', inTurns: true, functions: [] }
  const entry = structEncoder(target, schema.fields, schema.name)
  const call = `${holdsArray(target, schema.fields) ? 'yield* ' : ''}${entry}(w, v, t)`
  return evaluate<EncoderInTurns>(target, `function* (w, v, t) { ${call} }`, 'encode.turns')
}

function evaluate<F>(target: Target, entry: string, verb: string): F {
  const { name } = target.schema
  const source = `'use strict'
${target.functions.join('\n')}
return ${entry}
//# sourceURL=tidemark:${name}.v${target.version}.${verb}`
  return new Function('wire', source)(wire) as F
}

// What holds for a field in this version

function isPresent(target: Target, field: Field): boolean {
  return includesVersion(field.versions, target.version)
}

function isTagged(target: Target, field: Field): boolean {
  return field.tag !== undefined && includesVersion(field.tagged ?? field.versions, target.version)
}

function isFlexible(target: Target, field?: Field): boolean {
  return includesVersion(field?.flexible ?? target.schema.flexible, target.version)
}

function entriesOf(fields: Fields, filter: (field: Field) => boolean): [string, Field][] {
  return Object.entries(fields).filter(([, field]) => filter(field))
}

function inline(target: Target, fields: Fields): [string, Field][] {
  return entriesOf(fields, field => isPresent(target, field) && !isTagged(target, field))
}

function tagged(target: Target, fields: Fields): [string, Field][] {
  const found = entriesOf(fields, field => isPresent(target, field) && isTagged(target, field))
  return found.sort(([, a], [, b]) => (a.tag as number) - (b.tag as number))
}

/** Whether reading or writing the struct takes a loop, and so may take several turns. */
function holdsArray(target: Target, fields: Fields): boolean {
  return Object.values(fields).some(
    field =>
      isPresent(target, field) &&
      (field.type === 'array' || (field.type === 'struct' && holdsArray(target, field.fields as Fields))),
  )
}

function takesTurns(target: Target, fields: Fields): boolean {
  return target.inTurns && holdsArray(target, fields)
}

/** The expression of the value that a field has where none is given. */
function defaultOf(target: Target, field: Field, path: string): string {
  const value = field.default
  if (value === null) return 'null'
  switch (field.type) {
    case 'struct':
      return `${defaultStruct(target, field.fields as Fields, path)}()`
    case 'array':
      return '[]'
    case 'records':
      return includesVersion(field.nullable, target.version) ? 'null' : 'wire.EMPTY_BYTES'
    case 'bytes':
      return 'wire.EMPTY_BYTES'
    case 'uuid':
      return `'${ZERO_UUID}'`
    case 'string':
      return JSON.stringify(value ?? '')
    case 'bool':
      return String(value ?? false)
    case 'int64':
      if (value === INT64_MAX && target.integers === 'exact') return '9223372036854775807n'
      return String(value ?? 0)
    default:
      return String(value ?? 0)
  }
}

/** The condition that the value in `name` is the field's default. */
function isDefault(target: Target, field: Field, name: string, path: string): string {
  if (field.default === null) return `${name} === null`
  switch (field.type) {
    case 'struct':
      return `${name} !== null && ${isDefaultStruct(target, field.fields as Fields, path)}(${name})`
    case 'array':
    case 'bytes':
      return `${name} !== null && ${name}.length === 0`
    case 'records':
      if (includesVersion(field.nullable, target.version)) return `${name} === null`
      return `${name} !== null && wire.recordsSize(${name}) === 0`
    case 'int64':
      if (field.default === INT64_MAX) return `wire.isInt64Max(${name})`
      return `${name} == ${defaultOf(target, field, path)}` // == because of bigints
    default:
      return `${name} === ${defaultOf(target, field, path)}`
  }
}

function defaultStruct(target: Target, fields: Fields, path: string): string {
  const name = functionName('default', path)
  const values = Object.entries(fields).map(([key, field]) => `${key}: ${defaultOf(target, field, `${path}.${key}`)}`)
  return define(target, name, `function ${name}() { return { ${values.join(', ')} } }`)
}

function isDefaultStruct(target: Target, fields: Fields, path: string): string {
  const name = functionName('isDefault', path)
  const lines = Object.entries(fields).map(
    ([key, field]) =>
      `if (v.${key} !== undefined && !(${isDefault(target, field, `v.${key}`, `${path}.${key}`)})) return false`,
  )
  lines.push('return v.unknownTags === undefined || v.unknownTags.length === 0')
  return define(target, name, `function ${name}(v) {\n${lines.join('\n')}\n}`)
}

function functionName(verb: string, path: string): string {
  return `${verb}_${path.replaceAll('.', '_')}`
}

function define(target: Target, name: string, text: string): string {
  const begins = [`function ${name}(`, `function* ${name}(`]
  if (!target.functions.some(other => begins.some(begin => other.startsWith(begin)))) target.functions.push(text)
  return name
}

/** The fewest bytes that an element of this type takes: what an array's count is checked against. */
function bytesMin(target: Target, field: Field): number {
  const flexible = isFlexible(target, field)
  switch (field.type) {
    case 'struct':
      return field.nullable === undefined ? structBytesMin(target, field.fields as Fields) : 1
    case 'string':
      return flexible ? 1 : 2
    case 'array':
    case 'bytes':
    case 'records':
      return flexible ? 1 : 4
    default:
      return FIXED_BYTES[field.type]
  }
}

const FIXED_BYTES = { bool: 1, int8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4, int64: 8, float64: 8, uuid: 16 }

function structBytesMin(target: Target, fields: Fields): number {
  let size = isFlexible(target) ? 1 : 0
  for (const [, field] of inline(target, fields)) size += bytesMin(target, field)
  return size
}

function elementOf(field: Field): Field {
  if (field.element !== undefined) return { type: field.element, versions: field.versions }
  return { type: 'struct', versions: field.versions, fields: field.fields as Fields }
}

// Decoding

function structDecoder(target: Target, fields: Fields, path: string): string {
  const name = functionName('read', path)
  const lines: string[] = []
  for (const [key, field] of Object.entries(fields)) {
    if (!isPresent(target, field) || isTagged(target, field)) {
      lines.push(`let $${key} = ${defaultOf(target, field, `${path}.${key}`)}`)
    }
  }
  for (const [key, field] of inline(target, fields)) {
    lines.push(`let $${key}`, ...read(target, field, `$${key}`, `${path}.${key}`))
  }
  if (isFlexible(target)) lines.push(...readTags(target, fields, path))
  const keys = Object.keys(fields).map(key => `${key}: $${key}`)
  lines.push(`const m = { ${keys.join(', ')} }`)
  if (isFlexible(target)) lines.push('if (unknownTags !== undefined) m.unknownTags = unknownTags')
  lines.push('return m')
  const mark = takesTurns(target, fields) ? '*' : ''
  return define(target, name, `function${mark} ${name}(r, t) {\n${lines.join('\n')}\n}`)
}

function readTags(target: Target, fields: Fields, path: string): string[] {
  const cases = tagged(target, fields).flatMap(([key, field]) => [
    `case ${field.tag}: {`,
    ...read(target, field, `$${key}`, `${path}.${key}`, true),
    `wire.checkTagEnd(r, end, '${path}.${key}')`,
    'break',
    '}',
  ])
  return [
    'let unknownTags',
    'for (let left = wire.tagCount(r); left > 0; left--) {',
    'const tag = r.uvarint()',
    'const size = r.uvarint()',
    'const end = r.position + size',
    'switch (tag) {',
    ...cases,
    'default: (unknownTags ??= []).push({ tag, data: r.bytes(size) })',
    '}',
    '}',
  ]
}

/** Statements that read the field's value into the variable `into`. */
function read(target: Target, field: Field, into: string, path: string, inTag = false): string[] {
  const nullable = includesVersion(field.nullable, target.version)
  const onNull = nullable ? `${into} = null` : `wire.unexpectedNull('${path}')`
  const flexible = isFlexible(target, field)
  switch (field.type) {
    case 'struct': {
      const fields = field.fields as Fields
      const wait = takesTurns(target, fields) ? 'yield* ' : ''
      const value = `${into} = ${wait}${structDecoder(target, fields, path)}(r, t)`
      if (!nullable) return [value]
      // The mark before a nullable struct is a byte, but under a tag it is a varint whose 0 is null.
      return [inTag ? 'if (r.uvarint() === 0)' : 'if (r.int8() < 0)', onNull, `else ${value}`]
    }
    case 'string':
      return sized(flexible ? 'wire.compactStringSize(r)' : 'wire.stringSize(r)', onNull, [`${into} = wire.text(r, n)`])
    case 'bytes':
    case 'records':
      return sized(flexible ? 'wire.compactSize(r)' : 'r.int32()', onNull, [`${into} = r.bytes(n)`])
    case 'array':
      return sized(flexible ? 'wire.compactSize(r)' : 'r.int32()', onNull, readElements(target, field, into, path))
    default:
      return [`${into} = ${readFixed(target, field)}`]
  }
}

function sized(size: string, onNull: string, then: string[]): string[] {
  return ['{', `const n = ${size}`, `if (n < 0) ${onNull}`, 'else {', ...then, '}', '}']
}

function readElements(target: Target, field: Field, into: string, path: string): string[] {
  const element = elementOf(field)
  const size = bytesMin(target, element)
  assert(size > 0, `the elements of ${path} take no bytes in version ${target.version}`)
  return [
    `wire.checkCount(r, n, ${size})`,
    `${into} = new Array(n)`,
    'for (let i = 0; i < n; i++) {',
    ...(target.inTurns ? ['if (t.over(r.position)) yield'] : []),
    ...read(target, element, `${into}[i]`, path),
    '}',
  ]
}

function readFixed(target: Target, field: Field): string {
  switch (field.type) {
    case 'bool':
      return 'r.boolean()'
    case 'int64':
      if (target.integers === 'exact') return 'wire.exactInt64(r)'
      if (target.integers === 'edge') return 'wire.int64ToEdge(r)'
      return field.default === INT64_MAX ? 'wire.int64OrMax(r)' : 'wire.int64(r)'
    default:
      return `r.${field.type}()`
  }
}

// Encoding

function structEncoder(target: Target, fields: Fields, path: string): string {
  const name = functionName('write', path)
  const { schema, version } = target
  const lines: string[] = []
  const fieldPath = (key: string) => `${path}.${key}`.slice(schema.name.length + 1)
  const absent = entriesOf(fields, field => !isPresent(target, field) && field.ignorable !== true)
  for (const [key, field] of absent) {
    lines.push(
      `if (v.${key} !== undefined && !(${isDefault(target, field, `v.${key}`, `${path}.${key}`)})) ` +
        `wire.unsupportedField('${schema.name}', '${fieldPath(key)}', ${version})`,
    )
  }
  for (const [key, field] of inline(target, fields)) {
    lines.push(...load(target, key, field, path), ...write(target, field, `$${key}`, `${path}.${key}`))
  }
  if (isFlexible(target)) lines.push(...writeTags(target, fields, path))
  else {
    lines.push(
      'if (v.unknownTags !== undefined && v.unknownTags.length > 0) ' +
        `wire.unsupportedField('${schema.name}', '${fieldPath('unknownTags')}', ${version})`,
    )
  }
  const mark = takesTurns(target, fields) ? '*' : ''
  return define(target, name, `function${mark} ${name}(w, v, t) {\n${lines.join('\n')}\n}`)
}

function load(target: Target, key: string, field: Field, path: string): string[] {
  return [
    `let $${key} = v.${key}`,
    `if ($${key} === undefined) $${key} = ${defaultOf(target, field, `${path}.${key}`)}`,
  ]
}

function writeTags(target: Target, fields: Fields, path: string): string[] {
  const known = tagged(target, fields)
  const lines = ['let count = 0']
  for (const [key, field] of known) {
    lines.push(
      ...load(target, key, field, path),
      `const send_${key} = !(${isDefault(target, field, `$${key}`, `${path}.${key}`)})`,
      `if (send_${key}) count++`,
    )
  }
  lines.push(
    'const unknown = v.unknownTags === undefined ? [] : wire.sortedTags(v.unknownTags)',
    'w.uvarint(count + unknown.length)',
    'let next = 0',
  )
  for (const [key, field] of known) {
    lines.push(
      `if (send_${key}) {`,
      `next = wire.writeUnknownTags(w, unknown, next, ${field.tag})`,
      `w.uvarint(${field.tag})`,
      'const at = wire.openTag(w)',
      ...write(target, field, `$${key}`, `${path}.${key}`, true),
      'wire.closeTag(w, at)',
      '}',
    )
  }
  lines.push('if (next < unknown.length) wire.writeUnknownTags(w, unknown, next, Infinity)')
  return lines
}

/** Statements that write the value in the variable `from`. */
function write(target: Target, field: Field, from: string, path: string, inTag = false): string[] {
  const { schema, version } = target
  const flexible = isFlexible(target, field)
  const nullable = includesVersion(field.nullable, version)
  const absent = (mark: string) =>
    nullable ? mark : `wire.unsupportedNull('${schema.name}', '${path.slice(schema.name.length + 1)}', ${version})`
  switch (field.type) {
    case 'struct': {
      const fields = field.fields as Fields
      const wait = takesTurns(target, fields) ? 'yield* ' : ''
      const value = `${wait}${structEncoder(target, fields, path)}(w, ${from}, t)`
      if (!nullable) return [`if (${from} === null) ${absent('')}`, value]
      const mark = inTag ? 'w.uvarint' : 'w.int8'
      return [`if (${from} === null) ${mark}(${inTag ? 0 : -1})`, `else { ${mark}(1); ${value} }`]
    }
    case 'string':
      return [
        `if (${from} === null) ${absent(flexible ? 'w.uvarint(0)' : 'w.int16(-1)')}`,
        `else ${flexible ? 'wire.writeCompactString' : 'wire.writeString'}(w, ${from})`,
      ]
    case 'bytes':
    case 'records': {
      assert(!inTag || field.type === 'bytes', `${path}: records under a tag could not be sent in parts`)
      const size = field.type === 'bytes' ? `${from}.length` : `wire.recordsSize(${from})`
      return [
        `if (${from} === null) ${absent(flexible ? 'w.uvarint(0)' : 'w.int32(-1)')}`,
        `else { ${flexible ? `w.uvarint(${size} + 1)` : `w.int32(${size})`}`,
        field.type === 'bytes' ? `w.bytes(${from}) }` : `wire.writeRecords(w, ${from}) }`,
      ]
    }
    case 'array':
      return [
        `if (${from} === null) ${absent(flexible ? 'w.uvarint(0)' : 'w.int32(-1)')}`,
        `else { ${flexible ? `w.uvarint(${from}.length + 1)` : `w.int32(${from}.length)`}`,
        `for (let i = 0; i < ${from}.length; i++) { const e = ${from}[i]`,
        ...(target.inTurns ? ['if (t.over(w.position)) yield'] : []),
        ...write(target, elementOf(field), 'e', path),
        '} }',
      ]
    default:
      return [writeFixed(field.type, field, from)]
  }
}

function writeFixed(type: PrimitiveType, field: Field, from: string): string {
  if (type === 'bool') return `w.boolean(${from})`
  if (type === 'int64' && field.default === INT64_MAX) return `wire.writeInt64(w, ${from})`
  return `w.${type}(${from})`
}
