import { array, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const ListConfigResourcesRequest = request(
  { apiKey: 74, name: 'ListConfigResourcesRequest', versions: '0-1', flexible: '0+', listeners: ['broker'] },
  { resourceTypes: array('1+', 'int8') },
)
export type ListConfigResourcesRequest = MessageOf<typeof ListConfigResourcesRequest>

export const ListConfigResourcesResponse = response(
  { apiKey: 74, name: 'ListConfigResourcesResponse', versions: '0-1', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    configResources: array('0+', {
      resourceName: string('0+'),
      resourceType: int8('1+', { default: 16, ignorable: true }),
    }),
  },
)
export type ListConfigResourcesResponse = MessageOf<typeof ListConfigResourcesResponse>
