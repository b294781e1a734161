import { bool, bytes, int8, int16, int32, type MessageOf, request, response, uuid } from '../schema.ts'

export const PushTelemetryRequest = request(
  { apiKey: 72, name: 'PushTelemetryRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  {
    clientInstanceId: uuid('0+'),
    subscriptionId: int32('0+'),
    terminating: bool('0+'),
    compressionType: int8('0+'),
    metrics: bytes('0+'),
  },
)
export type PushTelemetryRequest = MessageOf<typeof PushTelemetryRequest>

export const PushTelemetryResponse = response(
  { apiKey: 72, name: 'PushTelemetryResponse', versions: '0', flexible: '0+' },
  { throttleTimeMs: int32('0+'), errorCode: int16('0+') },
)
export type PushTelemetryResponse = MessageOf<typeof PushTelemetryResponse>
