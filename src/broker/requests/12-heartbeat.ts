import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { askGroup } from './coordinated.ts'

/** Heartbeat (12), versions 0-4. While the coordinator is loading it is answered without an error, as in Kafka. */
export function heartbeat(broker: Broker): ServedApi {
  return serve({
    api: API.Heartbeat,
    handle: (request, call) =>
      askGroup(broker, call, { kind: 'Heartbeat', groupId: request.groupId, request }, error => ({
        errorCode: error === 'COORDINATOR_LOAD_IN_PROGRESS' ? ErrorCode.NONE : ErrorCode[error],
      })),
  })
}
