import { array, bytes, data, int32, type MessageOf, string } from '../schema.ts'

export const ConsumerProtocolSubscription = data(
  { name: 'ConsumerProtocolSubscription', versions: '0-3' },
  {
    topics: array('0+', 'string'),
    userData: bytes('0+', { nullable: '0+', default: null }),
    ownedPartitions: array('1+', { topic: string('1+'), partitions: array('1+', 'int32') }, { ignorable: true }),
    generationId: int32('2+', { default: -1, ignorable: true }),
    rackId: string('3+', { nullable: '3+', default: null, ignorable: true }),
  },
)
export type ConsumerProtocolSubscription = MessageOf<typeof ConsumerProtocolSubscription>

export const ConsumerProtocolAssignment = data(
  { name: 'ConsumerProtocolAssignment', versions: '0-3' },
  {
    assignedPartitions: array('0+', { topic: string('0+'), partitions: array('0+', 'int32') }),
    userData: bytes('0+', { nullable: '0+', default: null }),
  },
)
export type ConsumerProtocolAssignment = MessageOf<typeof ConsumerProtocolAssignment>
