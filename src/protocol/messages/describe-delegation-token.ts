import { array, bytes, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeDelegationTokenRequest = request(
  {
    apiKey: 41,
    name: 'DescribeDelegationTokenRequest',
    versions: '1-3',
    flexible: '2+',
    listeners: ['broker', 'controller'],
  },
  { owners: array('0+', { principalType: string('0+'), principalName: string('0+') }, { nullable: '0+' }) },
)
export type DescribeDelegationTokenRequest = MessageOf<typeof DescribeDelegationTokenRequest>

export const DescribeDelegationTokenResponse = response(
  { apiKey: 41, name: 'DescribeDelegationTokenResponse', versions: '1-3', flexible: '2+' },
  {
    errorCode: int16('0+'),
    tokens: array('0+', {
      principalType: string('0+'),
      principalName: string('0+'),
      tokenRequesterPrincipalType: string('3+'),
      tokenRequesterPrincipalName: string('3+'),
      issueTimestamp: int64('0+'),
      expiryTimestamp: int64('0+'),
      maxTimestamp: int64('0+'),
      tokenId: string('0+'),
      hmac: bytes('0+'),
      renewers: array('0+', { principalType: string('0+'), principalName: string('0+') }),
    }),
    throttleTimeMs: int32('0+'),
  },
)
export type DescribeDelegationTokenResponse = MessageOf<typeof DescribeDelegationTokenResponse>
