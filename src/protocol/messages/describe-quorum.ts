import { array, int16, int32, int64, type MessageOf, request, response, string, uint16, uuid } from '../schema.ts'

export const DescribeQuorumRequest = request(
  { apiKey: 55, name: 'DescribeQuorumRequest', versions: '0-2', flexible: '0+', listeners: ['broker', 'controller'] },
  { topics: array('0+', { topicName: string('0+'), partitions: array('0+', { partitionIndex: int32('0+') }) }) },
)
export type DescribeQuorumRequest = MessageOf<typeof DescribeQuorumRequest>

const replicaState = {
  replicaId: int32('0+'),
  replicaDirectoryId: uuid('2+'),
  logEndOffset: int64('0+'),
  lastFetchTimestamp: int64('1+', { default: -1, ignorable: true }),
  lastCaughtUpTimestamp: int64('1+', { default: -1, ignorable: true }),
}

export const DescribeQuorumResponse = response(
  { apiKey: 55, name: 'DescribeQuorumResponse', versions: '0-2', flexible: '0+' },
  {
    errorCode: int16('0+'),
    errorMessage: string('2+', { nullable: '2+', ignorable: true }),
    topics: array('0+', {
      topicName: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('2+', { nullable: '2+', ignorable: true }),
        leaderId: int32('0+'),
        leaderEpoch: int32('0+'),
        highWatermark: int64('0+'),
        currentVoters: array('0+', replicaState),
        observers: array('0+', replicaState),
      }),
    }),
    nodes: array('2+', {
      nodeId: int32('2+'),
      listeners: array('2+', { name: string('2+'), host: string('2+'), port: uint16('2+') }),
    }),
  },
)
export type DescribeQuorumResponse = MessageOf<typeof DescribeQuorumResponse>
