/** Makes a right request wrong, or odd, in one or two places: the same places and values for both servers. */
import type { SeededRandom } from '#base/random.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { type Field, type Fields, includesVersion, type Schema } from '#protocol/schema.ts'

type Struct = Record<string, unknown>
type Bodies = readonly [unknown, unknown]

/** A place in both bodies that can be given another value. */
interface Place {
  readonly name: string
  readonly field: Field
  readonly holders: readonly [Struct, Struct]
}

/** Values for fields whose whole range would only make the run wait, or servers create more than they should. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  maxWaitMs: [0, 1, 20, -1],
  minBytes: [0, 1, -1],
  timeoutMs: [20_000, 30_000],
  sessionTimeoutMs: [-1, 0, 5_999, 6_000, 1_800_000, 1_800_001, 0x7fff_ffff],
  rebalanceTimeoutMs: [0, 6_000, 10_000],
  transactionTimeoutMs: [0, 1, -1, 60_000, 0x7fff_ffff],
  acks: [-1, 1, 2, -2, 0x7fff],
  replicaId: [-1, -2, -3],
  count: [-1, 0, 1, 2, 3, 4, 5],
  numPartitions: [-2, -1, 0, 1, 2],
  replicationFactor: [-2, -1, 0, 1, 2, 0x7fff],
  brokerId: [0, 1, 2, -1],
  timestamp: [-7, -6, -5, -4, -3, -2, -1, 0, 1, 1_700_000_000_005, 0x7fff_ffff_ffff],
  keyType: [-1, 0, 1, 2, 3],
  resourceType: [-1, 0, 1, 2, 4, 8, 16, 32, 64, 127],
  // Any other makes Kafka's controller give up its office, and the run wait for its election.
  configOperation: [0, 1, 2, 3],
  electionType: [0, 1, 2, -1],
  retentionTimeMs: [-1, 0, 1, 100_000],
  responsePartitionLimit: [-1, 0, 1, 2, 3, 2000],
  maxVersionLevel: [0, 1, 2, 127, -1],
}
/** Left as they are: another value leads a request onto a path that has nothing to do with what it is about. */
const KEPT = new Set([
  // A topic that comes into being by itself is there at some time, on each side at another.
  'allowAutoTopicCreation',
  'replicaState',
  'clusterId',
  'reason',
  'sessionId',
  'sessionEpoch',
  'enable2Pc',
  'keepPreparedTxn',
])
const NUMBERS: Readonly<Record<string, readonly unknown[]>> = {
  int8: [0, 1, 2, -1, 127, -128],
  int16: [0, 1, -1, 2, 0x7fff, -0x8000],
  int32: [0, 1, 2, 3, -1, -2, 1000, 0x7fff_ffff, -0x8000_0000],
  int64: [0, 1, 2, 5, 9, 10, 11, -1, -2, 1000, 2 ** 52, 9223372036854775807n, -9223372036854775808n],
}
const STRINGS = [
  '',
  'no-such-name',
  'a/b',
  '.',
  '..',
  'ünï',
  'x'.repeat(249),
  'x'.repeat(250),
  '__consumer_offsets',
  '1',
  ' ',
]
const UNKNOWN_UUID = 'bm8tc3VjaC10b3BpYy1pZA'

/** @returns undefined where the drawn version has nothing to change, or cannot carry the request. */
export function mutate(random: SeededRandom, schema: Schema, version: number, bodies: Bodies): Bodies | undefined {
  const copies = [clone(bodies[0]), clone(bodies[1])] as const
  for (let times = random.chance(0.25) ? 2 : 1; times > 0; times--) {
    const places: Place[] = []
    collect(schema.fields, version, copies as readonly [Struct, Struct], places)
    if (places.length === 0) return undefined
    change(random, version, random.pick(places))
  }
  return copies
}

function collect(fields: Fields, version: number, holders: readonly [Struct, Struct], places: Place[]): void {
  for (const [name, field] of Object.entries(fields)) {
    if (!includesVersion(field.versions, version)) {
      // What this version cannot carry is left out: the request is about the rest.
      for (const holder of holders) delete holder[name]
      continue
    }
    if (KEPT.has(name)) continue
    places.push({ name, field, holders })
    const [left, right] = [holders[0][name], holders[1][name]]
    if (Array.isArray(left) && Array.isArray(right) && field.fields !== undefined) {
      left.forEach((element, i) => {
        if (right[i] !== undefined) collect(field.fields as Fields, version, [element, right[i]], places)
      })
    } else if (field.type === 'struct' && left && right) {
      collect(field.fields as Fields, version, [left as Struct, right as Struct], places)
    }
  }
}

function change(random: SeededRandom, version: number, { name, field, holders }: Place): void {
  const set = (value: unknown): void => {
    for (const holder of holders) holder[name] = value
  }
  // Null records are never answered by Kafka.
  if (includesVersion(field.nullable, version) && field.type !== 'records' && random.chance(0.25)) {
    set(null)
    return
  }
  const values = VALUES[name] ?? NUMBERS[field.type]
  switch (field.type) {
    case 'array': {
      // A resource twice is never answered by Kafka (its own count of errors fails), so that only our time would be lost.
      const kind = name === 'resources' ? 2 : random.below(3)
      if (kind === 0) {
        set([])
        return
      }
      for (const holder of holders) {
        const elements = holder[name]
        if (!Array.isArray(elements) || elements.length === 0) continue
        holder[name] = kind === 1 ? [...elements, clone(elements[0])] : elements.slice(1)
      }
      return
    }
    case 'string':
      set(random.pick(STRINGS))
      return
    case 'uuid':
      set(random.pick([ZERO_UUID, UNKNOWN_UUID]))
      return
    case 'bool':
      for (const holder of holders) holder[name] = holder[name] !== true
      return
    case 'bytes':
    case 'records': {
      const kind = random.below(3)
      const at = random.fraction()
      for (const holder of holders) {
        const bytes = Buffer.from((holder[name] as Uint8Array | null | undefined) ?? [])
        const index = Math.floor(at * bytes.length)
        if (kind === 0 || bytes.length === 0) holder[name] = Buffer.alloc(0)
        else if (kind === 1) holder[name] = bytes.subarray(0, index)
        else {
          bytes[index] = (bytes[index] as number) ^ 0x10
          holder[name] = bytes
        }
      }
      return
    }
    default:
      if (values !== undefined) set(random.pick(values))
  }
}

function clone(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(clone)
  if (value instanceof Uint8Array || value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, clone(inner)]))
}
