import { ByteReader, DecodeError } from '#base/bytes.ts'
import { SeededRandom } from '#base/random.ts'
import { decode, encodeToBuffer } from './codec.ts'
import { decodeRequestHeader } from './frames.ts'
import type { Schema } from './schema.ts'
import { SCHEMAS } from './schemas.ts'

/** One valid message to mutate. */
export interface Seedling {
  readonly schema: Schema
  readonly version: number
  readonly bytes: Buffer
}

export interface FuzzTotals {
  decoded: number
  refused: number
}

/**
 * Decodes `count` mutated or random frames; every one must end in a value or a DecodeError, and a value must be one
 * that encodes again. Anything else is thrown with what reproduces it.
 */
export function fuzzFrames(seedlings: readonly Seedling[], count: number, seed: number): FuzzTotals {
  const random = new SeededRandom(seed)
  const totals: FuzzTotals = { decoded: 0, refused: 0 }
  for (let index = 0; index < count; index++) {
    const seedling = seedlings[random.uint32() % seedlings.length] as Seedling
    const bytes = random.uint32() % 8 === 0 ? randomBytes(random) : mutated(seedling.bytes, random)
    const schema = random.uint32() % 32 === 0 ? (SCHEMAS[random.uint32() % SCHEMAS.length] as Schema) : seedling.schema
    try {
      decodeOne(schema, seedling.version, bytes, index)
      totals.decoded++
    } catch (error) {
      if (!(error instanceof DecodeError)) {
        const what = `${schema.name} ${seedling.version}, frame ${index} of seed ${seed}: ${bytes.toString('hex')}`
        throw new Error(what, { cause: error })
      }
      totals.refused++
    }
  }
  return totals
}

/** Every 16th value is encoded again: it came from bytes, so there are bytes for it. */
function decodeOne(schema: Schema, version: number, bytes: Buffer, index: number): void {
  if (schema.name === 'RequestHeader') decodeRequestHeader(new ByteReader(bytes))
  const message = decode(schema, version, new ByteReader(bytes))
  if (index % 16 === 0) encodeToBuffer(schema, version, message)
}

function randomBytes(random: SeededRandom): Buffer {
  const bytes = Buffer.allocUnsafe(random.uint32() % 128)
  for (let at = 0; at < bytes.length; at++) bytes[at] = random.uint32()
  return bytes
}

/** Lengths and counts that are wrong in interesting ways. */
const EDGES = [0, 1, 2, 0x7f, 0x80, 0xff]

function mutated(original: Buffer, random: SeededRandom): Buffer {
  let bytes = Buffer.from(original)
  for (let changes = 1 + (random.uint32() % 4); changes > 0; changes--) {
    const at = random.uint32() % (bytes.length + 1)
    const edge = EDGES[random.uint32() % EDGES.length] as number
    switch (random.uint32() % 6) {
      case 0:
        bytes = bytes.subarray(0, at)
        break
      case 1:
        if (at < bytes.length) bytes[at] = (bytes[at] as number) ^ (1 << (random.uint32() % 8))
        break
      case 2:
        if (at < bytes.length) bytes[at] = edge
        break
      case 3:
        bytes.fill(edge, at, Math.min(at + 4, bytes.length))
        break
      case 4:
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from([edge]), bytes.subarray(at)])
        break
      default: {
        const size = random.uint32() % 16
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + size)])
      }
    }
  }
  return bytes
}
