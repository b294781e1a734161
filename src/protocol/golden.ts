import { ByteReader, ByteWriter } from '#base/bytes.ts'
import { decodeExact, decodeInTurns, decodeToEdge, encodeInTurns, encodeToBuffer } from './codec.ts'
import type { Field, Fields, Schema, UnknownTag } from './schema.ts'
import { schemaByName } from './schemas.ts'

/** One message as Kafka's own classes wrote it: its values as Kafka's JSON and its bytes. */
export interface GoldenMessage {
  readonly name: string
  readonly version: number
  readonly json: JsonObject
  readonly hex: string
  /** Tagged fields that no table knows, by the struct that they stand in. */
  readonly unknownTags?: readonly { readonly at: string; readonly tag: number; readonly hex: string }[]
  /** The bytes with what stands before them in a record. */
  readonly framed?: string
}

type Json = null | boolean | number | string | readonly Json[] | JsonObject
interface JsonObject {
  readonly [name: string]: Json
}
type Message = { [name: string]: unknown; unknownTags?: UnknownTag[] }

/** Compares our codec with Kafka's in both directions. Returns what differs, or undefined. */
export function disagreement(golden: GoldenMessage): string | undefined {
  const schema = schemaByName(golden.name)
  if (schema === undefined) return 'there is no such table'
  const wanted = messageFromJson(schema, golden)
  const encoded = encodeToBuffer(schema, golden.version, wanted).toString('hex')
  if (encoded !== golden.hex) return `encoded as ${encoded}`
  const reader = new ByteReader(Buffer.from(golden.hex, 'hex'))
  const decoded = decodeExact(schema, golden.version, reader) as Message
  if (reader.remaining > 0) return `${reader.remaining} bytes were left`
  const different = difference(schema.fields, wanted, decoded, '')
  if (different !== undefined) return `decoded otherwise at ${different}`
  const again = encodeToBuffer(schema, golden.version, decoded).toString('hex')
  if (again !== golden.hex) return `decoded and encoded as ${again}`
  const inTurns = encodedInTurns(schema, golden.version, decoded)
  if (inTurns !== golden.hex) return `encoded in turns as ${inTurns}`
  const bytes = Buffer.from(golden.hex, 'hex')
  const turned = encodedInTurns(
    schema,
    golden.version,
    toEnd(decodeInTurns(schema, golden.version, new ByteReader(bytes))),
  )
  const edged = encodeToBuffer(schema, golden.version, decodeToEdge(schema, golden.version, new ByteReader(bytes)))
  return turned === edged.toString('hex') ? undefined : `decoded in turns and encoded as ${turned}`
}

function encodedInTurns(schema: Schema, version: number, message: Message): string {
  const writer = new ByteWriter()
  toEnd(encodeInTurns(schema, version, message, writer))
  return writer.written().toString('hex')
}

function toEnd<Result>(turns: Generator<undefined, Result>): Result {
  let step = turns.next()
  while (!step.done) step = turns.next()
  return step.value
}

export function messageFromJson(schema: Schema, golden: Pick<GoldenMessage, 'json' | 'unknownTags'>): Message {
  const message = structFromJson(schema.fields, golden.json)
  for (const { at, tag, hex } of golden.unknownTags ?? []) {
    const target = at
      .split(/[.[\]]+/)
      .filter(step => step !== '')
      .reduce<Message>((value, step) => value[step] as Message, message)
    target.unknownTags ??= []
    target.unknownTags.push({ tag, data: Buffer.from(hex, 'hex') })
  }
  return message
}

function structFromJson(fields: Fields, json: JsonObject): Message {
  const entries = Object.entries(json).map(([name, value]) => {
    const field = fields[name]
    if (field === undefined) throw new Error(`${name} is in no table`)
    return [name, valueFromJson(field, value)]
  })
  return Object.fromEntries(entries)
}

function valueFromJson(field: Field, json: Json): unknown {
  if (json === null) return null
  switch (field.type) {
    case 'struct':
      return structFromJson(field.fields as Fields, json as JsonObject)
    case 'array':
      return (json as readonly Json[]).map(item =>
        field.element === undefined
          ? structFromJson(field.fields as Fields, item as JsonObject)
          : valueFromJson({ type: field.element, versions: field.versions }, item),
      )
    case 'bytes':
    case 'records':
      return Buffer.from(json as string, 'base64')
    case 'uint32':
      return Number(json)
    case 'int64':
      return Number.isSafeInteger(Number(json)) ? Number(json) : BigInt(json as string)
    default:
      return json
  }
}

/** Where two values differ in what `wanted` has; what it leaves out is a default and was compared as bytes. */
function difference(fields: Fields, wanted: Message, found: Message, path: string): string | undefined {
  for (const [name, value] of Object.entries(wanted)) {
    const at = path === '' ? name : `${path}.${name}`
    const field = fields[name]
    const other = found[name]
    const inner =
      field === undefined ? compareTags(wanted.unknownTags, found.unknownTags, at) : compare(field, value, other, at)
    if (inner !== undefined) return inner
  }
  for (const name of Object.keys(fields)) if (!(name in found)) return `${path}.${name}, which is not there`
  return undefined
}

function compare(field: Field, wanted: unknown, found: unknown, at: string): string | undefined {
  if (wanted === null || found === null) return wanted === found ? undefined : at
  if (field.type === 'struct') return difference(field.fields as Fields, wanted as Message, found as Message, at)
  if (field.type === 'array') {
    const [a, b] = [wanted as unknown[], found as unknown[]]
    if (a.length !== b.length) return at
    const element: Field =
      field.element === undefined
        ? { type: 'struct', versions: field.versions, fields: field.fields as Fields }
        : { type: field.element, versions: field.versions }
    for (const [index, item] of a.entries()) {
      const inner = compare(element, item, b[index], `${at}[${index}]`)
      if (inner !== undefined) return inner
    }
    return undefined
  }
  if (Buffer.isBuffer(wanted)) return Buffer.isBuffer(found) && wanted.equals(found) ? undefined : at
  return wanted === found ? undefined : at
}

function compareTags(wanted: UnknownTag[] = [], found: UnknownTag[] = [], at: string): string | undefined {
  const text = (tags: UnknownTag[]) => tags.map(({ tag, data }) => `${tag}=${data.toString('hex')}`).join()
  return text(wanted) === text(found) ? undefined : at
}
