import { array, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const LeaveGroupRequest = request(
  { apiKey: 13, name: 'LeaveGroupRequest', versions: '0-5', flexible: '4+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    memberId: string('0-2'),
    members: array('3+', {
      memberId: string('3+'),
      groupInstanceId: string('3+', { nullable: '3+', default: null }),
      reason: string('5+', { nullable: '5+', default: null, ignorable: true }),
    }),
  },
)
export type LeaveGroupRequest = MessageOf<typeof LeaveGroupRequest>

export const LeaveGroupResponse = response(
  { apiKey: 13, name: 'LeaveGroupResponse', versions: '0-5', flexible: '4+' },
  {
    throttleTimeMs: int32('1+', { ignorable: true }),
    errorCode: int16('0+'),
    members: array('3+', {
      memberId: string('3+'),
      groupInstanceId: string('3+', { nullable: '3+' }),
      errorCode: int16('3+'),
    }),
  },
)
export type LeaveGroupResponse = MessageOf<typeof LeaveGroupResponse>
