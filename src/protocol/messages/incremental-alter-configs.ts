import { array, bool, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const IncrementalAlterConfigsRequest = request(
  {
    apiKey: 44,
    name: 'IncrementalAlterConfigsRequest',
    versions: '0-1',
    flexible: '1+',
    listeners: ['broker', 'controller'],
  },
  {
    resources: array('0+', {
      resourceType: int8('0+'),
      resourceName: string('0+'),
      configs: array('0+', {
        name: string('0+'),
        configOperation: int8('0+'),
        value: string('0+', { nullable: '0+' }),
      }),
    }),
    validateOnly: bool('0+'),
  },
)
export type IncrementalAlterConfigsRequest = MessageOf<typeof IncrementalAlterConfigsRequest>

export const IncrementalAlterConfigsResponse = response(
  { apiKey: 44, name: 'IncrementalAlterConfigsResponse', versions: '0-1', flexible: '1+' },
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
export type IncrementalAlterConfigsResponse = MessageOf<typeof IncrementalAlterConfigsResponse>
