import { array, bool, int16, int32, int64, type MessageOf, request, response, string, uint16, uuid } from '../schema.ts'

export const VoteRequest = request(
  { apiKey: 52, name: 'VoteRequest', versions: '0-2', flexible: '0+', listeners: ['controller'] },
  {
    clusterId: string('0+', { nullable: '0+', default: null }),
    voterId: int32('1+', { default: -1, ignorable: true }),
    topics: array('0+', {
      topicName: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        replicaEpoch: int32('0+'),
        replicaId: int32('0+'),
        replicaDirectoryId: uuid('1+', { ignorable: true }),
        voterDirectoryId: uuid('1+', { ignorable: true }),
        lastOffsetEpoch: int32('0+'),
        lastOffset: int64('0+'),
        preVote: bool('2+'),
      }),
    }),
  },
)
export type VoteRequest = MessageOf<typeof VoteRequest>

export const VoteResponse = response(
  { apiKey: 52, name: 'VoteResponse', versions: '0-2', flexible: '0+' },
  {
    errorCode: int16('0+'),
    topics: array('0+', {
      topicName: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        leaderId: int32('0+'),
        leaderEpoch: int32('0+'),
        voteGranted: bool('0+'),
      }),
    }),
    nodeEndpoints: array('1+', { nodeId: int32('1+'), host: string('1+'), port: uint16('1+') }, { tag: 0 }),
  },
)
export type VoteResponse = MessageOf<typeof VoteResponse>
