import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseProperties } from './properties.ts'
import { type ConfigSources, formatConfigErrors, serverConfig } from './server.ts'

const config = (sources: ConfigSources) => {
  const result = serverConfig(sources)
  assert.ok('config' in result, 'errors' in result ? formatConfigErrors(result.errors) : '')
  return result.config
}
const errors = (sources: ConfigSources) => {
  const result = serverConfig(sources)
  return 'errors' in result ? result.errors : []
}
const file = (text: string): ConfigSources => ({ file: { path: 'server.properties', text } })

test('a node that is given nothing', () => {
  const { nodeId, roles, listeners, logDirs, notices, broker } = config({})
  assert.deepEqual([nodeId, roles, logDirs, notices], [1, { broker: true, controller: true }, ['./data'], []])
  assert.deepEqual(
    listeners.map(({ name, host, port, forControllers, advertised }) => [name, host, port, forControllers, advertised]),
    [
      ['PLAINTEXT', '', 9092, false, undefined],
      ['CONTROLLER', '127.0.0.1', 9093, true, undefined],
    ],
  )
  assert.equal(broker.text('listeners'), 'PLAINTEXT://:9092,CONTROLLER://127.0.0.1:9093')
})

test("Kafka's own server.properties works", () => {
  const { listeners, quorum, broker } = config(
    file(`process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
log.dirs=/tmp/kraft-combined-logs
offsets.topic.replication.factor=1
log.retention.hours=168
`),
  )
  assert.deepEqual(
    listeners.map(({ name, advertised }) => [name, advertised?.port]),
    [
      ['PLAINTEXT', 9092],
      ['CONTROLLER', 9093],
    ],
  )
  assert.deepEqual(quorum, { voters: [], bootstrap: [], autoJoin: false, founds: true })
  assert.equal(broker.number('offsets.topic.replication.factor'), 1)
})

test('flags win over the environment, that over the file; TIDEMARK_ over KAFKA_', () => {
  const sources: ConfigSources = {
    ...file('num.partitions=2\nnum.io.threads=9\nlog.retention.ms=1'),
    environment: {
      KAFKA_NUM_PARTITIONS: '3',
      TIDEMARK_NUM_PARTITIONS: '4',
      KAFKA_LOG_RETENTION_MS: '5',
      KAFKA_HEAP_OPTS: '-Xmx1g',
      PATH: '/',
    },
  }
  const read = config(sources)
  assert.equal(read.broker.number('num.partitions'), 4)
  assert.equal(read.broker.number('log.retention.ms'), 5)
  assert.equal(config({ ...sources, overrides: ['num.partitions=6'] }).broker.number('num.partitions'), 6)
  assert.deepEqual(read.notices, [
    'KAFKA_HEAP_OPTS is ignored: heap.opts is not a broker configuration.',
    'num.io.threads (server.properties:2) is taken but has no effect yet.',
  ])
})

test('everything that is wrong is said at once, with its place and the nearest key', () => {
  const found = errors({
    ...file('\nlog.retention.hour=5\nnum.partitions=zero\nzookeeper.connect=x\nretention.ms=5\nlisteners=nonsense\n'),
    overrides: ['x'],
    environment: { TIDEMARK_LOG_SEGMENT_BYTE: '1' },
  })
  assert.deepEqual(
    found.map(({ source, key, nearest }) => [source, key, nearest]),
    [
      ['--override', '', undefined],
      ['server.properties:2', 'log.retention.hour', 'log.retention.hours'],
      ['server.properties:3', 'num.partitions', undefined],
      ['server.properties:4', 'zookeeper.connect', undefined],
      ['server.properties:5', 'retention.ms', 'log.retention.ms'],
      ['TIDEMARK_LOG_SEGMENT_BYTE', 'log.segment.byte', 'log.segment.bytes'],
      ['server.properties:6', 'listeners', undefined],
      ['server.properties:6', 'listeners', undefined],
    ],
  )
})

test('what needs security is refused, and secrets are not repeated', () => {
  const refused = (text: string) => formatConfigErrors(errors(file(text)))
  assert.match(refused('ssl.keystore.password=geheim'), /needs? TLS|would need TLS/)
  assert.doesNotMatch(refused('ssl.keystore.password=geheim'), /geheim/)
  assert.doesNotMatch(JSON.stringify(errors(file('ssl.keystore.password=geheim\nmy.secret.thing=geheim'))), /geheim/)
  assert.match(refused('listeners=SSL://:9092'), /speak SSL, which is not supported yet/)
  assert.match(
    refused('listeners=A://:9092\nlistener.security.protocol.map=A:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT'),
    /SASL_PLAINTEXT, which is not supported yet/,
  )
  assert.match(
    refused('authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer'),
    /authorization, which is not supported yet/,
  )
  assert.match(refused('remote.log.storage.system.enable=true'), /tiered storage, which is not supported yet/)
  assert.equal(refused('ssl.client.auth=none\nsasl.enabled.mechanisms=GSSAPI\nauthorizer.class.name='), '')
})

test('listeners', () => {
  const wrong = (text: string) =>
    errors(file(text))
      .map(({ message }) => message)
      .join('\n')
  assert.match(wrong('listeners=PLAINTEXT://:9092,PLAINTEXT://:9094'), /names the listener PLAINTEXT twice/)
  assert.match(wrong('listeners=PLAINTEXT://:9092,CONTROLLER://:9092'), /port 9092 twice/)
  assert.match(wrong('listeners=PLAINTEXT://:70000'), /not of that form/)
  assert.match(wrong('listeners=FOO://:9092'), /must say what the listener FOO speaks/)
  assert.match(wrong('advertised.listeners=PLAINTEXT://0.0.0.0:9092'), /clients can dial/)
  assert.match(wrong('advertised.listeners=OTHER://a:9092'), /which listeners does not/)
  assert.match(wrong('controller.listener.names=X'), /must hold one of the controller's/)
  assert.match(wrong('node.id=1\nbroker.id=2'), /must be the same/)
  const own = config(file('listeners=PLAINTEXT://[::1]:0'))
  assert.deepEqual(
    own.listeners.map(({ host, port }) => [host, port]),
    [
      ['::1', 0],
      ['::1', 0],
    ],
  )
})

test('a node that joins others listens for them where they can reach it', () => {
  const addresses = (sources: ConfigSources) =>
    config(sources).listeners.map(({ name, host, port }) => `${name} ${host}:${port}`)
  const join = (at: string) => [`controller.quorum.bootstrap.servers=${at}`, 'node.id=2']
  assert.deepEqual(addresses({ port: 9192 }), ['PLAINTEXT :9192', 'CONTROLLER 127.0.0.1:9193'])
  assert.deepEqual(addresses({ port: 0 }), ['PLAINTEXT :0', 'CONTROLLER 127.0.0.1:0'])
  assert.deepEqual(addresses({ port: 9092, host: 'a' }), ['PLAINTEXT :9092', 'CONTROLLER :9093'])
  assert.deepEqual(addresses({ host: 'localhost' }), ['PLAINTEXT localhost:9092', 'CONTROLLER localhost:9093'])
  assert.deepEqual(addresses({ port: 9192, overrides: join('localhost:9093') }), [
    'PLAINTEXT :9192',
    'CONTROLLER 127.0.0.1:9193',
  ])
  assert.deepEqual(addresses({ overrides: join('a:9093') }), ['PLAINTEXT :9092', 'CONTROLLER :9093'])
  assert.deepEqual(addresses({ overrides: ['listeners=PLAINTEXT://10.0.0.5:9092'] }), [
    'PLAINTEXT 10.0.0.5:9092',
    'CONTROLLER 10.0.0.5:9093',
  ])
  assert.deepEqual(
    addresses({
      overrides: [
        'listeners=A://:9092,B://:9093',
        'listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT',
      ],
    }),
    ['A :9092', 'B :9093', 'CONTROLLER 127.0.0.1:9094'],
  )
  assert.deepEqual(addresses({ overrides: ['controller.quorum.voters=2@a:7093,3@b:7093', 'node.id=2'] }), [
    'PLAINTEXT :9092',
    'CONTROLLER :7093',
  ])
  assert.deepEqual(addresses({ overrides: [...join('a:9093'), 'process.roles=broker'] }), ['PLAINTEXT :9092'])
  assert.deepEqual(addresses({ port: 7000, overrides: [...join('a:9093'), 'process.roles=controller'] }), [
    'CONTROLLER :7000',
  ])
  assert.deepEqual(
    addresses({
      port: 7000,
      overrides: [
        'controller.listener.names=CTRL',
        'listener.security.protocol.map=CTRL:PLAINTEXT,PLAINTEXT:PLAINTEXT',
      ],
    }),
    ['PLAINTEXT :7000', 'CTRL 127.0.0.1:7001'],
  )
})

test('the quorum', () => {
  const quorum = (...overrides: string[]) => config({ overrides }).quorum
  assert.equal(quorum().founds, true)
  assert.deepEqual(quorum('node.id=2', 'controller.quorum.voters=1@a:9093, 2@[::1]:9093'), {
    voters: [
      { id: 1, host: 'a', port: 9093 },
      { id: 2, host: '::1', port: 9093 },
    ],
    bootstrap: [],
    autoJoin: false,
    founds: false,
  })
  assert.deepEqual(
    quorum(
      'node.id=2',
      'controller.quorum.auto.join.enable=true',
      'controller.quorum.bootstrap.servers=localhost:9093,b:9093',
    ),
    {
      voters: [],
      bootstrap: [{ host: 'b', port: 9093 }],
      autoJoin: true,
      founds: false,
    },
  )
  assert.equal(quorum('node.id=2', 'process.roles=broker', 'controller.quorum.voters=1@a:9093').founds, false)
  const wrong = (...overrides: string[]) => formatConfigErrors(errors({ overrides }))
  assert.match(wrong('controller.quorum.voters=1@a:1,2@b:1'), /joins others needs a number .* node\.id/)
  assert.match(wrong('controller.quorum.bootstrap.servers=a:1'), /joins others needs a number/)
  assert.match(wrong('node.id=3', 'controller.quorum.voters=1@a:1,2@b:1'), /must include this node \(3\)/)
  assert.match(wrong('node.id=1', 'controller.quorum.voters=1@a:1,1@b:1'), /names the node 1 twice/)
  assert.match(wrong('node.id=1', 'controller.quorum.voters=1@a:99999'), /not of that form/)
  assert.match(wrong('node.id=1', 'controller.quorum.bootstrap.servers=1@a:9'), /not of that form/)
  assert.match(wrong('node.id=1', 'process.roles=broker'), /no controller needs one: .*--join/)
  assert.match(wrong('node.id=1', 'process.roles=broker', 'controller.quorum.voters=1@a:1'), /includes this node \(1\)/)
  assert.match(
    wrong(
      'node.id=2',
      'process.roles=broker',
      'controller.quorum.voters=1@a:1',
      'controller.quorum.auto.join.enable=true',
    ),
    /is for controllers/,
  )
  assert.match(
    wrong('controller.quorum.auto.join.enable=true', 'controller.quorum.bootstrap.servers=localhost:9093'),
    /names this node itself/,
  )
  // Others are mostly joined by the port for clients, and so it is mostly that one by mistake.
  assert.match(
    wrong('controller.quorum.auto.join.enable=true', 'controller.quorum.bootstrap.servers=localhost:9092'),
    /names this node itself, which listens on 9092 and 9093\./,
  )
  assert.match(
    wrong('node.id=2', 'process.roles=broker', 'controller.quorum.bootstrap.servers=localhost:9092'),
    /names this node itself, which listens on 9092\./,
  )
  assert.match(
    wrong(
      'node.id=2',
      'process.roles=broker',
      'controller.quorum.voters=1@a:1',
      'listeners=PLAINTEXT://:1,CONTROLLER://:2',
    ),
    /names CONTROLLER, which is for controllers/,
  )
  assert.match(
    wrong('process.roles=controller', 'listeners=PLAINTEXT://:1,CONTROLLER://:2'),
    /names PLAINTEXT, which would be for clients/,
  )
})

test('--join makes voters of controllers only', () => {
  const join = { key: 'controller.quorum.auto.join.enable', value: 'true', source: '--join' }
  const { quorum, reachableAs } = config({
    overrides: ['node.id=2', 'process.roles=broker', 'controller.quorum.bootstrap.servers=a:9093'],
    flags: [join],
    host: 'b',
  })
  assert.deepEqual([quorum.autoJoin, quorum.founds, reachableAs], [false, false, 'b'])
})

test('properties as Java reads them', () => {
  const text =
    '# comment\n! comment\r\n\n a = b \\\n   c\nk:v\nw x y\nt\\ k=\\tv\\u0041\\:\nempty\nurl=http://x:1/?a=b\\\\\nlast=1\\'
  assert.deepEqual(parseProperties(text), {
    properties: [
      { key: 'a', value: 'b c', line: 4 },
      { key: 'k', value: 'v', line: 6 },
      { key: 'w', value: 'x y', line: 7 },
      { key: 't k', value: '\tvA:', line: 8 },
      { key: 'empty', value: '', line: 9 },
      { key: 'url', value: 'http://x:1/?a=b\\', line: 10 },
      { key: 'last', value: '1', line: 11 },
    ],
    problems: [],
  })
  assert.deepEqual(
    parseProperties('a=1\nb=\\u00g1').problems.map(({ line }) => line),
    [2],
  )
})

/** As java.util.Properties.store writes it. */
function stored(text: string, isKey: boolean): string {
  const escaped = text.replace(
    /[\\=:#!\t\n\r\f]/g,
    char => ({ '\t': '\\t', '\n': '\\n', '\r': '\\r', '\f': '\\f' })[char] ?? `\\${char}`,
  )
  return (isKey ? escaped.replaceAll(' ', '\\ ') : escaped.replace(/^ /, '\\ ')).replace(
    /[^\x20-\x7e]/g,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

test('every key and value that Java can store is read back, and any text is read without harm', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string({ unit: 'binary', minLength: 1 }), fc.string({ unit: 'binary' }))),
      entries => {
        const text = entries.map(([key, value]) => `${stored(key, true)}=${stored(value, false)}`).join('\n')
        assert.deepEqual(
          parseProperties(text).properties.map(({ key, value }) => [key, value]),
          entries,
        )
      },
    ),
  )
  const odd = fc.string({ unit: fc.constantFrom('\\', '\n', '\r', '=', ':', ' ', '#', '!', 'u', '0', 'a', '\t', '\f') })
  fc.assert(fc.property(odd, text => Array.isArray(parseProperties(text).properties)))
  fc.assert(fc.property(odd, text => serverConfig(file(text)) !== undefined))
})
