import { array, bool, int16, int32, type MessageOf, request, response, string, uint16, uuid } from '../schema.ts'

export const ControllerRegistrationRequest = request(
  { apiKey: 70, name: 'ControllerRegistrationRequest', versions: '0', flexible: '0+', listeners: ['controller'] },
  {
    controllerId: int32('0+'),
    incarnationId: uuid('0+'),
    zkMigrationReady: bool('0+'),
    listeners: array('0+', {
      name: string('0+'),
      host: string('0+'),
      port: uint16('0+'),
      securityProtocol: int16('0+'),
    }),
    features: array('0+', { name: string('0+'), minSupportedVersion: int16('0+'), maxSupportedVersion: int16('0+') }),
  },
)
export type ControllerRegistrationRequest = MessageOf<typeof ControllerRegistrationRequest>

export const ControllerRegistrationResponse = response(
  { apiKey: 70, name: 'ControllerRegistrationResponse', versions: '0', flexible: '0+' },
  { throttleTimeMs: int32('0+'), errorCode: int16('0+'), errorMessage: string('0+', { nullable: '0+' }) },
)
export type ControllerRegistrationResponse = MessageOf<typeof ControllerRegistrationResponse>
