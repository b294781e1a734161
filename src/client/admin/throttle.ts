import type { NodeId } from '#base/units.ts'
import type { Client } from '../client.ts'
import { byTopic } from '../per-leader.ts'
import { alterConfigs, describeConfigs, topicSettings } from './configs.ts'
import type { PlannedChange } from './reassignments.ts'

const RATES = ['leader.replication.throttled.rate', 'follower.replication.throttled.rate'] as const
const LEADERS = 'leader.replication.throttled.replicas'
const FOLLOWERS = 'follower.replication.throttled.replicas'

/**
 * Bounds what reassignments may take of the network, as Kafka's tool does (KIP-73): the rate at every broker that is part of
 * it, old replicas as senders and new ones as receivers. To be set before they begin, and taken away when they ended.
 */
export async function setThrottle(
  client: Client,
  changes: readonly PlannedChange[],
  bytesPerSecond: number,
): Promise<void> {
  for (const [name, list] of byTopic(changes)) {
    const pairs = (ids: (change: PlannedChange) => readonly NodeId[]): string =>
      list.flatMap(change => ids(change).map(id => `${change.partition}:${id}`)).join(',')
    const senders = pairs(({ before }) => before)
    const receivers = pairs(({ before, replicas }) => replicas.filter(id => !before.includes(id)))
    const settings = [
      { name: LEADERS, op: 'set' as const, value: senders },
      ...(receivers === '' ? [] : [{ name: FOLLOWERS, op: 'set' as const, value: receivers }]),
    ]
    await alterConfigs(client, { type: 'topic', name }, settings)
  }
  const brokers = new Set(changes.flatMap(({ before, replicas }) => [...before, ...replicas]))
  for (const id of await liveBrokers(client)) {
    if (!brokers.has(id)) continue
    const rate = RATES.map(name => ({ name, op: 'set' as const, value: String(bytesPerSecond) }))
    await alterConfigs(client, { type: 'broker', name: String(id) }, rate)
  }
}

/** What is throttled: brokers with a rate of their own, topics with replicas that it holds for. */
export async function throttled(client: Client): Promise<{ brokers: NodeId[]; topics: string[] }> {
  const brokers: NodeId[] = []
  for (const id of await liveBrokers(client)) {
    const rates = await describeConfigs(client, { type: 'broker', name: String(id) }, { names: RATES })
    if (rates.some(({ source, value }) => source === 'broker' && value !== null)) brokers.push(id)
  }
  const { topics } = await client.retrying(() => client.metadata.refresh('all'))
  const names = topics.map(({ name }) => name)
  const settings = await topicSettings(client, names, [LEADERS, FOLLOWERS])
  const set = names.filter(name => [...(settings.get(name)?.values() ?? [])].some(value => (value ?? '') !== ''))
  return { brokers, topics: set }
}

/** Takes away what `throttled` found. */
export async function clearThrottle(
  client: Client,
  { brokers, topics }: { readonly brokers: readonly NodeId[]; readonly topics: readonly string[] },
): Promise<void> {
  for (const name of topics) {
    await alterConfigs(
      client,
      { type: 'topic', name },
      [LEADERS, FOLLOWERS].map(setting => ({ name: setting, op: 'delete' as const })),
    )
  }
  for (const id of brokers) {
    const rates = RATES.map(name => ({ name, op: 'delete' as const }))
    await alterConfigs(client, { type: 'broker', name: String(id) }, rates)
  }
}

async function liveBrokers(client: Client): Promise<NodeId[]> {
  await client.retrying(() => client.metadata.refresh([]))
  return client.metadata.brokers.map(({ id }) => id)
}
