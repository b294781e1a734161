import { bytes, int16, int32, int64, type MessageOf, request, response } from '../schema.ts'

export const ExpireDelegationTokenRequest = request(
  {
    apiKey: 40,
    name: 'ExpireDelegationTokenRequest',
    versions: '1-2',
    flexible: '2+',
    listeners: ['broker', 'controller'],
  },
  { hmac: bytes('0+'), expiryTimePeriodMs: int64('0+') },
)
export type ExpireDelegationTokenRequest = MessageOf<typeof ExpireDelegationTokenRequest>

export const ExpireDelegationTokenResponse = response(
  { apiKey: 40, name: 'ExpireDelegationTokenResponse', versions: '1-2', flexible: '2+' },
  { errorCode: int16('0+'), expiryTimestampMs: int64('0+'), throttleTimeMs: int32('0+') },
)
export type ExpireDelegationTokenResponse = MessageOf<typeof ExpireDelegationTokenResponse>
