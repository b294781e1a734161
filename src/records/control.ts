/**
 * Control batches: what brokers and controllers write into a log for each other. The key of a control record is
 * int16 version, int16 type; the value is the message of the type's schema (its version first for end markers).
 */
import { assert } from '#base/assert.ts'
import { BatchBuilder, type BatchOptions } from './builder.ts'

/** Kafka's numbers of the control record types (KIP-98, 595, 630, 853). Readers skip types that they do not know. */
const CONTROL_TYPES = {
  abort: 0,
  commit: 1,
  leaderChange: 2,
  snapshotHeader: 3,
  snapshotFooter: 4,
  kraftVersion: 5,
  kraftVoters: 6,
} as const
export type ControlType = keyof typeof CONTROL_TYPES

const NAMES = new Map<number, ControlType>(
  (Object.keys(CONTROL_TYPES) as ControlType[]).map(name => [CONTROL_TYPES[name], name]),
)
const KEY_VERSION = 0
const END_MARKER_VERSION = 0

export function controlKey(type: ControlType): Buffer {
  const key = Buffer.allocUnsafe(4)
  key.writeInt16BE(KEY_VERSION, 0)
  key.writeInt16BE(CONTROL_TYPES[type], 2)
  return key
}

/** The type that a control record's key names; undefined if it is none that we know, or no such key. */
export function controlTypeOf(key: Buffer | null): ControlType | undefined {
  if (key === null || key.length < 4 || key.readInt16BE(0) < 0) return undefined
  return NAMES.get(key.readInt16BE(2))
}

export interface ControlRecord {
  readonly type: ControlType
  /** The encoded message of the type's schema. */
  readonly value: Uint8Array
}

/** A batch of raft's control records: leader change, snapshot header and footer, kraft version, voters. */
export function buildControlBatch(
  options: Pick<BatchOptions, 'baseOffset' | 'leaderEpoch'> & { readonly timestamp: number },
  records: readonly ControlRecord[],
): Buffer {
  const { baseOffset, leaderEpoch, timestamp } = options
  const builder = new BatchBuilder({ baseOffset, leaderEpoch, control: true })
  for (const { type, value } of records) builder.append(timestamp, controlKey(type), value)
  return builder.build()
}

export interface EndMarker {
  readonly type: 'commit' | 'abort'
  readonly producerId: number
  readonly producerEpoch: number
  readonly coordinatorEpoch: number
  readonly timestamp: number
}

/** The marker that ends a transaction of a producer in a partition. It has no sequence. */
export function buildEndMarker(
  marker: EndMarker,
  options: Pick<BatchOptions, 'baseOffset' | 'leaderEpoch'> = {},
): Buffer {
  const { producerId, producerEpoch } = marker
  assert(producerId >= 0 && producerEpoch >= 0, 'a transaction has a producer')
  const builder = new BatchBuilder({ ...options, producerId, producerEpoch, transactional: true, control: true })
  const value = Buffer.allocUnsafe(6)
  value.writeInt16BE(END_MARKER_VERSION, 0)
  value.writeInt32BE(marker.coordinatorEpoch, 2)
  builder.append(marker.timestamp, controlKey(marker.type), value)
  return builder.build()
}

/** The coordinator epoch in an end marker's value, of this version or a later one; undefined if it is none. */
export function coordinatorEpochOf(value: Buffer | null): number | undefined {
  if (value === null || value.length < 6 || value.readInt16BE(0) < END_MARKER_VERSION) return undefined
  return value.readInt32BE(2)
}
