import { int16, int32, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const RemoveRaftVoterRequest = request(
  { apiKey: 81, name: 'RemoveRaftVoterRequest', versions: '0', flexible: '0+', listeners: ['controller', 'broker'] },
  { clusterId: string('0+', { nullable: '0+' }), voterId: int32('0+'), voterDirectoryId: uuid('0+') },
)
export type RemoveRaftVoterRequest = MessageOf<typeof RemoveRaftVoterRequest>

export const RemoveRaftVoterResponse = response(
  { apiKey: 81, name: 'RemoveRaftVoterResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', ignorable: true }),
  },
)
export type RemoveRaftVoterResponse = MessageOf<typeof RemoveRaftVoterResponse>
