import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'

/** OffsetForLeaderEpoch (23), versions 2-4. Where an epoch ends, so that a client sees whether its log was cut (KIP-320). */
export function offsetForLeaderEpoch(broker: Broker): ServedApi {
  return serve({
    api: API.OffsetForLeaderEpoch,
    async handle(request) {
      const pieces = broker.turns.pieces()
      const topics = []
      for (const { topic, partitions } of request.topics) {
        const answered = await pieces.map(partitions, ({ partition, currentLeaderEpoch, leaderEpoch }) => {
          const refused = (error: ErrorName) => ({
            partition,
            errorCode: ErrorCode[error],
            leaderEpoch: -1,
            endOffset: -1,
          })
          const found = broker.partitions.find(topic, undefined, partition)
          if (typeof found === 'string') return refused(found)
          if (!found.leads) return refused('NOT_LEADER_OR_FOLLOWER')
          const error = found.checkEpoch(currentLeaderEpoch)
          if (error !== undefined) return refused(error)
          // The epoch that is being written ends where the log ends now.
          if (leaderEpoch === found.leaderEpoch) {
            return { partition, errorCode: ErrorCode.NONE, leaderEpoch, endOffset: found.log.endOffset }
          }
          const known = found.log.endOffsetForEpoch(leaderEpoch)
          return {
            partition,
            errorCode: ErrorCode.NONE,
            leaderEpoch: known?.leaderEpoch ?? -1,
            endOffset: known?.endOffset ?? -1,
          }
        })
        topics.push({ topic, partitions: answered })
      }
      return { topics }
    },
  })
}
