import { array, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeUserScramCredentialsRequest = request(
  {
    apiKey: 50,
    name: 'DescribeUserScramCredentialsRequest',
    versions: '0',
    flexible: '0+',
    listeners: ['broker', 'controller'],
  },
  { users: array('0+', { name: string('0+') }, { nullable: '0+' }) },
)
export type DescribeUserScramCredentialsRequest = MessageOf<typeof DescribeUserScramCredentialsRequest>

export const DescribeUserScramCredentialsResponse = response(
  { apiKey: 50, name: 'DescribeUserScramCredentialsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+' }),
    results: array('0+', {
      user: string('0+'),
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+' }),
      credentialInfos: array('0+', { mechanism: int8('0+'), iterations: int32('0+') }),
    }),
  },
)
export type DescribeUserScramCredentialsResponse = MessageOf<typeof DescribeUserScramCredentialsResponse>
