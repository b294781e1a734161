import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkValue } from './definition.ts'
import { editDistance, nearestName } from './nearest.ts'
import { TOPIC_CONFIGS } from './topic.ts'
import { parseValue, UNLIMITED } from './value.ts'

test('whole numbers at the edges of their types', () => {
  const value = (type: 'INT' | 'SHORT' | 'LONG', text: string) => {
    const parsed = parseValue(type, text)
    return 'problem' in parsed ? 'refused' : parsed.value
  }
  assert.equal(value('INT', '2147483647'), 2147483647)
  assert.equal(value('INT', '2147483648'), 'refused')
  assert.equal(value('INT', '-2147483648'), -2147483648)
  assert.equal(value('SHORT', '32768'), 'refused')
  assert.equal(value('INT', ' +10 '), 10)
  for (const text of ['', ' ', '1e3', '0x10', '1.0', '1 0', '--1', '1_000'])
    assert.equal(value('INT', text), 'refused', text)
  assert.equal(value('LONG', '9007199254740991'), 9007199254740991)
  assert.equal(value('LONG', '9007199254740993'), UNLIMITED)
  assert.equal(value('LONG', '-9223372036854775808'), -UNLIMITED)
  assert.equal(value('LONG', '9223372036854775808'), 'refused')
})

test('what is shown back is never rounded', () => {
  assert.deepEqual(parseValue('LONG', '9007199254740993'), { value: UNLIMITED, text: '9007199254740993' })
  assert.deepEqual(parseValue('LONG', ' 0005 '), { value: 5, text: '5' })
  assert.deepEqual(parseValue('LONG', '-0'), { value: 0, text: '0' })
})

test('doubles read and show as in Java', () => {
  const shown: [string, string][] = [
    ['0.5', '0.5'],
    ['.5f', '0.5'],
    ['1e-1', '0.1'],
    ['1', '1.0'],
    ['1e7', '1.0E7'],
    ['0.0001', '1.0E-4'],
    ['1.7976931348623157E308', '1.7976931348623157E308'],
  ]
  for (const [text, expected] of shown) {
    const parsed = parseValue('DOUBLE', text)
    assert.equal('text' in parsed && parsed.text, expected)
  }
  for (const text of ['NaN', '', '0x1p3', '1,5', '.']) assert.ok('problem' in parseValue('DOUBLE', text), text)
})

test('booleans, lists and texts', () => {
  assert.deepEqual(parseValue('BOOLEAN', ' TRUE '), { value: true, text: 'true' })
  assert.ok('problem' in parseValue('BOOLEAN', 'yes'))
  assert.deepEqual(parseValue('LIST', ' a , b '), { value: ['a', 'b'], text: 'a,b' })
  assert.deepEqual(parseValue('LIST', ''), { value: [], text: '' })
  assert.deepEqual(parseValue('PASSWORD', ' x '), { value: 'x', text: ' x ' })
})

test('validators at their edges', () => {
  const fails = (name: string, text: string) => {
    const definition = TOPIC_CONFIGS.get(name)
    assert.ok(definition)
    return 'problem' in checkValue(definition, text)
  }
  const good = {
    'retention.ms': '-1',
    'segment.bytes': '1048576',
    'min.cleanable.dirty.ratio': '1',
    'compression.gzip.level': '-1',
    'compression.zstd.level': '22',
    'cleanup.policy': 'compact, delete',
    'leader.replication.throttled.replicas': '0:1,1:2',
    'follower.replication.throttled.replicas': '*',
    'message.timestamp.type': 'LogAppendTime',
  }
  const bad = {
    'retention.ms': '-2',
    'segment.bytes': '1048575',
    'min.cleanable.dirty.ratio': '1.01',
    'compression.gzip.level': '0',
    'compression.zstd.level': '23',
    'cleanup.policy': 'compact,drop',
    'leader.replication.throttled.replicas': '0:1,x',
    'follower.replication.throttled.replicas': '*,*',
    'message.timestamp.type': 'logappendtime',
  }
  for (const [name, text] of Object.entries(good)) assert.equal(fails(name, text), false, name)
  for (const [name, text] of Object.entries(bad)) assert.equal(fails(name, text), true, name)
})

test('the nearest name', () => {
  assert.equal(nearestName('retention.msec', TOPIC_CONFIGS.keys()), 'retention.ms')
  assert.equal(nearestName('RETENTION.MS', TOPIC_CONFIGS.keys()), 'retention.ms')
  assert.equal(nearestName('clenaup.policy', TOPIC_CONFIGS.keys()), 'cleanup.policy')
  assert.equal(nearestName('something.else.entirely', TOPIC_CONFIGS.keys()), undefined)
  assert.equal(editDistance('ab', 'ba'), 1)
  assert.equal(editDistance('', 'abc'), 3)
})
