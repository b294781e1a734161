import type { Millis, NodeId } from '#base/units.ts'
import type { Channel } from '#network/channel.ts'
import type { Timer } from '#world/world.ts'
import type { Client } from './client.ts'
import { ClientError } from './errors.ts'
import type { Led, TopicPartition } from './per-leader.ts'

/** Who has not answered for so long may be asked in vain: others are asked whether it is still the one to ask. */
export const PATIENCE_MS: Millis = 1000

/**
 * Asks one broker. While it is silent, `isMeant` finds out from others whether it is still the one to ask: after
 * `patienceMs`, and again after twice the time. When it is not, nobody waits for it any more: its connection is closed, and
 * with it what else was asked there, and `error` says why. Rejects with a ClientError or a ChannelError.
 *
 * 1. A machine loses power, or is cut off, with a request under way. 2. The controllers notice, and another one takes
 * over. 3. Without this the request would end with its own time, which is meant for a broker that waits for others.
 */
async function askPatiently<T>(
  client: Client,
  to: () => Promise<Channel>,
  patienceMs: Millis,
  isMeant: (channel: Channel | undefined) => Promise<boolean>,
  error: () => ClientError,
  ask: (channel: Channel) => Promise<T>,
): Promise<T> {
  const givenUp = Promise.withResolvers<never>()
  let channel: Channel | undefined
  let timer: Timer | undefined
  let over = false
  const look = async (afterMs: Millis): Promise<void> => {
    // Where nobody else can say it may be as well.
    const meant = await isMeant(channel).catch(() => true)
    if (over) return
    if (meant) {
      lookAfter(2 * afterMs)
      return
    }
    over = true
    channel?.close()
    givenUp.reject(error())
  }
  const lookAfter = (ms: Millis): void => {
    timer = client.world.clock.after(ms, () => void look(ms))
  }
  const asking = async (): Promise<T> => {
    channel = await to()
    // It may have been given up while it was dialled.
    return over ? await givenUp.promise : await ask(channel)
  }
  givenUp.promise.catch(() => {})
  lookAfter(patienceMs)
  try {
    return await Promise.race([asking(), givenUp.promise])
  } finally {
    over = true
    timer?.cancel()
  }
}

/** Asks the leader of partitions on its connection for a purpose, until it answers or another one leads. */
export async function askLeader<T>(
  client: Client,
  leader: NodeId,
  purpose: string,
  partitions: readonly Led<TopicPartition>[],
  patienceMs: Millis,
  ask: (channel: Channel) => Promise<T>,
): Promise<T> {
  const { brokers, metadata } = client
  const topics = [...new Set(partitions.map(({ topic }) => topic))]
  const leads = ({ topic, partition, leaderEpoch }: Led<TopicPartition>): boolean => {
    const now = metadata.remembered(topic)?.partitions[partition]
    return now === undefined || now.leader === leader || now.leaderEpoch < leaderEpoch
  }
  return await askPatiently(
    client,
    () => brokers.to(leader, purpose),
    patienceMs,
    async () => {
      for (const topic of topics) metadata.doubt(topic, leader)
      await metadata.refresh(topics)
      return brokers.known.has(leader) && partitions.every(leads)
    },
    () =>
      new ClientError('NOT_LEADER_OR_FOLLOWER', `broker ${leader} is silent, and another one leads by now`, {
        retriable: true,
      }),
    ask,
  )
}

/** Asks the coordinator of a group on its connection for a purpose, until it answers or another one coordinates. */
export async function askCoordinator<T>(
  client: Client,
  group: string,
  purpose: string,
  ask: (channel: Channel) => Promise<T>,
): Promise<T> {
  const coordinator = await client.coordinator(group)
  return await askPatiently(
    client,
    () => client.brokers.to(coordinator, purpose),
    PATIENCE_MS,
    async () => {
      client.forgetCoordinator(group)
      return (await client.coordinator(group)) === coordinator
    },
    () =>
      new ClientError('NOT_COORDINATOR', `broker ${coordinator} is silent, and another one coordinates by now`, {
        retriable: true,
      }),
    ask,
  )
}

/** Asks any broker, until it answers or has left the cluster. */
export async function askAny<T>(client: Client, ask: (channel: Channel) => Promise<T>): Promise<T> {
  const { brokers, metadata } = client
  let wasNamed = false
  return await askPatiently(
    client,
    async () => {
      const channel = await brokers.any()
      wasNamed = brokers.names(channel.address)
      return channel
    },
    PATIENCE_MS,
    async channel => {
      if (channel === undefined || !wasNamed) return true
      brokers.doubt(channel.address)
      await metadata.refresh([])
      return brokers.names(channel.address)
    },
    () =>
      new ClientError('BROKER_NOT_AVAILABLE', 'who was asked is silent, and has left the cluster', { retriable: true }),
    ask,
  )
}
