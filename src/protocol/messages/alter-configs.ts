import { array, bool, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const AlterConfigsRequest = request(
  { apiKey: 33, name: 'AlterConfigsRequest', versions: '0-2', flexible: '2+', listeners: ['broker', 'controller'] },
  {
    resources: array('0+', {
      resourceType: int8('0+'),
      resourceName: string('0+'),
      configs: array('0+', { name: string('0+'), value: string('0+', { nullable: '0+' }) }),
    }),
    validateOnly: bool('0+'),
  },
)
export type AlterConfigsRequest = MessageOf<typeof AlterConfigsRequest>

export const AlterConfigsResponse = response(
  { apiKey: 33, name: 'AlterConfigsResponse', versions: '0-2', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    responses: array('0+', {
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+' }),
      resourceType: int8('0+'),
      resourceName: string('0+'),
    }),
  },
)
export type AlterConfigsResponse = MessageOf<typeof AlterConfigsResponse>
