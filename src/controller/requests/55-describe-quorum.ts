import { CLUSTER_METADATA_TOPIC } from '#core/metadata/topic-name.ts'
import type { ReplicaProgress } from '#core/raft/quorum.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorText } from '#protocol/errors.ts'
import type { Controller } from '../controller.ts'

/**
 * DescribeQuorum (55), versions 0-2. Leader, epoch, high watermark, and how far voters and observers are (KIP-595, 836,
 * 853). Observers that were silent for five minutes are left out.
 */
export function describeQuorum(controller: Controller): ServedApi {
  return serve({
    api: API.DescribeQuorum,
    handle({ topics }, call) {
      const partition = topics[0]?.partitions[0]?.partitionIndex
      const isOne = topics.length === 1 && topics[0]?.partitions.length === 1
      if (!isOne || topics[0]?.topicName !== CLUSTER_METADATA_TOPIC || partition !== 0) {
        const errorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        const errorMessage = errorText(errorCode)
        return {
          errorCode: ErrorCode.NONE,
          topics: topics.map(({ topicName, partitions }) => ({
            topicName,
            partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode, errorMessage })),
          })),
        }
      }
      const topicName = CLUSTER_METADATA_TOPIC
      if (controller.leaderId !== controller.nodeId) {
        const errorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
        const failed = { partitionIndex: 0, errorCode, errorMessage: errorText(errorCode) }
        return { errorCode: ErrorCode.NONE, topics: [{ topicName, partitions: [failed] }] }
      }
      const { voters, observers } = controller.replicas()
      const progress = (replica: ReplicaProgress) => replicaState(replica, call.apiVersion)
      return {
        errorCode: ErrorCode.NONE,
        errorMessage: '',
        topics: [
          {
            topicName,
            partitions: [
              {
                partitionIndex: 0,
                errorCode: ErrorCode.NONE,
                errorMessage: '',
                leaderId: controller.leaderId,
                leaderEpoch: controller.epoch,
                highWatermark: controller.highWatermark,
                currentVoters: voters.map(progress),
                observers: observers.map(progress),
              },
            ],
          },
        ],
        ...(call.apiVersion >= 2 && { nodes: nodesOf(controller) }),
      }
    },
  })
}

/** Where the voters are reached, as far as that is known; other controllers where they registered, so that they can be added. */
function nodesOf(controller: Controller) {
  const { nodeId: ownId, endpoint, listenerName: name, voters } = controller
  const others = [...(controller.image?.controllers.values() ?? [])].flatMap(({ id, endPoints }) => {
    const listeners = endPoints.filter(each => each.name === name).map(({ host, port }) => ({ name, host, port }))
    return listeners.length === 0 || voters.some(voter => voter.id === id) ? [] : [{ nodeId: id, listeners }]
  })
  const known = voters.flatMap(({ id: nodeId, endpoints }) => {
    if (nodeId === ownId) return [{ nodeId, listeners: [endpoint] }]
    const address = controller.addressOf(nodeId)
    if (endpoints.length > 0) return [{ nodeId, listeners: endpoints }]
    return address === undefined ? [] : [{ nodeId, listeners: [{ name, host: address.host, port: address.port }] }]
  })
  return [...known, ...others]
}

function replicaState(
  { id, directoryId, endOffset, lastFetchAt = -1, lastCaughtUpAt = -1 }: ReplicaProgress,
  version: number,
) {
  return {
    replicaId: id,
    ...(version >= 2 && { replicaDirectoryId: directoryId }),
    logEndOffset: endOffset,
    lastFetchTimestamp: lastFetchAt,
    lastCaughtUpTimestamp: lastCaughtUpAt,
  }
}
