import { BROKER_CONFIGS, brokerDefinition } from './broker.ts'
import { nearestName } from './nearest.ts'
import { REMOVED_CONFIGS } from './removed.ts'

/** One setting and where it was found ("KAFKA_NODE_ID", "server.properties:12", "--override"). */
export interface Setting {
  readonly key: string
  readonly value: string
  readonly source: string
}

/** Variables of ours that are no broker configuration. */
const OWN_VARIABLES = new Set(['TIDEMARK_BOOTSTRAP', 'TIDEMARK_LOG_LEVEL', 'TIDEMARK_LOG_FORMAT', 'TIDEMARK_NO_NATIVE'])

/**
 * Settings from environment variables: `TIDEMARK_LOG_RETENTION_MS` and, as Kafka's container image has them,
 * `KAFKA_LOG_RETENTION_MS` for `log.retention.ms`; in both, `__` is an underscore and `___` a dash. All of TIDEMARK_ is
 * ours. KAFKA_ is shared with scripts (KAFKA_HEAP_OPTS), so what is no configuration there is left alone and reported.
 * Where both name one key, TIDEMARK_ wins (it comes later in the list).
 */
export function environmentSettings(environment: Readonly<Record<string, string | undefined>>): {
  readonly settings: readonly Setting[]
  readonly notices: readonly string[]
} {
  const kafka: Setting[] = []
  const own: Setting[] = []
  const notices: string[] = []
  for (const source of Object.keys(environment).sort()) {
    const value = environment[source]
    if (value === undefined || OWN_VARIABLES.has(source)) continue
    if (source.startsWith('TIDEMARK_')) own.push({ key: keyOf(source.slice('TIDEMARK_'.length)), value, source })
    else if (source.startsWith('KAFKA_')) {
      const key = keyOf(source.slice('KAFKA_'.length))
      if (brokerDefinition(key) !== undefined || REMOVED_CONFIGS.has(key)) kafka.push({ key, value, source })
      else notices.push(ignored(source, key))
    }
  }
  return { settings: [...kafka, ...own], notices }
}

function ignored(source: string, key: string): string {
  const nearest = nearestName(key, BROKER_CONFIGS.keys())
  const meant = nearest === undefined ? '' : ` Did you mean KAFKA_${nearest.replaceAll('.', '_').toUpperCase()}?`
  return `${source} is ignored: ${key} is not a broker configuration.${meant}`
}

function keyOf(name: string): string {
  return name.toLowerCase().replace(/_{1,3}/g, run => (run.length === 1 ? '.' : run.length === 2 ? '_' : '-'))
}

/** Reads `key=value` of an `--override` flag. */
export function overrideSetting(text: string): Setting | { readonly problem: string } {
  const at = text.indexOf('=')
  if (at <= 0) return { problem: `a setting is written key=value, and "${text}" is not.` }
  return { key: text.slice(0, at).trim(), value: text.slice(at + 1), source: '--override' }
}
