import { array, bool, float64, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const AlterClientQuotasRequest = request(
  {
    apiKey: 49,
    name: 'AlterClientQuotasRequest',
    versions: '0-1',
    flexible: '1+',
    listeners: ['broker', 'controller'],
  },
  {
    entries: array('0+', {
      entity: array('0+', { entityType: string('0+'), entityName: string('0+', { nullable: '0+' }) }),
      ops: array('0+', { key: string('0+'), value: float64('0+'), remove: bool('0+') }),
    }),
    validateOnly: bool('0+'),
  },
)
export type AlterClientQuotasRequest = MessageOf<typeof AlterClientQuotasRequest>

export const AlterClientQuotasResponse = response(
  { apiKey: 49, name: 'AlterClientQuotasResponse', versions: '0-1', flexible: '1+' },
  {
    throttleTimeMs: int32('0+'),
    entries: array('0+', {
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+' }),
      entity: array('0+', { entityType: string('0+'), entityName: string('0+', { nullable: '0+' }) }),
    }),
  },
)
export type AlterClientQuotasResponse = MessageOf<typeof AlterClientQuotasResponse>
