import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { BROKER_CONFIGS, brokerConfigChain, brokerDefinition } from './broker.ts'
import { CLIENT_METRICS_CONFIGS } from './client-metrics.ts'
import { type ConfigDefinition, type ConfigTable, checkValue } from './definition.ts'
import { GROUP_CONFIGS } from './group.ts'
import { TOPIC_CONFIGS } from './topic.ts'

const reference = new URL('../../../../shared/reference/configs-4.3.1.tsv', import.meta.url)
/** SHA-256 of the sorted topic, broker and group lines of Kafka 4.3.1's own definitions. */
const AGREED = '8cb437b3ee370d91dd528cfa304511f6d09dffd1ba0c4d9df3c3998a532741a3'
/** Keys that Kafka defines beside its broker's table, for dynamic configuration only. */
const DYNAMIC_ONLY = [
  'follower.replication.throttled.rate',
  'leader.replication.throttled.rate',
  'replica.alter.log.dirs.io.max.bytes.per.second',
]
const tables = { broker: BROKER_CONFIGS, group: GROUP_CONFIGS, topic: TOPIC_CONFIGS }

function defaultColumn({ type, required, default: text }: ConfigDefinition): string {
  if (required === true) return '(required)'
  if (text === null) return 'null'
  if (type === 'LIST') return `[${text.split(',').join(', ')}]`
  return type === 'CLASS' ? `class ${text}` : text
}

const lines = Object.entries(tables)
  .flatMap(([scope, table]: [string, ConfigTable]) =>
    [...table.values()]
      .filter(({ name }) => !DYNAMIC_ONLY.includes(name))
      .map(definition =>
        [
          scope,
          definition.name,
          definition.type,
          defaultColumn(definition),
          definition.validator?.allowed ?? '',
          definition.internal === true ? 'internal' : '',
        ].join('\t'),
      ),
  )
  .sort()

test('every name, type, default, allowed value and mark is that of Kafka 4.3.1', t => {
  if (existsSync(reference)) {
    const theirs = readFileSync(reference, 'utf8')
      .split('\n')
      .filter(line => /^(?:topic|broker|group)\t/.test(line))
    assert.deepEqual(lines, theirs.sort())
  } else t.diagnostic('shared/reference is absent: only the hash of its lines is compared')
  assert.equal(createHash('sha256').update(lines.join('\n')).digest('hex'), AGREED)
})

test('every default is valid, in normal form, and every key is documented', () => {
  for (const table of [...Object.values(tables), CLIENT_METRICS_CONFIGS])
    for (const definition of table.values()) {
      assert.match(definition.documentation, /^[A-Z`].*\.$/s, definition.name)
      if (definition.default === null) continue
      const checked = checkValue(definition, definition.default)
      assert.ok('text' in checked, `${definition.name}: ${JSON.stringify(checked)}`)
      assert.equal(checked.text, definition.default, definition.name)
    }
})

test('synonyms of topics and groups are keys of the broker with the same default', () => {
  for (const table of [TOPIC_CONFIGS, GROUP_CONFIGS])
    for (const { name, synonyms, default: byDefault } of table.values())
      for (const [index, synonym] of (synonyms ?? []).entries()) {
        const broker = BROKER_CONFIGS.get(synonym)
        assert.ok(broker, synonym)
        if (index === 0 && broker.default !== null) assert.equal(broker.default, byDefault, name)
      }
})

test('the keys that change while a broker runs are those of Kafka 4.3.1, but for its listeners', () => {
  const fixed = ['listeners', 'listener.security.protocol.map']
  for (const name of fixed) assert.equal(BROKER_CONFIGS.get(name)?.update, 'read-only')
  const hash = (mode: string) => {
    const names = [...BROKER_CONFIGS.values()].filter(({ update }) => update === mode).map(({ name }) => name)
    if (mode === 'per-broker') names.push(...fixed)
    return createHash('sha256').update(names.sort().join('\n')).digest('hex')
  }
  assert.equal(hash('per-broker'), '1e83ff4755d838d8c9dedcd3ca525909b09429a3f945e7b302dfb6840108eabd')
  assert.equal(hash('cluster-wide'), '643cc98b307a935f70629ed3929546423b09568540cef3c22699cd794c7db664')
})

test('a key with the prefix of a listener has the definition and the chain of the plain one', () => {
  assert.equal(brokerDefinition('listener.name.x.max.connections')?.name, 'max.connections')
  assert.equal(brokerDefinition('listener.name.x.plain.sasl.jaas.config')?.type, 'PASSWORD')
  assert.deepEqual(brokerConfigChain('listener.name.x.max.connections'), [
    'listener.name.x.max.connections',
    'max.connections',
  ])
  assert.deepEqual(brokerConfigChain('log.retention.hours'), [
    'log.retention.ms',
    'log.retention.minutes',
    'log.retention.hours',
  ])
})

test('a broker setting that is said to work is read by some part', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const texts = globSync('**/*.ts', { cwd: root })
    .filter(path => !path.endsWith('.test.ts') && !/core.config.(?:broker-|group|removed)/.test(path))
    .map(path => readFileSync(`${root}/${path}`, 'utf8'))
  const text = texts.join('')
  const unread = [...BROKER_CONFIGS.values()].filter(
    ({ implemented, name }) => implemented && !text.includes(`'${name}'`),
  )
  assert.deepEqual(
    unread.map(({ name }) => name),
    [],
  )
})
