import { array, bool, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const AlterPartitionReassignmentsRequest = request(
  {
    apiKey: 45,
    name: 'AlterPartitionReassignmentsRequest',
    versions: '0-1',
    flexible: '0+',
    listeners: ['broker', 'controller'],
  },
  {
    timeoutMs: int32('0+', { default: 60000 }),
    allowReplicationFactorChange: bool('1+', { default: true }),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        replicas: array('0+', 'int32', { nullable: '0+', default: null }),
      }),
    }),
  },
)
export type AlterPartitionReassignmentsRequest = MessageOf<typeof AlterPartitionReassignmentsRequest>

export const AlterPartitionReassignmentsResponse = response(
  { apiKey: 45, name: 'AlterPartitionReassignmentsResponse', versions: '0-1', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    allowReplicationFactorChange: bool('1+', { default: true, ignorable: true }),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+' }),
    responses: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+' }),
      }),
    }),
  },
)
export type AlterPartitionReassignmentsResponse = MessageOf<typeof AlterPartitionReassignmentsResponse>
