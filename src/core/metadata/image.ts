import { assert } from '#base/assert.ts'
import type { Epoch, NodeId, Offset, ProducerId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type {
  AccessControlEntryRecord,
  DelegationTokenRecord,
  PartitionChangeRecord,
  PartitionRecord,
  UserScramCredentialRecord,
} from '#protocol/records/metadata-records.ts'
import { CONFIG_RESOURCE, type ConfigResource, configResourceKey } from './config-resource.ts'
import { MetadataDelta } from './delta.ts'
import {
  type BrokerImage,
  type ControllerImage,
  changedRegistration,
  registeredBroker,
  registeredController,
} from './node-image.ts'
import { changedPartition, type PartitionImage, recordedPartition, withoutElr } from './partition-image.ts'
import { type QuotaImage, Quotas } from './quotas.ts'
import type { FoldedRecord, MetadataRecord } from './record.ts'
import { snapshotRecords } from './snapshot.ts'

export interface TopicImage {
  readonly name: string
  readonly id: Uuid
  /** By partition index, dense from 0. */
  readonly partitions: readonly PartitionImage[]
}

const NO_CONFIG: ReadonlyMap<string, string> = new Map()

interface MutableTopic extends TopicImage {
  readonly partitions: PartitionImage[]
}

/**
 * The state of the cluster: the fold of the metadata log, in brokers and controllers alike. `apply` is the only way in
 * and takes every record; one that it does not know, or that speaks of something that is not there, changes nothing and
 * is counted in `skipped`.
 */
export class MetadataImage {
  readonly #topics = new Map<Uuid, MutableTopic>()
  readonly #topicIds = new Map<string, Uuid>()
  readonly #configs = new Map<string, ConfigResource & { readonly values: ReadonlyMap<string, string> }>()
  readonly #brokers = new Map<NodeId, BrokerImage>()
  readonly #controllers = new Map<NodeId, ControllerImage>()
  readonly #features = new Map<string, number>()
  #quotas = new Quotas()
  readonly #acls = new Map<Uuid, AccessControlEntryRecord>()
  readonly #scram = new Map<string, UserScramCredentialRecord>()
  readonly #tokens = new Map<string, DelegationTokenRecord>()
  #nextProducerId: ProducerId = 0
  #producerIdsOwner: { brokerId: NodeId; brokerEpoch: Offset } = { brokerId: -1, brokerEpoch: -1 }
  #offset: Offset = -1
  #epoch: Epoch = -1
  #skipped = 0
  /** Records of a transaction of the metadata log that is still open (KIP-868); none of them counts before its end. */
  #open: FoldedRecord[] | undefined
  readonly #follows: boolean
  #delta: MetadataDelta | undefined

  /** With `deltas`, what changes is noted for `takeDelta`. */
  constructor(options: { readonly deltas?: boolean } = {}) {
    this.#follows = options.deltas ?? false
  }

  /** Offset of the last record applied, -1 before the first. It is also the epoch of the finalized features. */
  get offset(): Offset {
    return this.#offset
  }

  /** Leader epoch of the last record applied. */
  get epoch(): Epoch {
    return this.#epoch
  }

  /** How many records were left out because they are unknown or speak of something that is not there. */
  get skipped(): number {
    return this.#skipped
  }

  /** Whether records of an open transaction are held back. */
  get inTransaction(): boolean {
    return this.#open !== undefined
  }

  get topics(): ReadonlyMap<Uuid, TopicImage> {
    return this.#topics
  }

  get topicIds(): ReadonlyMap<string, Uuid> {
    return this.#topicIds
  }

  topic(id: Uuid): TopicImage | undefined {
    return this.#topics.get(id)
  }

  topicByName(name: string): TopicImage | undefined {
    const id = this.#topicIds.get(name)
    return id === undefined ? undefined : this.#topics.get(id)
  }

  partition(topicId: Uuid, index: number): PartitionImage | undefined {
    return this.#topics.get(topicId)?.partitions[index]
  }

  /** What was set for a resource, by name; a change makes a new map. Broker '' holds what all brokers share. */
  config(type: number, name: string): ReadonlyMap<string, string> {
    return this.#configs.get(configResourceKey(type, name))?.values ?? NO_CONFIG
  }

  /** Every resource that has something set. */
  configs(): Iterable<ConfigResource & { readonly values: ReadonlyMap<string, string> }> {
    return this.#configs.values()
  }

  get brokers(): ReadonlyMap<NodeId, BrokerImage> {
    return this.#brokers
  }

  broker(id: NodeId): BrokerImage | undefined {
    return this.#brokers.get(id)
  }

  get controllers(): ReadonlyMap<NodeId, ControllerImage> {
    return this.#controllers
  }

  /** Finalized features by name; level 0 is not in it. */
  get features(): ReadonlyMap<string, number> {
    return this.#features
  }

  feature(name: string): number {
    return this.#features.get(name) ?? 0
  }

  get metadataVersion(): number {
    return this.feature('metadata.version')
  }

  get nextProducerId(): ProducerId {
    return this.#nextProducerId
  }

  /** Who got the last block of producer ids. */
  get producerIdsOwner(): { readonly brokerId: NodeId; readonly brokerEpoch: Offset } {
    return this.#producerIdsOwner
  }

  quotas(): Iterable<QuotaImage> {
    return this.#quotas.all()
  }

  get acls(): ReadonlyMap<Uuid, AccessControlEntryRecord> {
    return this.#acls
  }

  scramCredentials(): Iterable<UserScramCredentialRecord> {
    return this.#scram.values()
  }

  scramCredential(user: string, mechanism: number): UserScramCredentialRecord | undefined {
    return this.#scram.get(`${mechanism}:${user}`)
  }

  /** Delegation tokens by their id. */
  get tokens(): ReadonlyMap<string, DelegationTokenRecord> {
    return this.#tokens
  }

  /** What changed since it was last asked, undefined if nothing did. Only for an image made with `deltas`. */
  takeDelta(): MetadataDelta | undefined {
    const delta = this.#delta
    this.#delta = undefined
    return delta
  }

  /** It was read anew in place of another: what that had and this has not is a change as well. */
  replaces(before: MetadataImage): void {
    const delta = this.#changes()
    if (delta === undefined) return
    for (const topic of before.topics.values()) if (!this.#topics.has(topic.id)) delta.topicDeleted(topic)
    for (const { type, name } of before.configs()) delta.configs.set(configResourceKey(type, name), { type, name })
    for (const id of before.brokers.keys()) delta.brokers.add(id)
    delta.controllers = true
  }

  /** The records that make this image out of an empty one, in Kafka's order of a snapshot. */
  snapshotRecords(): Iterable<MetadataRecord> {
    return snapshotRecords(this)
  }

  /** What it is now, for who goes over it while it goes on. No transaction may be open. */
  copy(): MetadataImage {
    assert(this.#open === undefined, 'a copy holds what counts')
    const copy = new MetadataImage()
    for (const [id, topic] of this.#topics) copy.#topics.set(id, { ...topic, partitions: topic.partitions.slice() })
    const maps: readonly (readonly [ReadonlyMap<unknown, unknown>, Map<unknown, unknown>])[] = [
      [this.#topicIds, copy.#topicIds],
      [this.#configs, copy.#configs],
      [this.#brokers, copy.#brokers],
      [this.#controllers, copy.#controllers],
      [this.#features, copy.#features],
      [this.#acls, copy.#acls],
      [this.#scram, copy.#scram],
      [this.#tokens, copy.#tokens],
    ]
    for (const [from, to] of maps) for (const [key, value] of from) to.set(key, value)
    copy.#quotas = this.#quotas.copy()
    copy.#nextProducerId = this.#nextProducerId
    copy.#producerIdsOwner = this.#producerIdsOwner
    copy.#offset = this.#offset
    copy.#epoch = this.#epoch
    copy.#skipped = this.#skipped
    return copy
  }

  apply(record: FoldedRecord, offset: Offset, epoch: Epoch): void {
    this.#offset = offset
    this.#epoch = epoch
    if (record.type === 'BeginTransaction') {
      this.#open = []
    } else if (record.type === 'EndTransaction') {
      const records = this.#open ?? []
      this.#open = undefined
      for (const each of records) this.#count(each)
    } else if (record.type === 'AbortTransaction') {
      this.#open = undefined
    } else if (this.#open !== undefined) {
      this.#open.push(record)
    } else {
      this.#count(record)
    }
  }

  #count(record: FoldedRecord): void {
    if (!this.#fold(record)) this.#skipped++
  }

  #changes(): MetadataDelta | undefined {
    if (!this.#follows) return undefined
    this.#delta ??= new MetadataDelta()
    return this.#delta
  }

  /** Whether the record was known and about something that is there. */
  #fold(record: FoldedRecord): boolean {
    switch (record.type) {
      case 'RegisterBroker':
        this.#brokers.set(record.value.brokerId, registeredBroker(record.value))
        this.#changes()?.brokers.add(record.value.brokerId)
        return true
      case 'UnregisterBroker':
        if (!this.#brokers.delete(record.value.brokerId)) return false
        this.#changes()?.brokers.add(record.value.brokerId)
        return true
      case 'FenceBroker':
        return this.#changeBroker(record.value.id, { fenced: true })
      case 'UnfenceBroker':
        return this.#changeBroker(record.value.id, { fenced: false })
      case 'BrokerRegistrationChange':
        return this.#changeBroker(record.value.brokerId, changedRegistration(record.value))
      case 'RegisterController':
        this.#controllers.set(record.value.controllerId, registeredController(record.value))
        this.#controllersChanged()
        return true
      case 'Topic': {
        const { name, topicId } = record.value
        this.#topics.set(topicId, { name, id: topicId, partitions: [] })
        this.#topicIds.set(name, topicId)
        this.#changes()?.topicCreated(topicId)
        return true
      }
      case 'RemoveTopic':
        return this.#removeTopic(record.value.topicId)
      case 'Partition':
        return this.#putPartition(record.value)
      case 'PartitionChange':
        return this.#changePartition(record.value)
      case 'ClearElr':
        return this.#clearElr(record.value.topicName)
      case 'Config': {
        const { resourceType, resourceName, name, value } = record.value
        return this.#setConfig(resourceType, resourceName, name, value)
      }
      case 'FeatureLevel': {
        const { name, featureLevel } = record.value
        if (featureLevel === 0) this.#features.delete(name)
        else this.#features.set(name, featureLevel)
        return true
      }
      case 'ProducerIds': {
        const { nextProducerId, brokerId, brokerEpoch } = record.value
        this.#nextProducerId = nextProducerId
        this.#producerIdsOwner = { brokerId, brokerEpoch }
        return true
      }
      case 'ClientQuota':
        this.#quotas.apply(record.value)
        return true
      case 'AccessControlEntry':
        this.#acls.set(record.value.id, record.value)
        return true
      case 'RemoveAccessControlEntry':
        return this.#acls.delete(record.value.id)
      case 'UserScramCredential':
        this.#scram.set(`${record.value.mechanism}:${record.value.name}`, ownBytes(record.value))
        return true
      case 'RemoveUserScramCredential':
        return this.#scram.delete(`${record.value.mechanism}:${record.value.name}`)
      case 'DelegationToken':
        this.#tokens.set(record.value.tokenId, record.value)
        return true
      case 'RemoveDelegationToken':
        return this.#tokens.delete(record.value.tokenId)
      case 'NoOp':
      case 'ZkMigrationState':
      case 'BeginTransaction':
      case 'EndTransaction':
      case 'AbortTransaction':
        return true
      case 'Unknown':
        return false
    }
  }

  #controllersChanged(): void {
    const changes = this.#changes()
    if (changes !== undefined) changes.controllers = true
  }

  #changeBroker(id: NodeId, change: Partial<BrokerImage>): boolean {
    const broker = this.#brokers.get(id)
    if (broker === undefined) return false
    this.#brokers.set(id, { ...broker, ...change })
    this.#changes()?.brokers.add(id)
    return true
  }

  #removeTopic(id: Uuid): boolean {
    const topic = this.#topics.get(id)
    if (topic === undefined) return false
    this.#topics.delete(id)
    if (this.#topicIds.get(topic.name) === id) this.#topicIds.delete(topic.name)
    this.#configs.delete(configResourceKey(CONFIG_RESOURCE.TOPIC, topic.name))
    this.#changes()?.topicDeleted(topic)
    return true
  }

  #putPartition(record: PartitionRecord): boolean {
    const topic = this.#topics.get(record.topicId)
    if (topic === undefined) return false
    topic.partitions[record.partitionId] = recordedPartition(record)
    this.#changes()?.partitionChanged(record.topicId, record.partitionId)
    return true
  }

  #changePartition(record: PartitionChangeRecord): boolean {
    const topic = this.#topics.get(record.topicId)
    const before = topic?.partitions[record.partitionId]
    if (topic === undefined || before === undefined) return false
    topic.partitions[record.partitionId] = changedPartition(before, record)
    this.#changes()?.partitionChanged(record.topicId, record.partitionId)
    return true
  }

  /** Forgets the eligible leaders of one topic, or of all if the name is empty: `min.insync.replicas` has changed. */
  #clearElr(name: string): boolean {
    for (const topic of name === '' ? this.#topics.values() : [this.topicByName(name)]) {
      if (topic === undefined) return false
      const partitions = topic.partitions as PartitionImage[]
      for (const [index, partition] of partitions.entries()) {
        const without = withoutElr(partition)
        if (without === partition) continue
        partitions[index] = without
        this.#changes()?.partitionChanged(topic.id, index)
      }
    }
    return true
  }

  #setConfig(type: number, resourceName: string, name: string, value: string | null): boolean {
    const key = configResourceKey(type, resourceName)
    const values = new Map(this.#configs.get(key)?.values)
    if (value === null) values.delete(name)
    else values.set(name, value)
    if (values.size === 0) this.#configs.delete(key)
    else this.#configs.set(key, { type, name: resourceName, values })
    this.#changes()?.configs.set(key, { type, name: resourceName })
    return true
  }
}

/** Decoded bytes are views of what they came from, which the image must not hold on to. */
function ownBytes(credential: UserScramCredentialRecord): UserScramCredentialRecord {
  const { salt, storedKey, serverKey } = credential
  return {
    ...credential,
    salt: Buffer.from(salt),
    storedKey: Buffer.from(storedKey),
    serverKey: Buffer.from(serverKey),
  }
}
