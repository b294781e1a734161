import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { askGroup } from './coordinated.ts'

/** In one decision of the coordinator; no group has so many. */
const MEMBERS_MAX = 20_000

/** LeaveGroup (13), versions 0-5. v3: several members at once, static ones by their instance id. */
export function leaveGroup(broker: Broker): ServedApi {
  return serve({
    api: API.LeaveGroup,
    handle(request, call) {
      if (request.members.length > MEMBERS_MAX) return { errorCode: ErrorCode.INVALID_REQUEST }
      return askGroup(broker, call, { kind: 'LeaveGroup', groupId: request.groupId, request }, error => ({
        errorCode: ErrorCode[error],
      }))
    },
  })
}
