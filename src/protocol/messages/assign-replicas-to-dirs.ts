import { array, int16, int32, int64, type MessageOf, request, response, uuid } from '../schema.ts'

export const AssignReplicasToDirsRequest = request(
  { apiKey: 73, name: 'AssignReplicasToDirsRequest', versions: '0', flexible: '0+', listeners: ['controller'] },
  {
    brokerId: int32('0+'),
    brokerEpoch: int64('0+', { default: -1 }),
    directories: array('0+', {
      id: uuid('0+'),
      topics: array('0+', { topicId: uuid('0+'), partitions: array('0+', { partitionIndex: int32('0+') }) }),
    }),
  },
)
export type AssignReplicasToDirsRequest = MessageOf<typeof AssignReplicasToDirsRequest>

export const AssignReplicasToDirsResponse = response(
  { apiKey: 73, name: 'AssignReplicasToDirsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    directories: array('0+', {
      id: uuid('0+'),
      topics: array('0+', {
        topicId: uuid('0+'),
        partitions: array('0+', { partitionIndex: int32('0+'), errorCode: int16('0+') }),
      }),
    }),
  },
)
export type AssignReplicasToDirsResponse = MessageOf<typeof AssignReplicasToDirsResponse>
