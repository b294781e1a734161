import { array, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const CreateAclsRequest = request(
  { apiKey: 30, name: 'CreateAclsRequest', versions: '1-3', flexible: '2+', listeners: ['broker', 'controller'] },
  {
    creations: array('0+', {
      resourceType: int8('0+'),
      resourceName: string('0+'),
      resourcePatternType: int8('1+', { default: 3 }),
      principal: string('0+'),
      host: string('0+'),
      operation: int8('0+'),
      permissionType: int8('0+'),
    }),
  },
)
export type CreateAclsRequest = MessageOf<typeof CreateAclsRequest>

export const CreateAclsResponse = response(
  { apiKey: 30, name: 'CreateAclsResponse', versions: '1-3', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    results: array('0+', { errorCode: int16('0+'), errorMessage: string('0+', { nullable: '0+' }) }),
  },
)
export type CreateAclsResponse = MessageOf<typeof CreateAclsResponse>
