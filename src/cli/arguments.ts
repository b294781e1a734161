import { UsageError } from './context.ts'

/** For options that may be given several times. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

export function wholeNumber(name: string, lowest = 0): (text: string) => number {
  return text => {
    const value = Number(text)
    if (!Number.isSafeInteger(value) || value < lowest || text.trim() === '') {
      throw new UsageError(`${name} must be a whole number of at least ${lowest}, not "${text}"`)
    }
    return value
  }
}

/** `name=value`, split at the first equals sign. */
export function pair(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at <= 0) throw new UsageError(`"${text}" is not of the form name=value`)
  return [text.slice(0, at), text.slice(at + 1)]
}

const SIZES: Record<string, number> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }

/** Bytes per second: a number, or with K, M or G so many KiB, MiB or GiB. */
export function byteRate(text: string): number {
  const [, count, unit = ''] = /^(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?(?:\/s)?$/i.exec(text) ?? []
  const rate = Math.round(Number(count) * (SIZES[unit.toLowerCase()] ?? Number.NaN))
  if (count === undefined || !Number.isSafeInteger(rate) || rate < 1) {
    throw new UsageError(`"${text}" is no rate`, 'write bytes per second: 10485760, 512K, 50M, 1G')
  }
  return rate
}

/** A place in a partition as people write it. A negative offset counts from the end. */
export type PlaceText = 'earliest' | 'latest' | { readonly offset: number } | { readonly timestamp: number }

/** beginning (or earliest), end (or latest), an offset, or a time as {@link parseTime} takes it. */
export function parsePlace(text: string, now: number): PlaceText {
  if (text === 'beginning' || text === 'earliest') return 'earliest'
  if (text === 'end' || text === 'latest') return 'latest'
  // Thirteen digits are milliseconds of this century.
  if (/^-?\d{1,12}$/.test(text)) return { offset: Number(text) }
  return { timestamp: parseTime(text, now) }
}

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** A point in time: ISO 8601, milliseconds since 1970, or so long ago (`-90m`, `10m`, `2h`, `1d`). */
export function parseTime(text: string, now: number): number {
  const ago = /^-?(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)$/.exec(text)
  if (ago !== null) return Math.round(now - Number(ago[1]) * (UNITS[ago[2] ?? ''] ?? 0))
  if (/^\d{13,15}$/.test(text)) return Number(text)
  const time = Date.parse(text)
  if (Number.isNaN(time)) {
    throw new UsageError(
      `"${text}" is no place or time`,
      'write 2026-01-31T12:00:00Z, milliseconds since 1970, or how long ago: 10m, 2h, 1d',
    )
  }
  return time
}
