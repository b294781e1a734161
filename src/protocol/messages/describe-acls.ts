import { array, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeAclsRequest = request(
  { apiKey: 29, name: 'DescribeAclsRequest', versions: '1-3', flexible: '2+', listeners: ['broker', 'controller'] },
  {
    resourceTypeFilter: int8('0+'),
    resourceNameFilter: string('0+', { nullable: '0+' }),
    patternTypeFilter: int8('1+', { default: 3 }),
    principalFilter: string('0+', { nullable: '0+' }),
    hostFilter: string('0+', { nullable: '0+' }),
    operation: int8('0+'),
    permissionType: int8('0+'),
  },
)
export type DescribeAclsRequest = MessageOf<typeof DescribeAclsRequest>

export const DescribeAclsResponse = response(
  { apiKey: 29, name: 'DescribeAclsResponse', versions: '1-3', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+' }),
    resources: array('0+', {
      resourceType: int8('0+'),
      resourceName: string('0+'),
      patternType: int8('1+', { default: 3 }),
      acls: array('0+', {
        principal: string('0+'),
        host: string('0+'),
        operation: int8('0+'),
        permissionType: int8('0+'),
      }),
    }),
  },
)
export type DescribeAclsResponse = MessageOf<typeof DescribeAclsResponse>
