import { type Uuid, uuidFromRandom, uuidToBytes } from '#base/uuid.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { coordinated } from './coordinated.ts'

/** JoinGroup (11), versions 0-9. Answered when the group's join phase ends; the rules are core/group's. */
export function joinGroup(broker: Broker): ServedApi {
  return serve({
    api: API.JoinGroup,
    handle(request, call) {
      const refused = { protocolName: call.apiVersion >= 7 ? null : '', memberId: request.memberId }
      return coordinated(
        async () => {
          const reply = await broker.groups.ask(request.groupId, call.caller, id => ({
            kind: 'JoinGroup',
            call: id,
            version: call.apiVersion,
            request,
            clientId: call.clientId ?? '',
            clientHost: `/${call.caller.remote.host}`,
            memberIdSuffix: dashed(uuidFromRandom(into => broker.world.random.fill(into))),
          }))
          return reply.response
        },
        error => ({ ...refused, errorCode: ErrorCode[error] }),
      )
    },
  })
}

/** The id as Java prints it: in hex with dashes. */
function dashed(uuid: Uuid): string {
  const hex = uuidToBytes(uuid).toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
