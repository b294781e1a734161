import { assert } from '#base/assert.ts'
import { nearestName } from './nearest.ts'
import { type ConfigType, type Parsed, parseValue } from './value.ts'

/** When a broker takes up a changed value: at its next start, when changed for it alone, or also for the whole cluster. */
export type UpdateMode = 'read-only' | 'per-broker' | 'cluster-wide'

/** What a value must be beside its type. `allowed` is Kafka's notation for it, as documentation shows it. */
export interface Validator {
  readonly allowed: string
  /** What is wrong, as the end of a sentence ("must be at least 1"), or undefined. */
  check(parsed: Exclude<Parsed, { problem: string }>): string | undefined
}

/** One configuration key. Texts of values are those on the wire. */
export interface ConfigDefinition {
  readonly name: string
  readonly type: ConfigType
  /** null: nothing is set (another key, or a rule in the documentation, decides). */
  readonly default: string | null
  /** Kafka refuses to start without it; we have a default for a node that is given nothing (`server.ts`). */
  readonly required?: boolean
  readonly validator?: Validator
  /** One or two sentences: shape, unit, effect. */
  readonly documentation: string
  readonly update: UpdateMode
  /** Shown by DescribeConfigs only where somebody set it. */
  readonly internal?: boolean
  /** Keys of the broker that stand for it, the one that wins first. */
  readonly synonyms?: readonly string[]
  /** False: taken and shown, without effect so far. */
  readonly implemented: boolean
  /** What any value but the default would need and we do not have yet; such a value is refused, never ignored. */
  readonly needs?: string
}
export type ConfigTable = ReadonlyMap<string, ConfigDefinition>

type Trait = Partial<ConfigDefinition>
type Define = (
  name: string,
  byDefault: string | number | boolean | null,
  documentation: string,
  ...traits: Trait[]
) => ConfigDefinition

const definer =
  (type: ConfigType): Define =>
  (name, byDefault, documentation, ...traits) =>
    Object.assign(
      {
        name,
        type,
        default: byDefault === null ? null : String(byDefault),
        documentation,
        update: 'read-only',
        implemented: false,
      } satisfies ConfigDefinition,
      ...traits,
    )

export const boolean = definer('BOOLEAN')
export const string = definer('STRING')
export const int = definer('INT')
export const short = definer('SHORT')
export const long = definer('LONG')
export const double = definer('DOUBLE')
export const list = definer('LIST')
export const className = definer('CLASS')
export const password = definer('PASSWORD')

/** The largest int64, which configurations use for "no limit". As text, because a number would round it. */
export const LONG_MAX = '9223372036854775807'

export const works: Trait = { implemented: true }
export const internal: Trait = { internal: true }
export const required: Trait = { required: true }
export const perBroker: Trait = { update: 'per-broker' }
export const clusterWide: Trait = { update: 'cluster-wide' }
export const needs = (what: string): Trait => ({ needs: what })
export const standsFor = (...synonyms: string[]): Trait => ({ synonyms })

/** A number from `min` to `max`, both included. */
export function between(min: number | undefined, max: number | undefined): Trait {
  return {
    validator: {
      allowed: `[${min === undefined ? '' : `${min},`}...${max === undefined ? ']' : `,${max}]`}`,
      check({ value }) {
        if (typeof value !== 'number') return undefined
        if (min !== undefined && value < min) return `must be at least ${min}`
        if (max !== undefined && value > max) return `must be at most ${max}`
        return undefined
      },
    },
  }
}
export const atLeast = (min: number): Trait => between(min, undefined)

export function oneOf(...values: string[]): Trait {
  return {
    validator: {
      allowed: `[${values.join(', ')}]`,
      check: ({ value }) => (values.includes(String(value)) ? undefined : `must be one of ${values.join(', ')}`),
    },
  }
}

export function oneOfAnyCase(...values: string[]): Trait {
  const lower = values.map(value => value.toLowerCase())
  return {
    validator: {
      allowed: `(case insensitive) [${values.join(', ')}]`,
      check: ({ value }) =>
        lower.includes(String(value).toLowerCase()) ? undefined : `must be one of ${values.join(', ')}, in any case`,
    },
  }
}

export function listOf(...values: string[]): Trait {
  return {
    validator: {
      allowed: `[${values.join(', ')}]`,
      check({ value }) {
        const wrong = (Array.isArray(value) ? value : []).find(item => !values.includes(item))
        return wrong === undefined
          ? undefined
          : `must be a list of ${values.join(', ')}, and "${wrong}" is none of them`
      },
    },
  }
}

export function checkedBy(allowed: string, check: Validator['check']): Trait {
  return { validator: { allowed, check } }
}

export const nonEmpty: Trait = checkedBy('non-empty string', ({ value }) =>
  value === '' ? 'must not be empty' : undefined,
)

export function tableOf(...definitions: ConfigDefinition[]): ConfigTable {
  const table = new Map(definitions.map(definition => [definition.name, definition] as const))
  assert(table.size === definitions.length, 'a configuration key is defined twice')
  return table
}

/** Reads and checks one value. `problem` completes "it …". */
export function checkValue(definition: ConfigDefinition, text: string): Parsed {
  const parsed = parseValue(definition.type, text)
  if ('problem' in parsed) return parsed
  const problem = definition.validator?.check(parsed)
  return problem === undefined ? parsed : { problem }
}

/** What is wrong with a setting, for people: key, value, what is allowed, what was probably meant. */
export interface ConfigProblem {
  readonly name: string
  readonly message: string
  /** The known key that is nearest to an unknown one. */
  readonly nearest?: string
}

export function invalidValue(definition: ConfigDefinition, text: string, problem: string): ConfigProblem {
  const shown =
    definition.type === 'PASSWORD' ? 'the given value' : `"${text.length > 200 ? `${text.slice(0, 200)}…` : text}"`
  return { name: definition.name, message: `${definition.name} cannot be ${shown}: it ${problem}.` }
}

export function unknownKey(kind: string, name: string, table: ConfigTable): ConfigProblem {
  const nearest = nearestName(name, table.keys())
  const message = `${name} is not a ${kind} configuration.`
  return nearest === undefined ? { name, message } : { name, message: `${message} Did you mean ${nearest}?`, nearest }
}

/** Problems of one resource after which the rest is not looked at: a request may hold any number of wrong keys. */
const PROBLEMS_MAX = 20

/** Checks every setting of one resource by itself; what concerns several together is the table's own affair. */
export function validateEach(
  kind: string,
  table: ConfigTable,
  entries: Iterable<readonly [string, string]>,
): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  for (const [name, text] of entries) {
    if (problems.length === PROBLEMS_MAX) break
    const definition = table.get(name)
    if (definition === undefined) {
      problems.push(unknownKey(kind, name, table))
      continue
    }
    const checked = checkValue(definition, text)
    if ('problem' in checked) problems.push(invalidValue(definition, text, checked.problem))
  }
  return problems
}
