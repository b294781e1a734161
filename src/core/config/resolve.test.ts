import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  applyIncremental,
  type ConfigOperation,
  INVALID_CONFIG,
  INVALID_REQUEST,
  initialTopicConfigs,
  replaceAll,
} from './alter.ts'
import { BrokerConfigs, CONFIG_SOURCE } from './broker-configs.ts'
import { describe } from './resolve.ts'
import { resolveTopic, validateTopicConfigs } from './topic.ts'
import { UNLIMITED } from './value.ts'

const map = (entries: Record<string, string>): ReadonlyMap<string, string> => new Map(Object.entries(entries))
const plain = new BrokerConfigs({ nodeId: 1 })
const none = map({})

test('dynamic per broker wins over the cluster, that over the file, that over the default; a topic over all', () => {
  const layers = {
    fixed: map({ 'message.max.bytes': '4' }),
    dynamicDefault: map({ 'message.max.bytes': '3' }),
    dynamic: map({ 'message.max.bytes': '2' }),
  }
  const own = map({ 'max.message.bytes': '1' })
  const bytes = (overrides: ReadonlyMap<string, string>, broker: BrokerConfigs) =>
    resolveTopic(overrides, broker).maxMessageBytes
  assert.equal(bytes(own, new BrokerConfigs(layers)), 1)
  assert.equal(bytes(none, new BrokerConfigs(layers)), 2)
  assert.equal(bytes(none, new BrokerConfigs({ ...layers, dynamic: none })), 3)
  assert.equal(bytes(none, new BrokerConfigs({ fixed: layers.fixed })), 4)
  assert.equal(bytes(none, plain), 1048588)
})

test('chains of units end in milliseconds, the finer key first', () => {
  const retention = (fixed: Record<string, string>) =>
    resolveTopic(none, new BrokerConfigs({ fixed: map(fixed) })).retentionMs
  assert.equal(retention({}), 604800000)
  assert.equal(retention({ 'log.retention.hours': '1' }), 3600000)
  assert.equal(retention({ 'log.retention.hours': '1', 'log.retention.minutes': '2' }), 120000)
  assert.equal(retention({ 'log.retention.minutes': '2', 'log.retention.ms': '3' }), 3)
  assert.equal(retention({ 'log.retention.hours': '-1' }), -1)
  assert.equal(retention({ 'log.retention.ms': '-5' }), -1)
  const config = resolveTopic(
    none,
    new BrokerConfigs({ fixed: map({ 'log.roll.hours': '2', 'log.flush.scheduler.interval.ms': '7' }) }),
  )
  assert.equal(config.segmentMs, 7200000)
  assert.equal(config.flushMs, 7)
  assert.equal(config.flushMessages, UNLIMITED)
})

test('one key asked is one key answered, and twice gives the same', () => {
  const topic = { type: 'topic', overrides: map({ 'retention.ms': '604800000' }), broker: plain } as const
  const asked = { keys: ['retention.ms', 'no.such.key'], includeSynonyms: true, includeDocumentation: true }
  const [entry, ...more] = describe(topic, asked)
  assert.deepEqual(more, [])
  assert.deepEqual(describe(topic, asked), [entry])
  // Set to a value that equals the default: it is set.
  assert.equal(entry?.configSource, CONFIG_SOURCE.TOPIC)
  assert.equal(entry?.isDefault, false)
  assert.equal(entry?.configType, 5)
  assert.deepEqual(entry?.synonyms, [{ name: 'retention.ms', value: '604800000', source: 1 }])
  assert.equal(describe({ ...topic, overrides: none }, asked)[0]?.isDefault, true)
  assert.equal(describe(topic, { keys: [] }).length, 33)
})

test('synonyms come by precedence', () => {
  const broker = plain.with({
    dynamic: map({ 'log.retention.ms': '1' }),
    dynamicDefault: map({ 'log.retention.ms': '2' }),
    fixed: map({ 'log.retention.hours': '3' }),
  })
  const [entry] = describe(
    { type: 'topic', overrides: map({ 'retention.ms': '0' }), broker },
    { keys: ['retention.ms'], includeSynonyms: true },
  )
  assert.deepEqual(
    entry?.synonyms.map(({ name, value, source }) => `${source} ${name}=${value}`),
    [
      '1 retention.ms=0',
      '2 log.retention.ms=1',
      '3 log.retention.ms=2',
      '4 log.retention.hours=3',
      '5 log.retention.hours=168',
    ],
  )
})

test('secrets, and keys that nobody knows, are never shown', () => {
  const broker = plain.with({ fixed: map({ 'ssl.key.password': 'geheim', 'my.plugin.token': 'geheim' }) })
  const entries = describe({ type: 'broker', broker }, { includeSynonyms: true })
  assert.ok(!JSON.stringify(entries).includes('geheim'))
  for (const name of ['ssl.key.password', 'my.plugin.token']) {
    const entry = entries.find(each => each.name === name)
    assert.equal(entry?.isSensitive, true)
    assert.equal(entry?.configSource, CONFIG_SOURCE.STATIC_BROKER)
  }
  assert.equal(entries.length, 341)
})

const set = (name: string, value: string | null): ConfigOperation => ({ name, operation: 0, value })
const topicOf = (overrides: Record<string, string>) =>
  ({ type: 'topic', overrides: map(overrides), broker: plain }) as const

test('incremental changes: set, delete, append, subtract', () => {
  const altered = applyIncremental(topicOf({ 'retention.ms': '5', 'cleanup.policy': 'delete' }), [
    { name: 'retention.ms', operation: 1, value: null },
    { name: 'cleanup.policy', operation: 2, value: 'compact' },
    set('segment.ms', '9'),
  ])
  assert.ok('changes' in altered)
  assert.deepEqual(
    [...altered.overrides],
    [
      ['cleanup.policy', 'delete,compact'],
      ['segment.ms', '9'],
    ],
  )
  assert.equal(altered.changes.get('retention.ms'), null)
  const subtracted = applyIncremental(topicOf({}), [{ name: 'cleanup.policy', operation: 3, value: 'delete' }])
  assert.equal('overrides' in subtracted && subtracted.overrides.get('cleanup.policy'), '')
  const unchanged = applyIncremental(topicOf({ 'retention.ms': '5' }), [set('retention.ms', '5')])
  assert.equal('changes' in unchanged && unchanged.changes.size, 0)
})

test('incremental changes that are refused', () => {
  const code = (...operations: ConfigOperation[]) => {
    const altered = applyIncremental(topicOf({ 'min.compaction.lag.ms': '10' }), operations)
    return 'errorCode' in altered ? altered.errorCode : 0
  }
  assert.equal(code(set('retention.ms', '1'), set('retention.ms', '1')), INVALID_REQUEST)
  assert.equal(code(set('retention.ms', null)), INVALID_REQUEST)
  assert.equal(code({ name: 'retention.ms', operation: 4, value: '1' }), INVALID_REQUEST)
  assert.equal(code({ name: 'retention.ms', operation: 2, value: '1' }), INVALID_CONFIG)
  assert.equal(code(set('message.format.version', '3.0')), INVALID_CONFIG)
  assert.equal(code(set('max.compaction.lag.ms', '5')), INVALID_CONFIG)
  assert.equal(code(set('remote.storage.enable', 'true')), INVALID_CONFIG)
  assert.equal(code({ name: 'unknown', operation: 1, value: null }), 0)
})

test('AlterConfigs replaces everything; a new topic may not have a null', () => {
  const altered = replaceAll(topicOf({ 'retention.ms': '5' }), [{ name: 'segment.ms', value: '7' }])
  assert.ok('changes' in altered)
  assert.deepEqual([...altered.overrides], [['segment.ms', '7']])
  const created = initialTopicConfigs([{ name: 'retention.ms', value: null }], plain)
  assert.equal('errorCode' in created && created.errorCode, INVALID_CONFIG)
})

test('the message names key, value, what is allowed, and what was probably meant', () => {
  const [wrong] = validateTopicConfigs(map({ 'segment.bytes': '5' }), plain)
  assert.equal(wrong?.message, 'segment.bytes cannot be "5": it must be at least 1048576.')
  const [unknown] = validateTopicConfigs(map({ 'retention.msec': '5' }), plain)
  assert.equal(unknown?.message, 'retention.msec is not a topic configuration. Did you mean retention.ms?')
  assert.equal(validateTopicConfigs(map({ 'segment.bytes': '5', x: '1' }), plain).length, 2)
})

test('brokers: what changes where, and how far', () => {
  const code = (type: 'broker' | 'broker-default', name: string, value: string) => {
    const altered = applyIncremental({ type, overrides: none, broker: plain }, [set(name, value)])
    return 'errorCode' in altered ? altered.errorCode : 0
  }
  assert.equal(code('broker', 'log.retention.ms', '1000'), 0)
  assert.equal(code('broker', 'log.retention.hours', '5'), INVALID_REQUEST)
  assert.equal(code('broker-default', 'cordoned.log.dirs', '*'), INVALID_REQUEST)
  assert.equal(code('broker', 'cordoned.log.dirs', '*'), 0)
  assert.equal(code('broker', 'num.io.threads', '16'), 0)
  assert.equal(code('broker', 'num.io.threads', '17'), INVALID_REQUEST)
  assert.equal(code('broker', 'num.io.threads', '3'), INVALID_REQUEST)
  assert.equal(code('broker', 'log.cleaner.dedupe.buffer.size', '5'), INVALID_REQUEST)
  assert.equal(code('broker', 'group.consumer.assignment.interval.ms', '20000'), INVALID_REQUEST)
  assert.equal(code('broker', 'listener.name.x.ssl.keystore.location', '/x'), INVALID_REQUEST)
  assert.equal(code('broker', 'some.plugin', 'x'), 0)
})

test('groups lie within the bounds of the brokers', () => {
  const code = (name: string, value: string) => {
    const altered = applyIncremental({ type: 'group', overrides: none, broker: plain }, [set(name, value)])
    return 'errorCode' in altered ? altered.errorCode : 0
  }
  assert.equal(code('consumer.session.timeout.ms', '60000'), 0)
  assert.equal(code('consumer.session.timeout.ms', '60001'), INVALID_CONFIG)
  assert.equal(code('consumer.session.timeout.ms', '44999'), INVALID_CONFIG)
  assert.equal(code('streams.num.standby.replicas', '3'), INVALID_CONFIG)
  assert.equal(code('share.auto.offset.reset', 'by_duration:P1DT2H'), 0)
  for (const wrong of ['by_duration:', 'by_duration:P', 'by_duration:PT', 'by_duration:x', 'LATEST'])
    assert.equal(code('share.auto.offset.reset', wrong), INVALID_CONFIG, wrong)
})
