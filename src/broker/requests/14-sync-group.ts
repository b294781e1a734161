import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { coordinated } from './coordinated.ts'

/** SyncGroup (14), versions 0-5. Followers wait for the leader's assignment, which is written before anyone gets it. */
export function syncGroup(broker: Broker): ServedApi {
  return serve({
    api: API.SyncGroup,
    handle(request, call) {
      const command = (id: number) => ({ kind: 'SyncGroup', call: id, version: call.apiVersion, request }) as const
      return coordinated(
        async () => (await broker.groups.ask(request.groupId, call.caller, command)).response,
        error => ({ errorCode: ErrorCode[error] }),
      )
    },
  })
}
