import { array, int16, type MessageOf, request, response, string } from '../schema.ts'

export const SaslHandshakeRequest = request(
  { apiKey: 17, name: 'SaslHandshakeRequest', versions: '0-1', listeners: ['broker', 'controller'] },
  { mechanism: string('0+') },
)
export type SaslHandshakeRequest = MessageOf<typeof SaslHandshakeRequest>

export const SaslHandshakeResponse = response(
  { apiKey: 17, name: 'SaslHandshakeResponse', versions: '0-1' },
  { errorCode: int16('0+'), mechanisms: array('0+', 'string') },
)
export type SaslHandshakeResponse = MessageOf<typeof SaslHandshakeResponse>
