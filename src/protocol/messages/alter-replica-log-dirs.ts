import { array, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const AlterReplicaLogDirsRequest = request(
  { apiKey: 34, name: 'AlterReplicaLogDirsRequest', versions: '1-2', flexible: '2+', listeners: ['broker'] },
  {
    dirs: array('0+', {
      path: string('0+'),
      topics: array('0+', { name: string('0+'), partitions: array('0+', 'int32') }),
    }),
  },
)
export type AlterReplicaLogDirsRequest = MessageOf<typeof AlterReplicaLogDirsRequest>

export const AlterReplicaLogDirsResponse = response(
  { apiKey: 34, name: 'AlterReplicaLogDirsResponse', versions: '1-2', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    results: array('0+', {
      topicName: string('0+'),
      partitions: array('0+', { partitionIndex: int32('0+'), errorCode: int16('0+') }),
    }),
  },
)
export type AlterReplicaLogDirsResponse = MessageOf<typeof AlterReplicaLogDirsResponse>
