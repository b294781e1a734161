import { array, bool, int16, int32, int64, type MessageOf, request, response } from '../schema.ts'

export const BrokerHeartbeatRequest = request(
  { apiKey: 63, name: 'BrokerHeartbeatRequest', versions: '0-2', flexible: '0+', listeners: ['controller'] },
  {
    brokerId: int32('0+'),
    brokerEpoch: int64('0+', { default: -1 }),
    currentMetadataOffset: int64('0+'),
    wantFence: bool('0+'),
    wantShutDown: bool('0+'),
    offlineLogDirs: array('1+', 'uuid', { tag: 0 }),
    cordonedLogDirs: array('2+', 'uuid', { nullable: '2+', default: null, tag: 1 }),
  },
)
export type BrokerHeartbeatRequest = MessageOf<typeof BrokerHeartbeatRequest>

export const BrokerHeartbeatResponse = response(
  { apiKey: 63, name: 'BrokerHeartbeatResponse', versions: '0-2', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    isCaughtUp: bool('0+'),
    isFenced: bool('0+', { default: true }),
    shouldShutDown: bool('0+'),
  },
)
export type BrokerHeartbeatResponse = MessageOf<typeof BrokerHeartbeatResponse>
