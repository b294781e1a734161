import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'

/**
 * InitProducerId (22), versions 0-5. A producer id that no other producer has, for idempotence.
 * - Ids come in blocks from the controller, so that one is at hand.
 * - Left out until transactions come: a transactional id is INVALID_REQUEST, or TRANSACTIONAL_ID_AUTHORIZATION_FAILED
 *   would be retried by some clients for ever.
 */
export function initProducerId(broker: Broker): ServedApi {
  return serve({
    api: API.InitProducerId,
    async handle(request) {
      if (request.transactionalId !== null) return refused(ErrorCode.INVALID_REQUEST)
      if ((request.producerId === -1) !== (request.producerEpoch === -1)) {
        return refused(ErrorCode.INVALID_REQUEST)
      }
      const producerId = await broker.producerIds.next()
      return producerId === undefined
        ? refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        : { errorCode: ErrorCode.NONE, producerId, producerEpoch: 0 }
    },
  })
}

function refused(errorCode: number) {
  return { errorCode, producerId: -1, producerEpoch: -1 }
}
