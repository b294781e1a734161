import { array, bytes, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const SyncGroupRequest = request(
  { apiKey: 14, name: 'SyncGroupRequest', versions: '0-5', flexible: '4+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    generationId: int32('0+'),
    memberId: string('0+'),
    groupInstanceId: string('3+', { nullable: '3+', default: null }),
    protocolType: string('5+', { nullable: '5+', default: null, ignorable: true }),
    protocolName: string('5+', { nullable: '5+', default: null, ignorable: true }),
    assignments: array('0+', { memberId: string('0+'), assignment: bytes('0+') }),
  },
)
export type SyncGroupRequest = MessageOf<typeof SyncGroupRequest>

export const SyncGroupResponse = response(
  { apiKey: 14, name: 'SyncGroupResponse', versions: '0-5', flexible: '4+' },
  {
    throttleTimeMs: int32('1+', { ignorable: true }),
    errorCode: int16('0+'),
    protocolType: string('5+', { nullable: '5+', default: null, ignorable: true }),
    protocolName: string('5+', { nullable: '5+', default: null, ignorable: true }),
    assignment: bytes('0+'),
  },
)
export type SyncGroupResponse = MessageOf<typeof SyncGroupResponse>
