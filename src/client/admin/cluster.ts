import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { DescribeClusterRequest, DescribeClusterResponse } from '#protocol/messages/describe-cluster.ts'
import { DescribeLogDirsRequest, DescribeLogDirsResponse } from '#protocol/messages/describe-log-dirs.ts'
import { DescribeQuorumRequest, DescribeQuorumResponse } from '#protocol/messages/describe-quorum.ts'
import type { Client } from '../client.ts'
import { brokerError, type ClientError, throwIfError } from '../errors.ts'
import type { Broker } from '../metadata.ts'
import type { TopicPartition } from '../per-leader.ts'

const DESCRIBE_CLUSTER = { request: DescribeClusterRequest, response: DescribeClusterResponse }
const DESCRIBE_QUORUM = { request: DescribeQuorumRequest, response: DescribeQuorumResponse }
const DESCRIBE_LOG_DIRS = { request: DescribeLogDirsRequest, response: DescribeLogDirsResponse }

export interface ClusterDescription {
  readonly clusterId: string
  /** -1 while there is none. */
  readonly controllerId: NodeId
  readonly brokers: readonly (Broker & { readonly fenced: boolean })[]
}

/** The brokers of the cluster, the fenced ones too where the cluster can tell. */
export async function describeCluster(client: Client): Promise<ClusterDescription> {
  const version = (await client.retrying(() => client.channel('any'))).versionFor(DescribeClusterRequest) ?? 0
  const answer = await client.ask(
    'any',
    DESCRIBE_CLUSTER,
    { includeFencedBrokers: version >= 2 },
    { check: ({ errorCode, errorMessage }) => throwIfError(errorCode, 'the cluster', errorMessage) },
  )
  return {
    clusterId: answer.clusterId,
    controllerId: answer.controllerId,
    brokers: answer.brokers
      .map(({ brokerId: id, host, port, rack, isFenced: fenced }) => ({ id, host, port, rack, fenced }))
      .sort((a, b) => a.id - b.id),
  }
}

export interface QuorumReplica {
  readonly id: NodeId
  readonly logEndOffset: Offset
  /** -1 where it is not known; the leader's is. */
  readonly lastCaughtUpTimestamp: Millis
}

export interface QuorumDescription {
  readonly leaderId: NodeId
  readonly leaderEpoch: Epoch
  readonly highWatermark: Offset
  readonly voters: readonly QuorumReplica[]
  readonly observers: readonly QuorumReplica[]
}

export async function describeQuorum(client: Client): Promise<QuorumDescription> {
  const answer = await client.ask(
    'any',
    DESCRIBE_QUORUM,
    { topics: [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }] },
    {
      check: ({ errorCode, errorMessage, topics }) => {
        throwIfError(errorCode, 'the quorum', errorMessage)
        throwIfError(topics[0]?.partitions[0]?.errorCode ?? 0, 'the quorum')
      },
    },
  )
  const quorum = answer.topics[0]?.partitions[0]
  const replica = (each: {
    replicaId: number
    logEndOffset: number
    lastCaughtUpTimestamp: number
  }): QuorumReplica => ({
    id: each.replicaId,
    logEndOffset: each.logEndOffset,
    lastCaughtUpTimestamp: each.lastCaughtUpTimestamp,
  })
  return {
    leaderId: quorum?.leaderId ?? -1,
    leaderEpoch: quorum?.leaderEpoch ?? -1,
    highWatermark: quorum?.highWatermark ?? -1,
    voters: (quorum?.currentVoters ?? []).map(replica),
    observers: (quorum?.observers ?? []).map(replica),
  }
}

export interface LogDir {
  readonly broker: NodeId
  readonly path: string
  readonly error: ClientError | undefined
  /** Of the file system; -1 where the broker is too old to tell. */
  readonly totalBytes: number
  readonly usableBytes: number
  readonly partitions: readonly (TopicPartition & { readonly bytes: number; readonly offsetLag: number })[]
}

/** The data folders of all brokers and what is in them, or only what belongs to one topic. */
export async function describeLogDirs(client: Client, topic?: string): Promise<LogDir[]> {
  await client.metadata.refresh([])
  const partitions = topic === undefined ? [] : (await client.topic(topic)).partitions.map(({ partition }) => partition)
  const topics = topic === undefined ? null : [{ topic, partitions }]
  const answers = await Promise.all(
    client.metadata.brokers.map(async ({ id }) => {
      const { results } = await client.ask(
        id,
        DESCRIBE_LOG_DIRS,
        { topics },
        {
          check: ({ errorCode }) => throwIfError(errorCode, `broker ${id}`),
        },
      )
      return results.map(dir => ({
        broker: id,
        path: dir.logDir,
        error: brokerError(dir.errorCode, `folder ${dir.logDir} of broker ${id}`),
        totalBytes: dir.totalBytes,
        usableBytes: dir.usableBytes,
        partitions: dir.topics.flatMap(({ name, partitions: list }) =>
          list.map(each => ({
            topic: name,
            partition: each.partitionIndex,
            bytes: each.partitionSize,
            offsetLag: each.offsetLag,
          })),
        ),
      }))
    }),
  )
  return answers.flat()
}
