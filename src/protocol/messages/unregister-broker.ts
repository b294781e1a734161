import { int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const UnregisterBrokerRequest = request(
  { apiKey: 64, name: 'UnregisterBrokerRequest', versions: '0', flexible: '0+', listeners: ['broker', 'controller'] },
  { brokerId: int32('0+') },
)
export type UnregisterBrokerRequest = MessageOf<typeof UnregisterBrokerRequest>

export const UnregisterBrokerResponse = response(
  { apiKey: 64, name: 'UnregisterBrokerResponse', versions: '0', flexible: '0+' },
  { throttleTimeMs: int32('0+'), errorCode: int16('0+'), errorMessage: string('0+', { nullable: '0+' }) },
)
export type UnregisterBrokerResponse = MessageOf<typeof UnregisterBrokerResponse>
