import { array, data, int16, int32, int64, type MessageOf, string, uint32, uuid } from '../schema.ts'

export const ProducerSnapshot = data(
  { name: 'ProducerSnapshot', versions: '1' },
  {
    crc: uint32('1'),
    producerEntries: array('1', {
      producerId: int64('1'),
      epoch: int16('1'),
      lastSequence: int32('1'),
      lastOffset: int64('1'),
      offsetDelta: int32('1'),
      timestamp: int64('1'),
      coordinatorEpoch: int32('1'),
      currentTxnFirstOffset: int64('1'),
    }),
  },
)
export type ProducerSnapshot = MessageOf<typeof ProducerSnapshot>

export const QuorumStateData = data(
  { name: 'QuorumStateData', versions: '0-1', flexible: '0+' },
  {
    clusterId: string('0'),
    leaderId: int32('0+', { default: -1 }),
    leaderEpoch: int32('0+', { default: -1 }),
    votedId: int32('0+', { default: -1 }),
    votedDirectoryId: uuid('1+'),
    appliedOffset: int64('0'),
    currentVoters: array('0', { voterId: int32('0') }, { nullable: '0' }),
  },
)
export type QuorumStateData = MessageOf<typeof QuorumStateData>
