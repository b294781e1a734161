import { array, int16, int32, type MessageOf, request, response, string, struct, uint16, uuid } from '../schema.ts'

export const UpdateRaftVoterRequest = request(
  { apiKey: 82, name: 'UpdateRaftVoterRequest', versions: '0', flexible: '0+', listeners: ['controller'] },
  {
    clusterId: string('0+', { nullable: '0+' }),
    currentLeaderEpoch: int32('0+'),
    voterId: int32('0+'),
    voterDirectoryId: uuid('0+'),
    listeners: array('0+', { name: string('0+'), host: string('0+'), port: uint16('0+') }),
    kRaftVersionFeature: struct('0+', { minSupportedVersion: int16('0+'), maxSupportedVersion: int16('0+') }),
  },
)
export type UpdateRaftVoterRequest = MessageOf<typeof UpdateRaftVoterRequest>

export const UpdateRaftVoterResponse = response(
  { apiKey: 82, name: 'UpdateRaftVoterResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    currentLeader: struct(
      '0+',
      {
        leaderId: int32('0+', { default: -1 }),
        leaderEpoch: int32('0+', { default: -1 }),
        host: string('0+'),
        port: int32('0+'),
      },
      { tag: 0 },
    ),
  },
)
export type UpdateRaftVoterResponse = MessageOf<typeof UpdateRaftVoterResponse>
