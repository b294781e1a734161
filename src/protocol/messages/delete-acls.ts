import { array, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const DeleteAclsRequest = request(
  { apiKey: 31, name: 'DeleteAclsRequest', versions: '1-3', flexible: '2+', listeners: ['broker', 'controller'] },
  {
    filters: array('0+', {
      resourceTypeFilter: int8('0+'),
      resourceNameFilter: string('0+', { nullable: '0+' }),
      patternTypeFilter: int8('1+', { default: 3 }),
      principalFilter: string('0+', { nullable: '0+' }),
      hostFilter: string('0+', { nullable: '0+' }),
      operation: int8('0+'),
      permissionType: int8('0+'),
    }),
  },
)
export type DeleteAclsRequest = MessageOf<typeof DeleteAclsRequest>

export const DeleteAclsResponse = response(
  { apiKey: 31, name: 'DeleteAclsResponse', versions: '1-3', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    filterResults: array('0+', {
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+' }),
      matchingAcls: array('0+', {
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+' }),
        resourceType: int8('0+'),
        resourceName: string('0+'),
        patternType: int8('1+', { default: 3 }),
        principal: string('0+'),
        host: string('0+'),
        operation: int8('0+'),
        permissionType: int8('0+'),
      }),
    }),
  },
)
export type DeleteAclsResponse = MessageOf<typeof DeleteAclsResponse>
