/** Types of configuration values, with their codes in DescribeConfigs (KIP-226, KIP-569). */
export const CONFIG_TYPE_CODES = {
  BOOLEAN: 1,
  STRING: 2,
  INT: 3,
  SHORT: 4,
  LONG: 5,
  DOUBLE: 6,
  LIST: 7,
  CLASS: 8,
  PASSWORD: 9,
} as const
export type ConfigType = keyof typeof CONFIG_TYPE_CODES
/** DescribeConfigs' type of a key that is in no table. */
export const CONFIG_TYPE_UNKNOWN = 0

/**
 * A parsed value. Whole numbers outside the safe range become ±`UNLIMITED`: as a limit, a time or a size they mean that,
 * and a rounded number would be a lie. What is shown back is always made from the text.
 */
export type ConfigValue = boolean | number | string | readonly string[] | null
export const UNLIMITED = Number.POSITIVE_INFINITY

export type Parsed = { readonly value: ConfigValue; readonly text: string } | { readonly problem: string }

const WHOLE_RANGES: Partial<Record<ConfigType, readonly [bigint, bigint]>> = {
  SHORT: [-(2n ** 15n), 2n ** 15n - 1n],
  INT: [-(2n ** 31n), 2n ** 31n - 1n],
  LONG: [-(2n ** 63n), 2n ** 63n - 1n],
}
/** Longest value that is looked at: a list of throttled replicas of a large topic fits. */
const TEXT_LENGTH_MAX = 1 << 20

/**
 * Reads the text of a value as Kafka's ConfigDef does; `text` of the answer is its normal form, which DescribeConfigs shows
 * (`" 5 "` is `5`, `TRUE` is `true`, `a , b` is `a,b`). `problem` completes "it …".
 */
export function parseValue(type: ConfigType, given: string): Parsed {
  if (given.length > TEXT_LENGTH_MAX) return { problem: `must be at most ${TEXT_LENGTH_MAX} characters` }
  const trimmed = given.trim()
  switch (type) {
    case 'BOOLEAN': {
      const lower = trimmed.toLowerCase()
      if (lower !== 'true' && lower !== 'false') return { problem: 'must be true or false' }
      return { value: lower === 'true', text: lower }
    }
    case 'INT':
    case 'SHORT':
    case 'LONG':
      return parseWhole(type, trimmed)
    case 'DOUBLE': {
      if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?$/.test(trimmed)) return { problem: 'must be a number' }
      const value = Number(trimmed.replace(/[fFdD]$/, ''))
      return { value, text: formatDouble(value) }
    }
    case 'LIST': {
      const items = trimmed === '' ? [] : trimmed.split(/\s*,\s*/)
      return { value: items, text: items.join(',') }
    }
    case 'PASSWORD':
      return { value: trimmed, text: given }
    case 'STRING':
    case 'CLASS':
      return { value: trimmed, text: trimmed }
  }
}

function parseWhole(type: ConfigType, text: string): Parsed {
  const [min, max] = WHOLE_RANGES[type] ?? [0n, 0n]
  const problem = `must be a whole number from ${min} to ${max}`
  if (text.length > 40 || !/^[+-]?\d+$/.test(text)) return { problem }
  const exact = BigInt(text.replace('+', ''))
  if (exact < min || exact > max) return { problem }
  const near = Number(exact)
  const value = Number.isSafeInteger(near) ? near : near > 0 ? UNLIMITED : -UNLIMITED
  return { value, text: exact.toString() }
}

/** A double as Java prints it, which is how Kafka shows it: 0.5, 1.0, 1.7976931348623157E308. */
function formatDouble(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity'
  if (value === 0) return '0.0'
  const size = Math.abs(value)
  if (size >= 1e-3 && size < 1e7) {
    const plain = value.toString()
    return plain.includes('.') ? plain : `${plain}.0`
  }
  const [digits = '0', exponent = '0'] = value.toExponential().split('e')
  return `${digits.includes('.') ? digits : `${digits}.0`}E${Number(exponent)}`
}
