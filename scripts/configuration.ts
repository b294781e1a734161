import { readFileSync, writeFileSync } from 'node:fs'
import { BROKER_SECTIONS } from '#core/config/broker.ts'
import { CLIENT_METRICS_CONFIGS } from '#core/config/client-metrics.ts'
import type { ConfigDefinition } from '#core/config/definition.ts'
import { GROUP_CONFIGS } from '#core/config/group.ts'
import { REMOVED_CONFIGS } from '#core/config/removed.ts'
import { TOPIC_CONFIGS } from '#core/config/topic.ts'

/** Writes docs/configuration.md from the tables; with --check it only says whether the page is up to date. */
const page = new URL('../docs/configuration.md', import.meta.url)

const cell = (text: string): string => text.replaceAll('|', '\\|')

function row(definition: ConfigDefinition, mode: boolean): string {
  const { name, type, validator, documentation, update, implemented, needs, synonyms } = definition
  const byDefault =
    definition.default === null ? '' : definition.default === '' ? '(empty)' : `\`${definition.default}\``
  const notes = [
    documentation,
    synonyms === undefined ? '' : `Broker: ${synonyms.map(key => `\`${key}\``).join(', then ')}.`,
    needs !== undefined
      ? `_Only the default: ${needs} is not supported yet._`
      : implemented
        ? ''
        : '_Without effect yet._',
  ]
  const cells = [
    `\`${name}\``,
    type.toLowerCase(),
    byDefault,
    validator?.allowed ?? '',
    ...(mode ? [update] : []),
    notes.filter(note => note !== '').join(' '),
  ]
  return `| ${cells.map(cell).join(' | ')} |`
}

function table(definitions: Iterable<ConfigDefinition>, mode = false): string[] {
  const head = ['key', 'type', 'default', 'allowed', ...(mode ? ['changed'] : []), 'meaning']
  const rows = [...definitions].sort((a, b) => (a.name < b.name ? -1 : 1)).map(definition => row(definition, mode))
  return [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...rows, '']
}

const text = [
  '# Configuration',
  '',
  'Made from the tables in `src/core/config` by `scripts/configuration.ts`. The keys are those of Apache Kafka 4.3.',
  '',
  '## Where settings come from',
  '',
  'A node reads, and later ones win:',
  '',
  "1. a properties file (`--config server.properties`), in Java's format;",
  "2. environment variables: `TIDEMARK_LOG_RETENTION_MS` or, as in Kafka's container image, `KAFKA_LOG_RETENTION_MS` for `log.retention.ms`; `__` is an underscore, `___` a dash;",
  '3. `--override key=value`, as often as needed, and flags of their own.',
  '',
  'While it runs, settings that were altered for one broker win over those altered for the whole cluster, those over what',
  "the node was started with, and that over the defaults. A topic's or group's own setting wins over all of them.",
  '',
  'A setting that is unknown, impossible or not supported yet keeps the node from starting; all of them are named at once.',
  'Settings marked "without effect yet" are taken, shown and logged at the start.',
  '',
  '## A node that is given nothing',
  '',
  '| key | value |',
  '| --- | --- |',
  '| `node.id` | 1 |',
  '| `process.roles` | broker,controller |',
  '| `listeners` | PLAINTEXT://:9092,CONTROLLER://127.0.0.1:9093 (where only `listeners` is given, the controller takes a free port on 127.0.0.1) |',
  '| `advertised.listeners` | nothing: each client is told the address that it dialled |',
  '| `log.dirs` | ./data |',
  '',
  'Internal topics (`__consumer_offsets`, `__transaction_state`, `__share_group_state`) get the copies that are configured, 3 by',
  'default, but never more than there are brokers, so that a single node works as it comes. Kafka waits for more brokers instead.',
  '',
  '## Topics',
  '',
  ...table(TOPIC_CONFIGS.values()),
  '## Groups',
  '',
  ...table(GROUP_CONFIGS.values()),
  '## Client metrics subscriptions',
  '',
  ...table(CLIENT_METRICS_CONFIGS.values()),
  '## Brokers',
  '',
  '"Changed" says how a setting changes: `read-only` at a start, `per-broker` while it runs for one broker, `cluster-wide` also for all.',
  '',
  ...BROKER_SECTIONS.flatMap(([heading, definitions]) => [`### ${heading}`, '', ...table(definitions, true)]),
  '## Keys that Kafka removed',
  '',
  '| key | instead |',
  '| --- | --- |',
  ...[...REMOVED_CONFIGS].map(([key, instead]) => `| \`${key}\` | ${cell(instead)} |`),
  '',
].join('\n')

if (process.argv.includes('--check')) {
  if (readFileSync(page, 'utf8') !== text) {
    console.error('docs/configuration.md is out of date: run node scripts/configuration.ts')
    process.exitCode = 1
  }
} else writeFileSync(page, text)
