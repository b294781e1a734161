import type { NodeId, Offset } from '#base/units.ts'
import type { Broker } from '../broker.ts'
import type { Partition } from './partition.ts'

/**
 * The replica in the consumer's rack that it had better read from (KIP-392, Kafka's RackAwareReplicaSelector): in sync,
 * alive, and holding the offset; of several the one that is furthest. Undefined where there is none or the leader, which
 * this broker must be, is in that rack itself.
 */
export function preferredReplica(
  broker: Broker,
  partition: Partition,
  offset: Offset,
  rack: string,
): NodeId | undefined {
  if (!broker.followersServeConsumers || !partition.leads || broker.config.rack === rack) return undefined
  const { inSync, followers } = partition
  let best: { readonly id: NodeId; readonly endOffset: Offset; readonly caughtUpAt: number } | undefined
  for (const follower of followers) {
    if (!inSync.includes(follower.id) || follower.endOffset < offset || follower.startOffset > offset) continue
    const { rack: its, fenced } = broker.metadata.image.broker(follower.id) ?? { rack: null, fenced: true }
    if (its !== rack || fenced) continue
    const isBetter =
      best === undefined ||
      follower.endOffset > best.endOffset ||
      (follower.endOffset === best.endOffset && follower.caughtUpAt > best.caughtUpAt)
    if (isBetter) best = follower
  }
  return best?.id
}
