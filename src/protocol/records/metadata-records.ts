import {
  array,
  bool,
  bytes,
  float64,
  int8,
  int16,
  int32,
  int64,
  type MessageOf,
  metadataRecord,
  string,
  uint16,
  uuid,
} from '../schema.ts'

/** What brokers and controllers register alike: where they listen, and which features they know. */
const endPoints = array('0+', {
  name: string('0+'),
  host: string('0+'),
  port: uint16('0+'),
  securityProtocol: int16('0+'),
})
const features = array('0+', {
  name: string('0+'),
  minSupportedVersion: int16('0+'),
  maxSupportedVersion: int16('0+'),
})

export const RegisterBrokerRecord = metadataRecord(
  { apiKey: 0, name: 'RegisterBrokerRecord', versions: '0-4', flexible: '0+' },
  {
    brokerId: int32('0+'),
    isMigratingZkBroker: bool('2+'),
    incarnationId: uuid('0+'),
    brokerEpoch: int64('0+'),
    endPoints,
    features,
    rack: string('0+', { nullable: '0+' }),
    fenced: bool('0+', { default: true }),
    inControlledShutdown: bool('1+'),
    logDirs: array('3+', 'uuid', { tag: 0 }),
    cordonedLogDirs: array('4+', 'uuid', { nullable: '4+', default: null, tag: 1 }),
  },
)
export type RegisterBrokerRecord = MessageOf<typeof RegisterBrokerRecord>

export const UnregisterBrokerRecord = metadataRecord(
  { apiKey: 1, name: 'UnregisterBrokerRecord', versions: '0', flexible: '0+' },
  { brokerId: int32('0+'), brokerEpoch: int64('0+') },
)
export type UnregisterBrokerRecord = MessageOf<typeof UnregisterBrokerRecord>

export const TopicRecord = metadataRecord(
  { apiKey: 2, name: 'TopicRecord', versions: '0', flexible: '0+' },
  { name: string('0+'), topicId: uuid('0+') },
)
export type TopicRecord = MessageOf<typeof TopicRecord>

export const PartitionRecord = metadataRecord(
  { apiKey: 3, name: 'PartitionRecord', versions: '0-2', flexible: '0+' },
  {
    partitionId: int32('0+', { default: -1 }),
    topicId: uuid('0+'),
    replicas: array('0+', 'int32'),
    isr: array('0+', 'int32'),
    removingReplicas: array('0+', 'int32'),
    addingReplicas: array('0+', 'int32'),
    leader: int32('0+', { default: -1 }),
    leaderRecoveryState: int8('0+', { tag: 0 }),
    leaderEpoch: int32('0+', { default: -1 }),
    partitionEpoch: int32('0+', { default: -1 }),
    directories: array('1+', 'uuid'),
    eligibleLeaderReplicas: array('2+', 'int32', { nullable: '2+', default: null, tag: 1 }),
    lastKnownElr: array('2+', 'int32', { nullable: '2+', default: null, tag: 2 }),
  },
)
export type PartitionRecord = MessageOf<typeof PartitionRecord>

export const ConfigRecord = metadataRecord(
  { apiKey: 4, name: 'ConfigRecord', versions: '0', flexible: '0+' },
  { resourceType: int8('0+'), resourceName: string('0+'), name: string('0+'), value: string('0+', { nullable: '0+' }) },
)
export type ConfigRecord = MessageOf<typeof ConfigRecord>

export const PartitionChangeRecord = metadataRecord(
  { apiKey: 5, name: 'PartitionChangeRecord', versions: '0-2', flexible: '0+' },
  {
    partitionId: int32('0+', { default: -1 }),
    topicId: uuid('0+'),
    isr: array('0+', 'int32', { nullable: '0+', default: null, tag: 0 }),
    leader: int32('0+', { default: -2, tag: 1 }),
    replicas: array('0+', 'int32', { nullable: '0+', default: null, tag: 2 }),
    removingReplicas: array('0+', 'int32', { nullable: '0+', default: null, tag: 3 }),
    addingReplicas: array('0+', 'int32', { nullable: '0+', default: null, tag: 4 }),
    leaderRecoveryState: int8('0+', { default: -1, tag: 5 }),
    directories: array('1+', 'uuid', { nullable: '1+', default: null, tag: 8 }),
    eligibleLeaderReplicas: array('2+', 'int32', { nullable: '2+', default: null, tag: 6 }),
    lastKnownElr: array('2+', 'int32', { nullable: '2+', default: null, tag: 7 }),
  },
)
export type PartitionChangeRecord = MessageOf<typeof PartitionChangeRecord>

export const FenceBrokerRecord = metadataRecord(
  { apiKey: 7, name: 'FenceBrokerRecord', versions: '0', flexible: '0+' },
  { id: int32('0+'), epoch: int64('0+') },
)
export type FenceBrokerRecord = MessageOf<typeof FenceBrokerRecord>

export const UnfenceBrokerRecord = metadataRecord(
  { apiKey: 8, name: 'UnfenceBrokerRecord', versions: '0', flexible: '0+' },
  { id: int32('0+'), epoch: int64('0+') },
)
export type UnfenceBrokerRecord = MessageOf<typeof UnfenceBrokerRecord>

export const RemoveTopicRecord = metadataRecord(
  { apiKey: 9, name: 'RemoveTopicRecord', versions: '0', flexible: '0+' },
  { topicId: uuid('0+') },
)
export type RemoveTopicRecord = MessageOf<typeof RemoveTopicRecord>

export const DelegationTokenRecord = metadataRecord(
  { apiKey: 10, name: 'DelegationTokenRecord', versions: '0', flexible: '0+' },
  {
    owner: string('0+'),
    requester: string('0+'),
    renewers: array('0+', 'string'),
    issueTimestamp: int64('0+'),
    maxTimestamp: int64('0+'),
    expirationTimestamp: int64('0+'),
    tokenId: string('0+'),
  },
)
export type DelegationTokenRecord = MessageOf<typeof DelegationTokenRecord>

export const UserScramCredentialRecord = metadataRecord(
  { apiKey: 11, name: 'UserScramCredentialRecord', versions: '0', flexible: '0+' },
  {
    name: string('0+'),
    mechanism: int8('0+'),
    salt: bytes('0+'),
    storedKey: bytes('0+'),
    serverKey: bytes('0+'),
    iterations: int32('0+'),
  },
)
export type UserScramCredentialRecord = MessageOf<typeof UserScramCredentialRecord>

export const FeatureLevelRecord = metadataRecord(
  { apiKey: 12, name: 'FeatureLevelRecord', versions: '0', flexible: '0+' },
  { name: string('0+'), featureLevel: int16('0+') },
)
export type FeatureLevelRecord = MessageOf<typeof FeatureLevelRecord>

export const ClientQuotaRecord = metadataRecord(
  { apiKey: 14, name: 'ClientQuotaRecord', versions: '0', flexible: '0+' },
  {
    entity: array('0+', { entityType: string('0+'), entityName: string('0+', { nullable: '0+' }) }),
    key: string('0+'),
    value: float64('0+'),
    remove: bool('0+'),
  },
)
export type ClientQuotaRecord = MessageOf<typeof ClientQuotaRecord>

export const ProducerIdsRecord = metadataRecord(
  { apiKey: 15, name: 'ProducerIdsRecord', versions: '0', flexible: '0+' },
  { brokerId: int32('0+'), brokerEpoch: int64('0+', { default: -1 }), nextProducerId: int64('0+') },
)
export type ProducerIdsRecord = MessageOf<typeof ProducerIdsRecord>

export const BrokerRegistrationChangeRecord = metadataRecord(
  { apiKey: 17, name: 'BrokerRegistrationChangeRecord', versions: '0-3', flexible: '0+' },
  {
    brokerId: int32('0+'),
    brokerEpoch: int64('0+'),
    fenced: int8('0+', { tag: 0 }),
    inControlledShutdown: int8('1+', { tag: 1 }),
    logDirs: array('2+', 'uuid', { tag: 2 }),
    cordonedLogDirs: array('3+', 'uuid', { nullable: '3+', default: null, tag: 3 }),
  },
)
export type BrokerRegistrationChangeRecord = MessageOf<typeof BrokerRegistrationChangeRecord>

export const AccessControlEntryRecord = metadataRecord(
  { apiKey: 18, name: 'AccessControlEntryRecord', versions: '0', flexible: '0+' },
  {
    id: uuid('0+'),
    resourceType: int8('0+'),
    resourceName: string('0+'),
    patternType: int8('0+'),
    principal: string('0+'),
    host: string('0+'),
    operation: int8('0+'),
    permissionType: int8('0+'),
  },
)
export type AccessControlEntryRecord = MessageOf<typeof AccessControlEntryRecord>

export const RemoveAccessControlEntryRecord = metadataRecord(
  { apiKey: 19, name: 'RemoveAccessControlEntryRecord', versions: '0', flexible: '0+' },
  { id: uuid('0+') },
)
export type RemoveAccessControlEntryRecord = MessageOf<typeof RemoveAccessControlEntryRecord>

export const NoOpRecord = metadataRecord({ apiKey: 20, name: 'NoOpRecord', versions: '0', flexible: '0+' }, {})
export type NoOpRecord = MessageOf<typeof NoOpRecord>

export const ZkMigrationStateRecord = metadataRecord(
  { apiKey: 21, name: 'ZkMigrationStateRecord', versions: '0', flexible: '0+' },
  { zkMigrationState: int8('0+') },
)
export type ZkMigrationStateRecord = MessageOf<typeof ZkMigrationStateRecord>

export const RemoveUserScramCredentialRecord = metadataRecord(
  { apiKey: 22, name: 'RemoveUserScramCredentialRecord', versions: '0', flexible: '0+' },
  { name: string('0+'), mechanism: int8('0+') },
)
export type RemoveUserScramCredentialRecord = MessageOf<typeof RemoveUserScramCredentialRecord>

export const BeginTransactionRecord = metadataRecord(
  { apiKey: 23, name: 'BeginTransactionRecord', versions: '0', flexible: '0+' },
  { name: string('0+', { nullable: '0+', default: null, tag: 0 }) },
)
export type BeginTransactionRecord = MessageOf<typeof BeginTransactionRecord>

export const EndTransactionRecord = metadataRecord(
  { apiKey: 24, name: 'EndTransactionRecord', versions: '0', flexible: '0+' },
  {},
)
export type EndTransactionRecord = MessageOf<typeof EndTransactionRecord>

export const AbortTransactionRecord = metadataRecord(
  { apiKey: 25, name: 'AbortTransactionRecord', versions: '0', flexible: '0+' },
  { reason: string('0+', { nullable: '0+', default: null, tag: 0 }) },
)
export type AbortTransactionRecord = MessageOf<typeof AbortTransactionRecord>

export const RemoveDelegationTokenRecord = metadataRecord(
  { apiKey: 26, name: 'RemoveDelegationTokenRecord', versions: '0', flexible: '0+' },
  { tokenId: string('0+') },
)
export type RemoveDelegationTokenRecord = MessageOf<typeof RemoveDelegationTokenRecord>

export const RegisterControllerRecord = metadataRecord(
  { apiKey: 27, name: 'RegisterControllerRecord', versions: '0', flexible: '0+' },
  {
    controllerId: int32('0+'),
    incarnationId: uuid('0+'),
    zkMigrationReady: bool('0+'),
    endPoints,
    features,
  },
)
export type RegisterControllerRecord = MessageOf<typeof RegisterControllerRecord>

export const ClearElrRecord = metadataRecord(
  { apiKey: 28, name: 'ClearElrRecord', versions: '0', flexible: '0+' },
  { topicName: string('0+') },
)
export type ClearElrRecord = MessageOf<typeof ClearElrRecord>
