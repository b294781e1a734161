import { array, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const ListGroupsRequest = request(
  { apiKey: 16, name: 'ListGroupsRequest', versions: '0-5', flexible: '3+', listeners: ['broker'] },
  { statesFilter: array('4+', 'string'), typesFilter: array('5+', 'string') },
)
export type ListGroupsRequest = MessageOf<typeof ListGroupsRequest>

export const ListGroupsResponse = response(
  { apiKey: 16, name: 'ListGroupsResponse', versions: '0-5', flexible: '3+' },
  {
    throttleTimeMs: int32('1+', { ignorable: true }),
    errorCode: int16('0+'),
    groups: array('0+', {
      groupId: string('0+'),
      protocolType: string('0+'),
      groupState: string('4+', { ignorable: true }),
      groupType: string('5+', { ignorable: true }),
    }),
  },
)
export type ListGroupsResponse = MessageOf<typeof ListGroupsResponse>
