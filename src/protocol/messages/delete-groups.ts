import { array, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const DeleteGroupsRequest = request(
  { apiKey: 42, name: 'DeleteGroupsRequest', versions: '0-2', flexible: '2+', listeners: ['broker'] },
  { groupsNames: array('0+', 'string') },
)
export type DeleteGroupsRequest = MessageOf<typeof DeleteGroupsRequest>

export const DeleteGroupsResponse = response(
  { apiKey: 42, name: 'DeleteGroupsResponse', versions: '0-2', flexible: '2+' },
  { throttleTimeMs: int32('0+'), results: array('0+', { groupId: string('0+'), errorCode: int16('0+') }) },
)
export type DeleteGroupsResponse = MessageOf<typeof DeleteGroupsResponse>
