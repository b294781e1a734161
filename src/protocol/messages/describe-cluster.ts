import { array, bool, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeClusterRequest = request(
  { apiKey: 60, name: 'DescribeClusterRequest', versions: '0-2', flexible: '0+', listeners: ['broker', 'controller'] },
  {
    includeClusterAuthorizedOperations: bool('0+'),
    endpointType: int8('1+', { default: 1 }),
    includeFencedBrokers: bool('2+'),
  },
)
export type DescribeClusterRequest = MessageOf<typeof DescribeClusterRequest>

export const DescribeClusterResponse = response(
  { apiKey: 60, name: 'DescribeClusterResponse', versions: '0-2', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', default: null }),
    endpointType: int8('1+', { default: 1 }),
    clusterId: string('0+'),
    controllerId: int32('0+', { default: -1 }),
    brokers: array('0+', {
      brokerId: int32('0+'),
      host: string('0+'),
      port: int32('0+'),
      rack: string('0+', { nullable: '0+', default: null }),
      isFenced: bool('2+'),
    }),
    clusterAuthorizedOperations: int32('0+', { default: -2147483648 }),
  },
)
export type DescribeClusterResponse = MessageOf<typeof DescribeClusterResponse>
