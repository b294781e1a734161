import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteReader } from '#base/bytes.ts'
import { uuidFromBytes } from '#base/uuid.ts'
import { decode, encodeParts, encodeToBuffer } from './codec.ts'
import {
  type Field,
  type Fields,
  includesVersion,
  type PrimitiveType,
  parseVersions,
  type Schema,
  type UnknownTag,
} from './schema.ts'
import { SCHEMAS } from './schemas.ts'

const bytes = fc.uint8Array({ maxLength: 40 }).map(array => Buffer.from(array))
const text = fc.string({ unit: 'grapheme', maxLength: 20 })
const safeInteger = fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -3, max: 3 }))

const PRIMITIVES: Record<PrimitiveType, fc.Arbitrary<unknown>> = {
  bool: fc.boolean(),
  int8: fc.integer({ min: -0x80, max: 0x7f }),
  int16: fc.integer({ min: -0x8000, max: 0x7fff }),
  uint16: fc.integer({ min: 0, max: 0xffff }),
  int32: fc.integer(),
  uint32: fc.integer({ min: 0, max: 0xffff_ffff }),
  int64: safeInteger,
  float64: fc.double(),
  string: text,
  uuid: fc.uint8Array({ minLength: 16, maxLength: 16 }).map(array => uuidFromBytes(array)),
  bytes,
  records: bytes,
}

function anyValue(field: Field, version: number, flexible: boolean): fc.Arbitrary<unknown> {
  let value: fc.Arbitrary<unknown>
  if (field.type === 'struct') value = anyStruct(field.fields as Fields, version, flexible)
  else if (field.type === 'array') {
    const { element } = field
    value = fc.array(element ? PRIMITIVES[element] : anyStruct(field.fields as Fields, version, flexible), {
      maxLength: 3,
    })
  } else value = PRIMITIVES[field.type]
  return includesVersion(field.nullable, version) ? fc.option(value, { freq: 4 }) : value
}

/** Any struct that the version can carry, with fields left out and with tagged fields that the table lacks. */
function anyStruct(fields: Fields, version: number, flexible: boolean): fc.Arbitrary<object> {
  const model: Record<string, fc.Arbitrary<unknown>> = {}
  for (const [name, field] of Object.entries(fields)) {
    if (includesVersion(field.versions, version)) model[name] = anyValue(field, version, flexible)
  }
  const tag = fc.record({ tag: fc.integer({ min: 100, max: 0x7fff_ffff }), data: bytes })
  const tags = fc.uniqueArray(tag, { maxLength: 2, selector: ({ tag }) => tag })
  if (flexible) model.unknownTags = tags.filter(list => list.length > 0)
  return fc.record(model, { requiredKeys: [] })
}

/** What was given is there after decoding; tags come back in order. */
function assertContains(found: unknown, given: unknown): void {
  if (Buffer.isBuffer(given)) assert.ok(Buffer.isBuffer(found) && found.equals(given))
  else if (Array.isArray(given)) {
    assert.ok(Array.isArray(found))
    assert.equal(found.length, given.length)
    for (const [index, item] of given.entries()) assertContains(found[index], item)
  } else if (typeof given === 'object' && given !== null) {
    for (const [name, value] of Object.entries(given)) {
      const other = (found as Record<string, unknown>)[name]
      assertContains(other, name === 'unknownTags' ? (value as UnknownTag[]).toSorted((a, b) => a.tag - b.tag) : value)
    }
  } else assert.ok(Object.is(found, given) || found === given, `${found} for ${given}`)
}

function checkRoundTrip(schema: Schema, version: number, runs: number): void {
  const flexible = includesVersion(schema.flexible, version)
  const property = fc.property(anyStruct(schema.fields, version, flexible), message => {
    const encoded = encodeToBuffer(schema, version, message)
    const reader = new ByteReader(encoded)
    const decoded = decode(schema, version, reader)
    assert.equal(reader.remaining, 0)
    assertContains(decoded, message)
    assert.ok(encodeToBuffer(schema, version, decoded).equals(encoded))
    assert.ok(Buffer.concat(encodeParts(schema, version, message) as Buffer[]).equals(encoded))
  })
  fc.assert(property, { numRuns: runs })
}

test('any message that a version can carry comes back as it was', () => {
  for (const schema of SCHEMAS) {
    const { first, last } = parseVersions(schema.versions)
    for (const version of new Set([first, Math.floor((first + last) / 2), last])) checkRoundTrip(schema, version, 10)
  }
})
