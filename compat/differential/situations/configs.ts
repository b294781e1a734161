import { API } from '#protocol/apis.ts'
import type { Twin } from '../twin.ts'
import { createTopic, type Situation } from './tools.ts'
import { WRONG_CONFIGS } from './topics.ts'

const TOPIC = 2
const BROKER = 4

type Resource = { resourceType: number; resourceName: string; configurationKeys: string[] | null }

async function describe(twin: Twin, ...resources: Resource[]): Promise<void> {
  for (const version of twin.versionsOf(API.DescribeConfigs)) {
    await twin.call(API.DescribeConfigs, version, {
      resources,
      includeSynonyms: true,
      ...(version >= 3 && { includeDocumentation: true }),
    })
  }
  await twin.call(API.DescribeConfigs, 4, { resources })
}

const of = (resourceType: number, resourceName: string, configurationKeys: string[] | null = null): Resource => ({
  resourceType,
  resourceName,
  configurationKeys,
})

/** Whether a change is taken is told by what is described after it; the change itself takes a moment to get around. */
async function alterAndLook(
  twin: Twin,
  resourceName: string,
  name: string,
  configOperation: number,
  value: string | null,
): Promise<void> {
  await twin.call(API.IncrementalAlterConfigs, 1, {
    resources: [{ resourceType: TOPIC, resourceName, configs: [{ name, configOperation, value }] }],
  })
  const marker = { name: 'file.delete.delay.ms', value: String(60_000 + markers++) }
  await twin.call(API.IncrementalAlterConfigs, 1, {
    resources: [{ resourceType: TOPIC, resourceName, configs: [{ ...marker, configOperation: 0 }] }],
  })
  const asked = { resources: [of(TOPIC, resourceName)], includeSynonyms: true }
  await twin.settle(
    API.DescribeConfigs,
    4,
    asked,
    answer => answer.results[0]?.configs.find(config => config.name === marker.name)?.value === marker.value,
  )
  await twin.call(API.DescribeConfigs, 4, asked)
}
let markers = 0

export const configs: Situation = {
  name: 'configs',
  async perform(twin) {
    await createTopic(twin, 'c-plain', 1, { 'retention.ms': '86400000', 'cleanup.policy': 'compact' })
    await createTopic(twin, 'c-alter')
    await describe(twin, of(TOPIC, 'c-plain'))
    await describe(twin, of(TOPIC, 'c-plain', ['retention.ms']))
    await describe(twin, of(TOPIC, 'c-plain', ['segment.bytes', 'no.such', 'retention.ms', 'retention.ms']))
    await describe(twin, of(TOPIC, 'c-plain', []))
    await describe(
      twin,
      of(TOPIC, 'c-none'),
      of(TOPIC, ''),
      of(TOPIC, 'a b'),
      of(TOPIC, 'c-plain', ['min.insync.replicas']),
    )
    await describe(twin, of(BROKER, '1'))
    await describe(twin, of(BROKER, ''))
    await describe(twin, of(BROKER, '1', ['log.retention.ms', 'num.partitions', 'no.such', 'broker.id', 'listeners']))
    await describe(twin, of(BROKER, '2'), of(BROKER, 'x'), of(BROKER, '-1'))
    await describe(twin, of(0, 'a'), of(1, 'a'), of(3, 'a'), of(8, '1'), of(16, 'c'), of(32, 'g'), of(64, 'x'))
    await describe(twin, of(8, ''), of(16, ''), of(32, ''))
    await describe(twin)
    await describe(twin, of(TOPIC, 'c-plain', ['retention.ms']), of(TOPIC, 'c-plain', ['segment.ms']))
    await twin.vary(API.DescribeConfigs, 150, {
      resources: [of(TOPIC, 'c-plain', ['retention.ms']), of(TOPIC, 'c-alter', ['segment.ms'])],
      includeSynonyms: true,
    })

    for (const version of twin.versionsOf(API.IncrementalAlterConfigs)) {
      const alter = (
        name: string,
        value: string | null,
        configOperation = 0,
        resourceName = 'c-alter',
        resourceType = TOPIC,
      ) =>
        twin.call(API.IncrementalAlterConfigs, version, {
          resources: [{ resourceType, resourceName, configs: [{ name, configOperation, value }] }],
          validateOnly: true,
        })
      for (const [name, value] of WRONG_CONFIGS) await alter(name, value)
      for (const operation of [1, 2, 3]) {
        await alter('cleanup.policy', 'compact', operation)
        await alter('retention.ms', '1', operation)
        await alter('no.such', '1', operation)
        await alter('retention.ms', null, operation)
        await alter('leader.replication.throttled.replicas', '0:1', operation)
      }
      await alter('cleanup.policy', 'keep', 2)
      for (const name of ['c-none', '', 'a b']) await alter('retention.ms', '1', 0, name)
      for (const [type, name] of [
        [BROKER, '1'],
        [BROKER, ''],
        [BROKER, '9'],
        [BROKER, 'x'],
        [0, 'a'],
        [8, '1'],
        [16, 'm'],
        [32, 'g'],
        [99, 'x'],
      ] as const) {
        await alter('retention.ms', '1', 0, name, type)
        await alter('log.retention.ms', '100000', 0, name, type)
        await alter('broker.id', '3', 0, name, type)
        await alter('log.cleaner.threads', '2', 0, name, type)
        await alter('num.io.threads', '0', 0, name, type)
        await alter('log.retention.ms', 'x', 0, name, type)
        await alter('consumer.session.timeout.ms', '50000', 0, name, type)
        await alter('interval.ms', '1000', 0, name, type)
      }
      const one = {
        resourceType: TOPIC,
        resourceName: 'c-alter',
        configs: [{ name: 'retention.ms', configOperation: 0, value: '1' }],
      }
      await twin.call(API.IncrementalAlterConfigs, version, { resources: [one, one], validateOnly: true })
      await twin.call(API.IncrementalAlterConfigs, version, { resources: [], validateOnly: true })
      await twin.call(API.IncrementalAlterConfigs, version, {
        resources: [{ ...one, configs: [] }],
        validateOnly: true,
      })
      await twin.call(API.IncrementalAlterConfigs, version, {
        resources: [{ ...one, configs: [...one.configs, ...one.configs] }],
        validateOnly: true,
      })
      await twin.call(API.IncrementalAlterConfigs, version, {
        resources: [
          one,
          { ...one, resourceName: 'c-none' },
          { ...one, resourceName: 'c-plain', configs: [{ name: 'segment.ms', configOperation: 0, value: 'x' }] },
        ],
        validateOnly: true,
      })
    }
    await twin.vary(API.IncrementalAlterConfigs, 150, {
      resources: [
        {
          resourceType: TOPIC,
          resourceName: 'c-alter',
          configs: [{ name: 'retention.ms', configOperation: 0, value: '77' }],
        },
      ],
      validateOnly: true,
    })
    await alterAndLook(twin, 'c-alter', 'retention.ms', 0, '604800000')
    await alterAndLook(twin, 'c-alter', 'retention.ms', 1, null)
    await alterAndLook(twin, 'c-alter', 'cleanup.policy', 2, 'compact')
    await alterAndLook(twin, 'c-alter', 'cleanup.policy', 2, 'compact')
    await alterAndLook(twin, 'c-alter', 'cleanup.policy', 3, 'delete')
    await alterAndLook(twin, 'c-alter', 'cleanup.policy', 3, 'delete')
    await alterAndLook(twin, 'c-alter', 'segment.bytes', 0, '1048576')
    await alterAndLook(twin, 'c-alter', 'max.message.bytes', 0, '2000')
    await alterAndLook(twin, 'c-alter', 'segment.bytes', 0, 'wrong')
    await alterAndLook(twin, 'c-alter', 'compression.type', 0, 'zstd')
    await alterAndLook(twin, 'c-alter', 'leader.replication.throttled.replicas', 2, '0:1')
    await alterAndLook(twin, 'c-alter', 'min.insync.replicas', 0, '2')

    for (const version of twin.versionsOf(API.AlterConfigs)) {
      const alter = (
        entries: readonly (readonly [string, string | null])[],
        resourceName = 'c-plain',
        resourceType = TOPIC,
      ) =>
        twin.call(API.AlterConfigs, version, {
          resources: [{ resourceType, resourceName, configs: entries.map(([name, value]) => ({ name, value })) }],
          validateOnly: true,
        })
      for (const entry of WRONG_CONFIGS) await alter([entry])
      await alter([])
      await alter([
        ['retention.ms', '1'],
        ['retention.ms', '2'],
      ])
      await alter([['retention.ms', '1']], 'c-none')
      await alter([['retention.ms', '1']], '')
      await alter([['log.retention.ms', '1']], '1', BROKER)
      await alter([['retention.ms', '1']], 'a', 0)
      const one = { resourceType: TOPIC, resourceName: 'c-plain', configs: [{ name: 'segment.ms', value: '70000' }] }
      await twin.call(API.AlterConfigs, version, { resources: [one] })
    }
    await twin.settle(
      API.DescribeConfigs,
      4,
      { resources: [of(TOPIC, 'c-plain')] },
      answer => answer.results[0]?.configs.find(config => config.name === 'segment.ms')?.value === '70000',
    )
    await describe(twin, of(TOPIC, 'c-plain'))
    await twin.vary(API.AlterConfigs, 100, {
      resources: [{ resourceType: TOPIC, resourceName: 'c-plain', configs: [{ name: 'retention.ms', value: '77' }] }],
      validateOnly: true,
    })

    await twin.everyVersion(API.ListConfigResources, {})
    for (const types of [[], [2], [4], [8], [16], [32], [1], [0], [-1], [99], [2, 2], [2, 4, 8], [2, 99]])
      await twin.call(API.ListConfigResources, 1, { resourceTypes: types })
  },
}
