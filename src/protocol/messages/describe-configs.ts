import { array, bool, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeConfigsRequest = request(
  { apiKey: 32, name: 'DescribeConfigsRequest', versions: '1-4', flexible: '4+', listeners: ['broker', 'controller'] },
  {
    resources: array('0+', {
      resourceType: int8('0+'),
      resourceName: string('0+'),
      configurationKeys: array('0+', 'string', { nullable: '0+' }),
    }),
    includeSynonyms: bool('1+'),
    includeDocumentation: bool('3+'),
  },
)
export type DescribeConfigsRequest = MessageOf<typeof DescribeConfigsRequest>

export const DescribeConfigsResponse = response(
  { apiKey: 32, name: 'DescribeConfigsResponse', versions: '1-4', flexible: '4+' },
  {
    throttleTimeMs: int32('0+'),
    results: array('0+', {
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+' }),
      resourceType: int8('0+'),
      resourceName: string('0+'),
      configs: array('0+', {
        name: string('0+'),
        value: string('0+', { nullable: '0+' }),
        readOnly: bool('0+'),
        configSource: int8('1+', { default: -1, ignorable: true }),
        isSensitive: bool('0+'),
        synonyms: array(
          '1+',
          { name: string('1+'), value: string('1+', { nullable: '0+' }), source: int8('1+') },
          { ignorable: true },
        ),
        configType: int8('3+', { ignorable: true }),
        documentation: string('3+', { nullable: '0+', ignorable: true }),
      }),
    }),
  },
)
export type DescribeConfigsResponse = MessageOf<typeof DescribeConfigsResponse>
