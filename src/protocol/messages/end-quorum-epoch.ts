import { array, int16, int32, type MessageOf, request, response, string, uint16, uuid } from '../schema.ts'

export const EndQuorumEpochRequest = request(
  { apiKey: 54, name: 'EndQuorumEpochRequest', versions: '0-1', flexible: '1+', listeners: ['controller'] },
  {
    clusterId: string('0+', { nullable: '0+', default: null }),
    topics: array('0+', {
      topicName: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        leaderId: int32('0+'),
        leaderEpoch: int32('0+'),
        preferredSuccessors: array('0', 'int32', { ignorable: true }),
        preferredCandidates: array(
          '1+',
          { candidateId: int32('1+'), candidateDirectoryId: uuid('1+') },
          { ignorable: true },
        ),
      }),
    }),
    leaderEndpoints: array('1+', { name: string('1+'), host: string('1+'), port: uint16('1+') }, { ignorable: true }),
  },
)
export type EndQuorumEpochRequest = MessageOf<typeof EndQuorumEpochRequest>

export const EndQuorumEpochResponse = response(
  { apiKey: 54, name: 'EndQuorumEpochResponse', versions: '0-1', flexible: '1+' },
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
export type EndQuorumEpochResponse = MessageOf<typeof EndQuorumEpochResponse>
