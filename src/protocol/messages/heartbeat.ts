import { int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const HeartbeatRequest = request(
  { apiKey: 12, name: 'HeartbeatRequest', versions: '0-4', flexible: '4+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    generationId: int32('0+'),
    memberId: string('0+'),
    groupInstanceId: string('3+', { nullable: '3+', default: null }),
  },
)
export type HeartbeatRequest = MessageOf<typeof HeartbeatRequest>

export const HeartbeatResponse = response(
  { apiKey: 12, name: 'HeartbeatResponse', versions: '0-4', flexible: '4+' },
  { throttleTimeMs: int32('1+', { ignorable: true }), errorCode: int16('0+') },
)
export type HeartbeatResponse = MessageOf<typeof HeartbeatResponse>
