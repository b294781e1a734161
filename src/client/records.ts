import type { Millis, Offset } from '#base/units.ts'
import type { HeaderToAppend } from '#records/builder.ts'
import { ClientError } from './errors.ts'

export type Bytes = Uint8Array | string | null

/** A record to send. Strings are sent as UTF-8. */
export interface NewRecord {
  readonly value: Bytes
  readonly key?: Bytes | undefined
  readonly headers?: readonly { readonly key: string; readonly value: Bytes }[] | Readonly<Record<string, Bytes>>
  /** By the key where it is left out, or where batches are filling. */
  readonly partition?: number | undefined
  /** Milliseconds since 1970; now where it is left out. */
  readonly timestamp?: Millis | undefined
}

export interface ConsumedRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: Offset
  /** Milliseconds since 1970; -1 where the record has none. */
  readonly timestamp: Millis
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly { readonly key: string; readonly value: Buffer | null }[]
}

export function toBytes(value: Bytes | undefined): Uint8Array | null {
  if (value === null || value === undefined) return null
  return typeof value === 'string' ? Buffer.from(value) : value
}

const NO_HEADERS: readonly HeaderToAppend[] = []

export function toHeaders(headers: NewRecord['headers']): readonly HeaderToAppend[] {
  if (headers === undefined) return NO_HEADERS
  if (isList(headers)) return headers.map(({ key, value }) => ({ key, value: toBytes(value) }))
  return Object.entries(headers).map(([key, value]) => ({ key, value: toBytes(value) }))
}

function isList(headers: NonNullable<NewRecord['headers']>): headers is readonly { key: string; value: Bytes }[] {
  return Array.isArray(headers)
}

export function checkTimestamp(timestamp: Millis): void {
  if (!Number.isSafeInteger(timestamp) || timestamp < -1) {
    throw new ClientError('INVALID_ARGUMENT', `${timestamp} is no time of a record`, {
      hint: 'give whole milliseconds since 1970',
    })
  }
}
