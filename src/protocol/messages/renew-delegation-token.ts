import { bytes, int16, int32, int64, type MessageOf, request, response } from '../schema.ts'

export const RenewDelegationTokenRequest = request(
  {
    apiKey: 39,
    name: 'RenewDelegationTokenRequest',
    versions: '1-2',
    flexible: '2+',
    listeners: ['broker', 'controller'],
  },
  { hmac: bytes('0+'), renewPeriodMs: int64('0+') },
)
export type RenewDelegationTokenRequest = MessageOf<typeof RenewDelegationTokenRequest>

export const RenewDelegationTokenResponse = response(
  { apiKey: 39, name: 'RenewDelegationTokenResponse', versions: '1-2', flexible: '2+' },
  { errorCode: int16('0+'), expiryTimestampMs: int64('0+'), throttleTimeMs: int32('0+') },
)
export type RenewDelegationTokenResponse = MessageOf<typeof RenewDelegationTokenResponse>
