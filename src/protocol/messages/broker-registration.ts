import { array, bool, int16, int32, int64, type MessageOf, request, response, string, uint16, uuid } from '../schema.ts'

export const BrokerRegistrationRequest = request(
  { apiKey: 62, name: 'BrokerRegistrationRequest', versions: '0-4', flexible: '0+', listeners: ['controller'] },
  {
    brokerId: int32('0+'),
    clusterId: string('0+'),
    incarnationId: uuid('0+'),
    listeners: array('0+', {
      name: string('0+'),
      host: string('0+'),
      port: uint16('0+'),
      securityProtocol: int16('0+'),
    }),
    features: array('0+', { name: string('0+'), minSupportedVersion: int16('0+'), maxSupportedVersion: int16('0+') }),
    rack: string('0+', { nullable: '0+' }),
    isMigratingZkBroker: bool('1+'),
    logDirs: array('2+', 'uuid', { ignorable: true }),
    previousBrokerEpoch: int64('3+', { default: -1, ignorable: true }),
  },
)
export type BrokerRegistrationRequest = MessageOf<typeof BrokerRegistrationRequest>

export const BrokerRegistrationResponse = response(
  { apiKey: 62, name: 'BrokerRegistrationResponse', versions: '0-4', flexible: '0+' },
  { throttleTimeMs: int32('0+'), errorCode: int16('0+'), brokerEpoch: int64('0+', { default: -1 }) },
)
export type BrokerRegistrationResponse = MessageOf<typeof BrokerRegistrationResponse>
