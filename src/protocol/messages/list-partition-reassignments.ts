import { array, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const ListPartitionReassignmentsRequest = request(
  {
    apiKey: 46,
    name: 'ListPartitionReassignmentsRequest',
    versions: '0',
    flexible: '0+',
    listeners: ['broker', 'controller'],
  },
  {
    timeoutMs: int32('0+', { default: 60000 }),
    topics: array(
      '0+',
      { name: string('0+'), partitionIndexes: array('0+', 'int32') },
      { nullable: '0+', default: null },
    ),
  },
)
export type ListPartitionReassignmentsRequest = MessageOf<typeof ListPartitionReassignmentsRequest>

export const ListPartitionReassignmentsResponse = response(
  { apiKey: 46, name: 'ListPartitionReassignmentsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+' }),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        replicas: array('0+', 'int32'),
        addingReplicas: array('0+', 'int32'),
        removingReplicas: array('0+', 'int32'),
      }),
    }),
  },
)
export type ListPartitionReassignmentsResponse = MessageOf<typeof ListPartitionReassignmentsResponse>
