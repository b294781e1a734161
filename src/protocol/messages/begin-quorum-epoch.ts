import { array, int16, int32, type MessageOf, request, response, string, uint16, uuid } from '../schema.ts'

export const BeginQuorumEpochRequest = request(
  { apiKey: 53, name: 'BeginQuorumEpochRequest', versions: '0-1', flexible: '1+', listeners: ['controller'] },
  {
    clusterId: string('0+', { nullable: '0+', default: null }),
    voterId: int32('1+', { default: -1, ignorable: true }),
    topics: array('0+', {
      topicName: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        voterDirectoryId: uuid('1+', { ignorable: true }),
        leaderId: int32('0+'),
        leaderEpoch: int32('0+'),
      }),
    }),
    leaderEndpoints: array('1+', { name: string('1+'), host: string('1+'), port: uint16('1+') }, { ignorable: true }),
  },
)
export type BeginQuorumEpochRequest = MessageOf<typeof BeginQuorumEpochRequest>

export const BeginQuorumEpochResponse = response(
  { apiKey: 53, name: 'BeginQuorumEpochResponse', versions: '0-1', flexible: '1+' },
  {
    errorCode: int16('0+'),
    topics: array('0+', {
      topicName: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        leaderId: int32('0+'),
        leaderEpoch: int32('0+'),
      }),
    }),
    nodeEndpoints: array('1+', { nodeId: int32('1+'), host: string('1+'), port: uint16('1+') }, { tag: 0 }),
  },
)
export type BeginQuorumEpochResponse = MessageOf<typeof BeginQuorumEpochResponse>
