import { array, bool, int16, int32, type MessageOf, request, response, string, uint16, uuid } from '../schema.ts'

export const AddRaftVoterRequest = request(
  { apiKey: 80, name: 'AddRaftVoterRequest', versions: '0-1', flexible: '0+', listeners: ['controller', 'broker'] },
  {
    clusterId: string('0+', { nullable: '0+' }),
    timeoutMs: int32('0+'),
    voterId: int32('0+'),
    voterDirectoryId: uuid('0+'),
    listeners: array('0+', { name: string('0+'), host: string('0+'), port: uint16('0+') }),
    ackWhenCommitted: bool('1+', { default: true }),
  },
)
export type AddRaftVoterRequest = MessageOf<typeof AddRaftVoterRequest>

export const AddRaftVoterResponse = response(
  { apiKey: 80, name: 'AddRaftVoterResponse', versions: '0-1', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', ignorable: true }),
  },
)
export type AddRaftVoterResponse = MessageOf<typeof AddRaftVoterResponse>
