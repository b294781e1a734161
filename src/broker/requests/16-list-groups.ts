import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { ListGroupsResponse } from '#protocol/messages/list-groups.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { coordinated } from './coordinated.ts'

/** There are a handful of states and types. */
const FILTERS_MAX = 1000

/** ListGroups (16), versions 0-5. The groups of this broker. v4: filter by states, v5: by types. */
export function listGroups(broker: Broker): ServedApi {
  return serve({
    api: API.ListGroups,
    handle(request, call) {
      if (request.statesFilter.length + request.typesFilter.length > FILTERS_MAX) {
        return { errorCode: ErrorCode.INVALID_REQUEST, groups: [] }
      }
      const command = (id: number) => ({ kind: 'ListGroups', call: id, version: call.apiVersion, request }) as const
      return coordinated<InputOf<typeof ListGroupsResponse>>(
        async () => {
          const replies = await broker.groups.askAll(call.caller, command)
          return { errorCode: ErrorCode.NONE, groups: replies.flatMap(({ response }) => response.groups ?? []) }
        },
        error => ({ errorCode: ErrorCode[error], groups: [] }),
      )
    },
  })
}
