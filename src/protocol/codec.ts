import { assert } from '#base/assert.ts'
import { ByteReader, ByteWriter, DecodeError } from '#base/bytes.ts'
import { compileDecoder, compileEncoder, type Decoder, type Encoder } from './compile.ts'
import { type InputOf, includesVersion, type MessageOf, type RecordsHole, type Schema } from './schema.ts'
import { PartsWriter, UnsafeIntegerError } from './wire.ts'

export { DecodeError } from '#base/bytes.ts'
export { EncodeError, UnsafeIntegerError, UnsupportedFieldError } from './wire.ts'

/** The codecs of one schema by version, compiled when first used. */
class Codecs {
  readonly decode: Decoder[] = []
  readonly decodeExact: Decoder[] = []
  readonly encode: Encoder[] = []
}

const codecsBySchema = new Map<Schema, Codecs>()

function codecsOf(schema: Schema): Codecs {
  let codecs = codecsBySchema.get(schema)
  if (codecs === undefined) {
    codecs = new Codecs()
    codecsBySchema.set(schema, codecs)
  }
  return codecs
}

function decoder(schema: Schema, version: number, exact: boolean): Decoder {
  const decoders = exact ? codecsOf(schema).decodeExact : codecsOf(schema).decode
  let found = decoders[version]
  if (found === undefined) {
    if (!includesVersion(schema.versions, version)) throw new DecodeError(`${schema.name} has no version ${version}`)
    found = compileDecoder(schema, version, exact)
    decoders[version] = found
  }
  return found
}

function encoder(schema: Schema, version: number): Encoder {
  const encoders = codecsOf(schema).encode
  let found = encoders[version]
  if (found === undefined) {
    assert(includesVersion(schema.versions, version), `${schema.name} has no version ${version}`)
    found = compileEncoder(schema, version)
    encoders[version] = found
  }
  return found
}

/**
 * Reads a message and leaves the reader behind its last byte; what follows is the caller's. Bytes and records in it
 * are views of the reader's buffer.
 * @throws DecodeError for bytes that are no such message, or a version that the schema lacks;
 *   UnsafeIntegerError, a DecodeError, for a 64-bit integer that no number holds exactly.
 */
export function decode<S extends Schema>(schema: S, version: number, reader: ByteReader): MessageOf<S> {
  return decoder(schema, version, false)(reader) as MessageOf<S>
}

/** As {@link decode}, but 64-bit integers that no number holds come as bigints, whatever the type says. */
export function decodeExact<S extends Schema>(schema: S, version: number, reader: ByteReader): MessageOf<S> {
  return decoder(schema, version, true)(reader) as MessageOf<S>
}

/**
 * As `decode`, but a 64-bit integer that no number holds stands at the edge of those that one does: it is beyond every
 * offset, time and id there is, and so is the edge. Whoever would store such a value refuses the edge.
 */
export function decodeToEdge<S extends Schema>(schema: S, version: number, reader: ByteReader): MessageOf<S> {
  const start = reader.position
  try {
    return decode(schema, version, reader)
  } catch (error) {
    if (!(error instanceof UnsafeIntegerError)) throw error
    reader.position = start
    return toEdge(decodeExact(schema, version, reader)) as MessageOf<S>
  }
}

function toEdge(value: unknown): unknown {
  if (typeof value === 'bigint') return value < 0n ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER
  if (Array.isArray(value)) return value.map(toEdge)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, toEdge(each)]))
}

/** Decodes bytes that hold one message and nothing else. */
export function decodeMessage<S extends Schema>(schema: S, version: number, bytes: Uint8Array): MessageOf<S> {
  const reader = new ByteReader(bytes)
  const message = decode(schema, version, reader)
  if (reader.remaining > 0) throw new DecodeError(`${reader.remaining} bytes behind ${schema.name}`)
  return message
}

/**
 * Writes a message. Fields left out take their default; bigints are taken for 64-bit integers.
 * @throws UnsupportedFieldError when the version cannot carry a value, as Kafka's UnsupportedVersionException;
 *   EncodeError when a string is longer than 32,767 bytes.
 */
export function encode<S extends Schema>(schema: S, version: number, value: InputOf<S>, writer: ByteWriter): void {
  encoder(schema, version)(writer, value)
}

export function encodeToBuffer<S extends Schema>(schema: S, version: number, value: InputOf<S>): Buffer {
  const writer = new ByteWriter()
  encode(schema, version, value, writer)
  return writer.written()
}

/**
 * Encodes a message without copying its records: records of 4 KiB and more come back as they are, holes in the place
 * where the sender puts their bytes. The sizes of all parts add up to the message's.
 */
export function encodeParts<S extends Schema>(schema: S, version: number, value: InputOf<S>): (Buffer | RecordsHole)[] {
  const writer = new PartsWriter()
  encode(schema, version, value, writer)
  return writer.parts()
}
