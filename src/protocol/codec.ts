import { assert } from '#base/assert.ts'
import { ByteReader, ByteWriter, DecodeError } from '#base/bytes.ts'
import {
  compileDecoder,
  compileDecoderInTurns,
  compileEncoder,
  compileEncoderInTurns,
  type Decoder,
  type DecoderInTurns,
  type Encoder,
  type EncoderInTurns,
  type Integers,
} from './compile.ts'
import { type InputOf, includesVersion, type MessageOf, type RecordsHole, type Schema } from './schema.ts'
import { PartsWriter, Turn } from './wire.ts'

export { DecodeError } from '#base/bytes.ts'
export { EncodeError, UnsafeIntegerError, UnsupportedFieldError } from './wire.ts'

/** The codecs of one schema by version, compiled when first used. */
class Codecs {
  readonly decode: Record<Integers, Decoder[]> = { safe: [], exact: [], edge: [] }
  readonly decodeInTurns: DecoderInTurns[] = []
  readonly encode: Encoder[] = []
  readonly encodeInTurns: EncoderInTurns[] = []
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

function decoder(schema: Schema, version: number, integers: Integers): Decoder {
  const decoders = codecsOf(schema).decode[integers]
  let found = decoders[version]
  if (found === undefined) {
    mustHaveVersion(schema, version)
    found = compileDecoder(schema, version, integers)
    decoders[version] = found
  }
  return found
}

function mustHaveVersion(schema: Schema, version: number): void {
  if (!includesVersion(schema.versions, version)) throw new DecodeError(`${schema.name} has no version ${version}`)
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
  return decoder(schema, version, 'safe')(reader) as MessageOf<S>
}

/** As {@link decode}, but 64-bit integers that no number holds come as bigints, whatever the type says. */
export function decodeExact<S extends Schema>(schema: S, version: number, reader: ByteReader): MessageOf<S> {
  return decoder(schema, version, 'exact')(reader) as MessageOf<S>
}

/**
 * As `decode`, but a 64-bit integer that no number holds stands at the edge of those that one does: it is beyond every
 * offset, time and id there is, and so is the edge. Whoever would store such a value refuses the edge.
 */
export function decodeToEdge<S extends Schema>(schema: S, version: number, reader: ByteReader): MessageOf<S> {
  return decoder(schema, version, 'edge')(reader) as MessageOf<S>
}

/** As {@link decodeToEdge}, in turns: yields after some thousand elements, so that a large message holds up nobody. */
export function decodeInTurns<S extends Schema>(
  schema: S,
  version: number,
  reader: ByteReader,
): Generator<undefined, MessageOf<S>> {
  const decoders = codecsOf(schema).decodeInTurns
  let found = decoders[version]
  if (found === undefined) {
    mustHaveVersion(schema, version)
    found = compileDecoderInTurns(schema, version, 'edge')
    decoders[version] = found
  }
  return found(reader, new Turn()) as Generator<undefined, MessageOf<S>>
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

/** As {@link encode}, in turns. */
export function encodeInTurns<S extends Schema>(
  schema: S,
  version: number,
  value: InputOf<S>,
  writer: ByteWriter,
): Generator<undefined, void> {
  const encoders = codecsOf(schema).encodeInTurns
  let found = encoders[version]
  if (found === undefined) {
    assert(includesVersion(schema.versions, version), `${schema.name} has no version ${version}`)
    found = compileEncoderInTurns(schema, version)
    encoders[version] = found
  }
  return found(writer, value, new Turn())
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
