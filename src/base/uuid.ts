/**
 * A 16-byte id, kept in the form in which Kafka prints and stores it: 22 characters of URL-safe base64 without
 * padding. A string compares, hashes and prints without a thought.
 */
export type Uuid = string

export const ZERO_UUID: Uuid = 'AAAAAAAAAAAAAAAAAAAAAA'
/** The topic id of `__cluster_metadata`: the number 1. */
export const METADATA_TOPIC_ID: Uuid = 'AAAAAAAAAAAAAAAAAAAAAQ'

export function uuidFromBytes(bytes: Uint8Array, at = 0): Uuid {
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, 16).toString('base64url')
}

export function uuidToBytes(uuid: Uuid): Buffer {
  return Buffer.from(uuid, 'base64url')
}

export function isUuid(text: string): boolean {
  return /^[A-Za-z0-9_-]{21}[AQgw]$/.test(text)
}

/** A fresh version 4 id from 16 random bytes, which it may change. Never one with a leading dash, as in Kafka: tools take those for options. */
export function uuidFromRandom(random: (into: Uint8Array) => Uint8Array): Uuid {
  for (;;) {
    const bytes = random(new Uint8Array(16))
    bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40
    bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
    const uuid = uuidFromBytes(bytes)
    if (!uuid.startsWith('-')) return uuid
  }
}
