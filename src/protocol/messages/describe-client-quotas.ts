import { array, bool, float64, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeClientQuotasRequest = request(
  { apiKey: 48, name: 'DescribeClientQuotasRequest', versions: '0-1', flexible: '1+', listeners: ['broker'] },
  {
    components: array('0+', {
      entityType: string('0+'),
      matchType: int8('0+'),
      match: string('0+', { nullable: '0+' }),
    }),
    strict: bool('0+'),
  },
)
export type DescribeClientQuotasRequest = MessageOf<typeof DescribeClientQuotasRequest>

export const DescribeClientQuotasResponse = response(
  { apiKey: 48, name: 'DescribeClientQuotasResponse', versions: '0-1', flexible: '1+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+' }),
    entries: array(
      '0+',
      {
        entity: array('0+', { entityType: string('0+'), entityName: string('0+', { nullable: '0+' }) }),
        values: array('0+', { key: string('0+'), value: float64('0+') }),
      },
      { nullable: '0+' },
    ),
  },
)
export type DescribeClientQuotasResponse = MessageOf<typeof DescribeClientQuotasResponse>
