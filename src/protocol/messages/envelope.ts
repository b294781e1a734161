import { bytes, int16, type MessageOf, request, response } from '../schema.ts'

export const EnvelopeRequest = request(
  { apiKey: 58, name: 'EnvelopeRequest', versions: '0', flexible: '0+', listeners: ['controller'] },
  { requestData: bytes('0+'), requestPrincipal: bytes('0+', { nullable: '0+' }), clientHostAddress: bytes('0+') },
)
export type EnvelopeRequest = MessageOf<typeof EnvelopeRequest>

export const EnvelopeResponse = response(
  { apiKey: 58, name: 'EnvelopeResponse', versions: '0', flexible: '0+' },
  { responseData: bytes('0+', { nullable: '0+', default: null }), errorCode: int16('0+') },
)
export type EnvelopeResponse = MessageOf<typeof EnvelopeResponse>
