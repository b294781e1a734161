import type { Epoch, NodeId } from '#base/units.ts'
import type { Channel } from '#network/channel.ts'
import type { Client } from './client.ts'
import { ClientError, clientError } from './errors.ts'
import { askLeader, PATIENCE_MS } from './patience.ts'

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** Partitions by their topics, as requests want them. */
export function byTopic<P extends TopicPartition>(partitions: readonly P[]): [string, P[]][] {
  return [...Map.groupBy(partitions, ({ topic }) => topic)]
}

/** A partition with the epoch of the leader that it is believed to have, so that who led before can tell that it is not meant. */
export type Led<P> = P & { readonly leaderEpoch: Epoch }

/** Does something with partitions at the broker that leads each, and again with fresh leaders while that may help. */
export async function perLeader<P extends TopicPartition, R>(
  client: Client,
  partitions: readonly P[],
  act: (leader: Channel, partitions: readonly Led<P>[]) => Promise<readonly R[]>,
): Promise<R[]> {
  let failed = false
  return await client.retrying(async () => {
    const fresh = failed
    failed = true
    // Whoever said who leads may be wrong.
    if (fresh) for (const topic of new Set(partitions.map(({ topic }) => topic))) client.metadata.doubt(topic)
    const leaders = await leadersOf(client, partitions, fresh)
    const asked = [...leaders].map(([leader, list]) =>
      askLeader(client, leader, '', list, PATIENCE_MS, channel => act(channel, list)),
    )
    try {
      return (await Promise.all(asked)).flat()
    } catch (error) {
      throw clientError(error)
    }
  })
}

async function leadersOf<P extends TopicPartition>(
  client: Client,
  partitions: readonly P[],
  fresh: boolean,
): Promise<Map<NodeId, Led<P>[]>> {
  const leaders = new Map<NodeId, Led<P>[]>()
  for (const [name, list] of Map.groupBy(partitions, ({ topic }) => topic)) {
    const topic = await client.topic(name, { fresh })
    for (const each of list) {
      const found = topic.partitions.find(({ partition }) => partition === each.partition)
      if (found === undefined) {
        throw new ClientError('UNKNOWN_TOPIC_OR_PARTITION', `topic "${name}" has no partition ${each.partition}`, {
          hint: `its partitions are 0 to ${topic.partitions.length - 1}`,
          // What is remembered may be of a topic that had the name before, or from before it grew.
          retriable: !fresh,
        })
      }
      const { leader, leaderEpoch } = found
      if (leader < 0) {
        const message = `partition ${name}-${each.partition} has no leader`
        throw new ClientError('LEADER_NOT_AVAILABLE', message, { retriable: true })
      }
      const known = leaders.get(leader)
      if (known === undefined) leaders.set(leader, [{ ...each, leaderEpoch }])
      else known.push({ ...each, leaderEpoch })
    }
  }
  return leaders
}
