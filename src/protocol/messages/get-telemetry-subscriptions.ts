import { array, bool, int16, int32, type MessageOf, request, response, uuid } from '../schema.ts'

export const GetTelemetrySubscriptionsRequest = request(
  { apiKey: 71, name: 'GetTelemetrySubscriptionsRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  { clientInstanceId: uuid('0+') },
)
export type GetTelemetrySubscriptionsRequest = MessageOf<typeof GetTelemetrySubscriptionsRequest>

export const GetTelemetrySubscriptionsResponse = response(
  { apiKey: 71, name: 'GetTelemetrySubscriptionsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    clientInstanceId: uuid('0+'),
    subscriptionId: int32('0+'),
    acceptedCompressionTypes: array('0+', 'int8'),
    pushIntervalMs: int32('0+'),
    telemetryMaxBytes: int32('0+'),
    deltaTemporality: bool('0+'),
    requestedMetrics: array('0+', 'string'),
  },
)
export type GetTelemetrySubscriptionsResponse = MessageOf<typeof GetTelemetrySubscriptionsResponse>
