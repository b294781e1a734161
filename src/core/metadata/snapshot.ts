import type { MetadataImage } from './image.ts'
import { METADATA_VERSION_CORDONED, METADATA_VERSION_DIRECTORIES, METADATA_VERSION_ELR } from './metadata-version.ts'
import type { BrokerImage, ControllerImage, FeatureRange } from './node-image.ts'
import { MIGRATING_DIRECTORY, type PartitionImage } from './partition-image.ts'
import { type MetadataRecord, metadataRecord } from './record.ts'

/**
 * The records that make an image, in Kafka's order of a snapshot: the metadata version leads, as it says in which
 * versions the rest is written.
 */
export function* snapshotRecords(image: MetadataImage): Iterable<MetadataRecord> {
  const level = image.metadataVersion
  const record: typeof metadataRecord = (type, version, value) => metadataRecord(type, version, value)
  if (level > 0) yield record('FeatureLevel', level, { name: 'metadata.version', featureLevel: level })
  for (const [name, featureLevel] of image.features) {
    if (name !== 'metadata.version') yield record('FeatureLevel', level, { name, featureLevel })
  }
  for (const broker of image.brokers.values()) yield brokerRecord(broker, level)
  for (const controller of image.controllers.values()) yield controllerRecord(controller, level)
  for (const topic of image.topics.values()) {
    yield record('Topic', level, { name: topic.name, topicId: topic.id })
    for (const [index, partition] of topic.partitions.entries()) {
      yield partitionRecord(topic.id, index, partition, level)
    }
  }
  for (const { type, name, values } of image.configs()) {
    for (const [key, value] of values) {
      yield record('Config', level, { resourceType: type, resourceName: name, name: key, value })
    }
  }
  for (const { entity, values } of image.quotas()) {
    for (const [key, value] of values) yield record('ClientQuota', level, { entity, key, value, remove: false })
  }
  if (image.nextProducerId > 0) {
    yield record('ProducerIds', level, { ...image.producerIdsOwner, nextProducerId: image.nextProducerId })
  }
  for (const acl of image.acls.values()) yield record('AccessControlEntry', level, acl)
  for (const credential of image.scramCredentials()) yield record('UserScramCredential', level, credential)
  for (const token of image.tokens.values()) yield record('DelegationToken', level, token)
}

function featureRecords(features: ReadonlyMap<string, FeatureRange>) {
  return [...features].map(([name, range]) => ({
    name,
    minSupportedVersion: range.min,
    maxSupportedVersion: range.max,
  }))
}

function brokerRecord(broker: BrokerImage, metadataVersion: number): MetadataRecord {
  const { id, epoch, features, cordonedLogDirs, ...same } = broker
  return metadataRecord('RegisterBroker', metadataVersion, {
    ...same,
    brokerId: id,
    brokerEpoch: epoch,
    features: featureRecords(features),
    cordonedLogDirs: metadataVersion >= METADATA_VERSION_CORDONED ? cordonedLogDirs : null,
    logDirs: metadataVersion >= METADATA_VERSION_DIRECTORIES ? same.logDirs : [],
  })
}

function controllerRecord(controller: ControllerImage, metadataVersion: number): MetadataRecord {
  const { id, features, ...same } = controller
  return metadataRecord('RegisterController', metadataVersion, {
    ...same,
    controllerId: id,
    features: featureRecords(features),
  })
}

export function partitionRecord(
  topicId: string,
  partitionId: number,
  partition: PartitionImage,
  metadataVersion: number,
): MetadataRecord {
  const { directories, eligibleLeaderReplicas, lastKnownElr, ...same } = partition
  const known = directories.some(directory => directory !== MIGRATING_DIRECTORY)
  const elr = metadataVersion >= METADATA_VERSION_ELR
  return metadataRecord('Partition', metadataVersion, {
    ...same,
    topicId,
    partitionId,
    directories: metadataVersion >= METADATA_VERSION_DIRECTORIES && known ? directories : [],
    eligibleLeaderReplicas: elr && eligibleLeaderReplicas.length > 0 ? eligibleLeaderReplicas : null,
    lastKnownElr: elr && lastKnownElr.length > 0 ? lastKnownElr : null,
  })
}
