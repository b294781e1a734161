import { bytes, int16, int64, type MessageOf, request, response, string } from '../schema.ts'

export const SaslAuthenticateRequest = request(
  { apiKey: 36, name: 'SaslAuthenticateRequest', versions: '0-2', flexible: '2+', listeners: ['broker', 'controller'] },
  { authBytes: bytes('0+') },
)
export type SaslAuthenticateRequest = MessageOf<typeof SaslAuthenticateRequest>

export const SaslAuthenticateResponse = response(
  { apiKey: 36, name: 'SaslAuthenticateResponse', versions: '0-2', flexible: '2+' },
  {
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+' }),
    authBytes: bytes('0+'),
    sessionLifetimeMs: int64('1+', { ignorable: true }),
  },
)
export type SaslAuthenticateResponse = MessageOf<typeof SaslAuthenticateResponse>
