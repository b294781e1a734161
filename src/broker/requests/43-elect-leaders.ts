import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken } from './forwarded.ts'

/** ElectLeaders (43), versions 0-2. Decided by the active controller; v0 is for preferred leaders alone (KIP-183, 460). */
export function electLeaders(broker: Broker): ServedApi {
  return serve({
    api: API.ElectLeaders,
    barrier: true,
    handle: (request, call) =>
      broker.forwarding.forwardAndFollow(
        API.ElectLeaders,
        call,
        request,
        errorCode => ({
          ...(call.apiVersion >= 1 && { errorCode }),
          replicaElectionResults: (request.topicPartitions ?? []).map(({ topic, partitions }) => ({
            topic,
            partitionResult: partitions.map(partitionId => ({ partitionId, ...failed(errorCode) })),
          })),
        }),
        ({ replicaElectionResults = [] }) =>
          replicaElectionResults.some(({ partitionResult = [] }) => partitionResult.some(isTaken)),
      ),
  })
}
