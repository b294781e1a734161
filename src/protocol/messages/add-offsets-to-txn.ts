import { int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const AddOffsetsToTxnRequest = request(
  { apiKey: 25, name: 'AddOffsetsToTxnRequest', versions: '0-4', flexible: '3+', listeners: ['broker'] },
  { transactionalId: string('0+'), producerId: int64('0+'), producerEpoch: int16('0+'), groupId: string('0+') },
)
export type AddOffsetsToTxnRequest = MessageOf<typeof AddOffsetsToTxnRequest>

export const AddOffsetsToTxnResponse = response(
  { apiKey: 25, name: 'AddOffsetsToTxnResponse', versions: '0-4', flexible: '3+' },
  { throttleTimeMs: int32('0+'), errorCode: int16('0+') },
)
export type AddOffsetsToTxnResponse = MessageOf<typeof AddOffsetsToTxnResponse>
