import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { askGroup } from './coordinated.ts'

/** SyncGroup (14), versions 0-5. Followers wait for the leader's assignment, which is written before anyone gets it. */
export function syncGroup(broker: Broker): ServedApi {
  return serve({
    api: API.SyncGroup,
    handle: (request, call) =>
      askGroup(broker, call, { kind: 'SyncGroup', groupId: request.groupId, request }, error => ({
        errorCode: ErrorCode[error],
      })),
  })
}
