import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { DescribeGroupsResponse } from '#protocol/messages/describe-groups.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { GROUP_OPERATIONS } from './authorized-operations.ts'
import { coordinated } from './coordinated.ts'

type Described = NonNullable<InputOf<typeof DescribeGroupsResponse>['groups']>[number]

/** DescribeGroups (15), versions 0-6. Each group from its own shard. v6: GROUP_ID_NOT_FOUND; below, such a group is Dead. */
export function describeGroups(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeGroups,
    async handle(request, call) {
      // One that is named a thousand times is described once.
      const describe = (groupId: string): Promise<readonly Described[]> =>
        coordinated<readonly Described[]>(
          async () => {
            const one = { ...request, groups: [groupId] }
            const command = (id: number) =>
              ({ kind: 'DescribeGroups', call: id, version: call.apiVersion, request: one }) as const
            return (await broker.groups.ask(groupId, call.caller, command)).response.groups ?? []
          },
          error => [{ groupId, errorCode: ErrorCode[error] }],
        )
      const pieces = broker.turns.pieces()
      const once = [...new Set(request.groups)]
      const described = new Map(await pieces.mapLater(once, async id => [id, await describe(id)] as const))
      const groups = (await pieces.map(request.groups, id => described.get(id) ?? [])).flat()
      if (!request.includeAuthorizedOperations) return { groups }
      return {
        groups: groups.map(group =>
          (group.errorCode ?? 0) === 0 ? { ...group, authorizedOperations: GROUP_OPERATIONS } : group,
        ),
      }
    },
  })
}
