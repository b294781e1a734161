import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { DescribeGroupsResponse } from '#protocol/messages/describe-groups.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { GROUP_OPERATIONS } from './authorized-operations.ts'
import { askGroup } from './coordinated.ts'

type Described = NonNullable<InputOf<typeof DescribeGroupsResponse>['groups']>[number]

/** DescribeGroups (15), versions 0-6. Each group from its own shard. v6: GROUP_ID_NOT_FOUND; below, such a group is Dead. */
export function describeGroups(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeGroups,
    async handle(request, call) {
      // One that is named a thousand times is described once.
      const describe = async (groupId: string): Promise<readonly Described[]> => {
        const asked = { kind: 'DescribeGroups' as const, groupId, request: { ...request, groups: [groupId] } }
        const refused = (error: ErrorName) => ({ groups: [{ groupId, errorCode: ErrorCode[error] }] })
        const { groups = [] } = await askGroup(broker, call, asked, refused)
        return groups
      }
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
