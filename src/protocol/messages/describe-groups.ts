import { array, bool, bytes, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeGroupsRequest = request(
  { apiKey: 15, name: 'DescribeGroupsRequest', versions: '0-6', flexible: '5+', listeners: ['broker'] },
  { groups: array('0+', 'string'), includeAuthorizedOperations: bool('3+') },
)
export type DescribeGroupsRequest = MessageOf<typeof DescribeGroupsRequest>

export const DescribeGroupsResponse = response(
  { apiKey: 15, name: 'DescribeGroupsResponse', versions: '0-6', flexible: '5+' },
  {
    throttleTimeMs: int32('1+', { ignorable: true }),
    groups: array('0+', {
      errorCode: int16('0+'),
      errorMessage: string('6+', { nullable: '6+', default: null }),
      groupId: string('0+'),
      groupState: string('0+'),
      protocolType: string('0+'),
      protocolData: string('0+'),
      members: array('0+', {
        memberId: string('0+'),
        groupInstanceId: string('4+', { nullable: '4+', default: null, ignorable: true }),
        clientId: string('0+'),
        clientHost: string('0+'),
        memberMetadata: bytes('0+'),
        memberAssignment: bytes('0+'),
      }),
      authorizedOperations: int32('3+', { default: -2147483648 }),
    }),
  },
)
export type DescribeGroupsResponse = MessageOf<typeof DescribeGroupsResponse>
