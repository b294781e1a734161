import { METADATA_TOPIC_ID, ZERO_UUID } from '#base/uuid.ts'
import { BrokerConfigs } from '#core/config/broker-configs.ts'
import { foldBatch } from '#core/metadata/fold.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import { Channel } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import type { MessageOf } from '#protocol/schema.ts'
import { batchesOf, lastOffset, leaderEpoch } from '#records/batch.ts'
import { Simulation } from '#world/fake/simulation.ts'
import type { Address, World } from '#world/world.ts'
import type { ClusterIdentity, ControllerConfig } from '../config.ts'
import { Controller } from '../controller.ts'

export const CLUSTER_ID = 'MkU3OEVBNTcwNTJENDM2Qk'
export const DIRECTORY_ID = 'Jwk4kZqYQ2uPqSxq8bT7Zg'

/** A node whose folders belong to a cluster, or to none yet. */
export function clusterOf(id: string | undefined): ClusterIdentity {
  const identity = {
    id,
    found: (founded: string) => {
      identity.id = founded
      return Promise.resolve()
    },
  }
  return identity
}

/** A controller on a free port of the world's own host. */
export function startController(
  world: World,
  folder: string,
  config: Partial<ControllerConfig> = {},
  host = '127.0.0.1',
): Promise<Controller> {
  return Controller.start({
    world,
    folder,
    log: world.log,
    config: {
      nodeId: 1,
      cluster: clusterOf(CLUSTER_ID),
      directoryId: DIRECTORY_ID,
      listener: { name: 'CONTROLLER', address: { host, port: 0 } },
      configs: new BrokerConfigs({ nodeId: 1 }),
      sessionTimeoutMs: 9000,
      ...config,
    },
  })
}

type FetchPartition = MessageOf<typeof API.Fetch.response>['responses'][number]['partitions'][number]

/** A broker, as the controller sees one. */
export class Client {
  readonly channel: Channel
  epoch = -1
  clusterId = CLUSTER_ID
  brokerId = 1
  listens: Address = { host: 'localhost', port: 9092 }
  /** As which it fetches. */
  replicaId = 7
  /** Of the quorum, as the last answer told. */
  leaderEpoch = 0

  private constructor(channel: Channel) {
    this.channel = channel
  }

  static async connect(world: Pick<World, 'clock' | 'network'>, address: Address): Promise<Client> {
    const channel = await Channel.connect(world, address)
    await channel.negotiate()
    return new Client(channel)
  }

  async register(incarnationId = 'AAAAAAAAAAAAAAAAAAAABQ', clusterId = this.clusterId, directoryId = DIRECTORY_ID) {
    const { brokerId, listens } = this
    const finalized = (await this.channel.negotiate()).supportedFeatures
    const answer = await this.channel.ask(API.BrokerRegistration, {
      brokerId,
      clusterId,
      incarnationId,
      listeners: [{ name: 'PLAINTEXT', ...listens, securityProtocol: 0 }],
      features: finalized.map(({ name, minVersion, maxVersion }) => ({
        name,
        minSupportedVersion: minVersion,
        maxSupportedVersion: maxVersion,
      })),
      rack: null,
      logDirs: [directoryId],
    })
    this.epoch = answer.brokerEpoch
    return answer
  }

  heartbeat(currentMetadataOffset = this.epoch) {
    const { brokerId, epoch: brokerEpoch } = this
    return this.channel.ask(API.BrokerHeartbeat, {
      brokerId,
      brokerEpoch,
      currentMetadataOffset,
      wantFence: false,
      wantShutDown: false,
    })
  }

  async createTopic(name: string, numPartitions = 1) {
    const answer = await this.channel.ask(API.CreateTopics, {
      topics: [{ name, numPartitions, replicationFactor: 1 }],
      timeoutMs: 1000,
    })
    return answer.topics[0]
  }

  async fetch(fetchOffset: number, lastFetchedEpoch: number, maxWaitMs = 0, version?: number): Promise<FetchPartition> {
    const answer = await this.channel.ask(
      API.Fetch,
      {
        clusterId: this.clusterId,
        ...(version === undefined || version >= 15
          ? { replicaState: { replicaId: this.replicaId } }
          : { replicaId: this.replicaId }),
        maxWaitMs,
        minBytes: 1,
        maxBytes: 1_000_000,
        topics: [
          {
            topic: '__cluster_metadata',
            topicId: version === undefined || version >= 13 ? METADATA_TOPIC_ID : ZERO_UUID,
            partitions: [
              {
                partition: 0,
                currentLeaderEpoch: this.leaderEpoch,
                fetchOffset,
                lastFetchedEpoch,
                partitionMaxBytes: 1_000_000,
              },
            ],
          },
        ],
      },
      version === undefined ? {} : { versionMax: version },
    )
    const partition = answer.responses[0]?.partitions[0]
    if (partition === undefined) throw new Error(`Fetch was answered with error ${answer.errorCode}`)
    if (partition.currentLeader.leaderEpoch >= 0) this.leaderEpoch = partition.currentLeader.leaderEpoch
    return partition
  }

  /** Reads a snapshot, some bytes at a time. */
  async fetchSnapshot(snapshotId: { readonly endOffset: number; readonly epoch: number }, maxBytes = 100) {
    const parts: Buffer[] = []
    for (let position = 0, size = 1; position < size; ) {
      const answer = await this.channel.ask(API.FetchSnapshot, {
        clusterId: this.clusterId,
        replicaId: this.replicaId,
        maxBytes,
        topics: [
          {
            name: '__cluster_metadata',
            partitions: [{ partition: 0, currentLeaderEpoch: this.leaderEpoch, snapshotId, position }],
          },
        ],
      })
      const partition = answer.topics[0]?.partitions[0]
      if (partition === undefined || partition.errorCode !== 0) {
        throw new Error(`FetchSnapshot was answered with error ${partition?.errorCode}`)
      }
      parts.push(partition.unalignedRecords)
      position += partition.unalignedRecords.length
      size = partition.size
    }
    return Buffer.concat(parts)
  }

  /** Follows the log from its start to its end, by a snapshot where it begins with one. */
  async follow(): Promise<MetadataImage> {
    let image = new MetadataImage()
    let offset = 0
    let epoch = 0
    for (;;) {
      const partition = await this.fetch(offset, epoch)
      if (partition.errorCode === 74) continue
      if (partition.errorCode !== 0) throw new Error(`Fetch was answered with error ${partition.errorCode}`)
      const { snapshotId, records } = partition
      if (snapshotId.endOffset >= 0) {
        image = new MetadataImage()
        const snapshot = await this.fetchSnapshot(snapshotId)
        for (const at of batchesOf(snapshot)) foldBatch(image, snapshot, at, { offset: snapshotId.endOffset - 1 })
        offset = snapshotId.endOffset
        epoch = snapshotId.epoch
        continue
      }
      if (records === null || records.length === 0) return image
      for (const at of batchesOf(records)) {
        foldBatch(image, records, at, { from: offset })
        epoch = leaderEpoch(records, at)
        offset = lastOffset(records, at) + 1
      }
    }
  }
}

/** Lives once with each of so many seeds, from TIDEMARK_SEED on; what they come to together. */
export async function inAll(seeds: number, live: (simulation: Simulation) => Promise<number>): Promise<number> {
  const first = Number(process.env.TIDEMARK_SEED ?? 1)
  let sum = 0
  for (let seed = first; seed < first + seeds; seed++) {
    const simulation = new Simulation(seed)
    try {
      sum += await simulation.run(live(simulation))
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`, { cause: error })
    }
  }
  return sum
}
