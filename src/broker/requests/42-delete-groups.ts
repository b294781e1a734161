import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { coordinated } from './coordinated.ts'

/** DeleteGroups (42), versions 0-2. Groups without members, with all that they committed; errors per group. */
export function deleteGroups(broker: Broker): ServedApi {
  return serve({
    api: API.DeleteGroups,
    async handle(request, call) {
      const deleted = await broker.turns.pieces().mapLater(request.groupsNames, groupId =>
        coordinated(
          async () => {
            const one = { ...request, groupsNames: [groupId] }
            const command = (id: number) =>
              ({ kind: 'DeleteGroups', call: id, version: call.apiVersion, request: one }) as const
            return (await broker.groups.ask(groupId, call.caller, command)).response.results ?? []
          },
          error => [{ groupId, errorCode: ErrorCode[error] }],
        ),
      )
      return { results: deleted.flat() }
    },
  })
}
