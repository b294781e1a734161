import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { askGroup } from './coordinated.ts'

/** DeleteGroups (42), versions 0-2. Groups without members, with all that they committed; errors per group, each once. */
export function deleteGroups(broker: Broker): ServedApi {
  return serve({
    api: API.DeleteGroups,
    async handle(request, call) {
      const answers = await broker.turns.pieces().mapLater([...new Set(request.groupsNames)], groupId => {
        const asked = { kind: 'DeleteGroups' as const, groupId, request: { ...request, groupsNames: [groupId] } }
        return askGroup(broker, call, asked, error => ({ results: [{ groupId, errorCode: ErrorCode[error] }] }))
      })
      return { results: answers.flatMap(({ results = [] }) => results) }
    },
  })
}
