import { array, bool, int16, int32, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const MetadataRequest = request(
  { apiKey: 3, name: 'MetadataRequest', versions: '0-13', flexible: '9+', listeners: ['broker'] },
  {
    topics: array(
      '0+',
      { topicId: uuid('10+', { ignorable: true }), name: string('0+', { nullable: '10+' }) },
      { nullable: '1+' },
    ),
    allowAutoTopicCreation: bool('4+', { default: true }),
    includeClusterAuthorizedOperations: bool('8-10'),
    includeTopicAuthorizedOperations: bool('8+'),
  },
)
export type MetadataRequest = MessageOf<typeof MetadataRequest>

export const MetadataResponse = response(
  { apiKey: 3, name: 'MetadataResponse', versions: '0-13', flexible: '9+' },
  {
    throttleTimeMs: int32('3+', { ignorable: true }),
    brokers: array('0+', {
      nodeId: int32('0+'),
      host: string('0+'),
      port: int32('0+'),
      rack: string('1+', { nullable: '1+', default: null, ignorable: true }),
    }),
    clusterId: string('2+', { nullable: '2+', default: null, ignorable: true }),
    controllerId: int32('1+', { default: -1, ignorable: true }),
    topics: array('0+', {
      errorCode: int16('0+'),
      name: string('0+', { nullable: '12+' }),
      topicId: uuid('10+', { ignorable: true }),
      isInternal: bool('1+', { ignorable: true }),
      partitions: array('0+', {
        errorCode: int16('0+'),
        partitionIndex: int32('0+'),
        leaderId: int32('0+'),
        leaderEpoch: int32('7+', { default: -1, ignorable: true }),
        replicaNodes: array('0+', 'int32'),
        isrNodes: array('0+', 'int32'),
        offlineReplicas: array('5+', 'int32', { ignorable: true }),
      }),
      topicAuthorizedOperations: int32('8+', { default: -2147483648 }),
    }),
    clusterAuthorizedOperations: int32('8-10', { default: -2147483648 }),
    errorCode: int16('13+', { ignorable: true }),
  },
)
export type MetadataResponse = MessageOf<typeof MetadataResponse>
