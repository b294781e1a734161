import { int16, int32, int64, type MessageOf, request, response } from '../schema.ts'

export const AllocateProducerIdsRequest = request(
  { apiKey: 67, name: 'AllocateProducerIdsRequest', versions: '0', flexible: '0+', listeners: ['controller'] },
  { brokerId: int32('0+'), brokerEpoch: int64('0+', { default: -1 }) },
)
export type AllocateProducerIdsRequest = MessageOf<typeof AllocateProducerIdsRequest>

export const AllocateProducerIdsResponse = response(
  { apiKey: 67, name: 'AllocateProducerIdsResponse', versions: '0', flexible: '0+' },
  { throttleTimeMs: int32('0+'), errorCode: int16('0+'), producerIdStart: int64('0+'), producerIdLen: int32('0+') },
)
export type AllocateProducerIdsResponse = MessageOf<typeof AllocateProducerIdsResponse>
