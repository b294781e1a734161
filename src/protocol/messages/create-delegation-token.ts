import { array, bytes, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const CreateDelegationTokenRequest = request(
  {
    apiKey: 38,
    name: 'CreateDelegationTokenRequest',
    versions: '1-3',
    flexible: '2+',
    listeners: ['broker', 'controller'],
  },
  {
    ownerPrincipalType: string('3+', { nullable: '3+' }),
    ownerPrincipalName: string('3+', { nullable: '3+' }),
    renewers: array('0+', { principalType: string('0+'), principalName: string('0+') }),
    maxLifetimeMs: int64('0+'),
  },
)
export type CreateDelegationTokenRequest = MessageOf<typeof CreateDelegationTokenRequest>

export const CreateDelegationTokenResponse = response(
  { apiKey: 38, name: 'CreateDelegationTokenResponse', versions: '1-3', flexible: '2+' },
  {
    errorCode: int16('0+'),
    principalType: string('0+'),
    principalName: string('0+'),
    tokenRequesterPrincipalType: string('3+'),
    tokenRequesterPrincipalName: string('3+'),
    issueTimestampMs: int64('0+'),
    expiryTimestampMs: int64('0+'),
    maxTimestampMs: int64('0+'),
    tokenId: string('0+'),
    hmac: bytes('0+'),
    throttleTimeMs: int32('0+'),
  },
)
export type CreateDelegationTokenResponse = MessageOf<typeof CreateDelegationTokenResponse>
