import { ErrorCode } from '#protocol/errors.ts'
import type { Overrides } from './broker-configs.ts'
import {
  type ConfigDefinition,
  type ConfigTable,
  checkValue,
  int,
  invalidValue,
  list,
  tableOf,
  unknownKey,
} from './definition.ts'

const { INVALID_CONFIG, INVALID_REQUEST } = ErrorCode
const INTERVAL_MS_MIN = 100
const INTERVAL_MS_MAX = 3_600_000
const MATCHED = [
  'client_instance_id',
  'client_id',
  'client_software_name',
  'client_software_version',
  'client_source_address',
  'client_source_port',
]

/** Every configuration of a client metrics subscription (resource type CLIENT_METRICS, KIP-714). */
export const CLIENT_METRICS_CONFIGS: ConfigTable = tableOf(
  ...[
    int('interval.ms', 300000, 'Milliseconds between two pushes of metrics by a client, from 100 to 3600000.'),
    list(
      'match',
      '',
      `Which clients are meant: pairs \`selector=regular expression\` that must all hold, of the selectors ${MATCHED.join(', ')}. Empty means every client.`,
    ),
    list(
      'metrics',
      '',
      'Prefixes of the names of the metrics that clients push; `*` for all of them. Empty asks for none.',
    ),
  ].map(definition => ({ ...definition, update: 'cluster-wide' }) as ConfigDefinition),
)

/** Checks a subscription as it would stand. Kafka answers some of it as a wrong request and some as a wrong configuration. */
export function clientMetricsFailure(
  entries: Overrides,
): { readonly errorCode: number; readonly message: string } | undefined {
  for (const [name, text] of entries) {
    const definition = CLIENT_METRICS_CONFIGS.get(name)
    if (definition === undefined)
      return { errorCode: INVALID_REQUEST, message: unknownKey('client metrics', name, CLIENT_METRICS_CONFIGS).message }
    const checked = checkValue(definition, text)
    if ('problem' in checked)
      return { errorCode: INVALID_CONFIG, message: invalidValue(definition, text, checked.problem).message }
    if (
      name === 'interval.ms' &&
      typeof checked.value === 'number' &&
      (checked.value < INTERVAL_MS_MIN || checked.value > INTERVAL_MS_MAX)
    )
      return {
        errorCode: INVALID_REQUEST,
        message: invalidValue(definition, text, `must be from ${INTERVAL_MS_MIN} to ${INTERVAL_MS_MAX} milliseconds`)
          .message,
      }
    if (name === 'match' && Array.isArray(checked.value)) {
      const wrong = checked.value.find(pattern => !isPattern(pattern))
      if (wrong !== undefined)
        return {
          errorCode: INVALID_CONFIG,
          message: invalidValue(
            definition,
            wrong,
            `must be selector=regular expression with one of the selectors ${MATCHED.join(', ')}`,
          ).message,
        }
    }
  }
  return undefined
}

function isPattern(pattern: string): boolean {
  const [selector = '', expression, ...more] = pattern.split('=')
  if (!MATCHED.includes(selector.trim()) || expression === undefined || more.length > 0) return false
  try {
    return new RegExp(expression.trim(), 'u') instanceof RegExp
  } catch {
    return false
  }
}
