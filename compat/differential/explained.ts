/** Where Tidemark answers otherwise than Kafka, and may. Each entry says why; what is in none of them fails the run. */
export interface Explanation {
  readonly situation?: string
  readonly api?: string | RegExp
  readonly path?: string | RegExp
  /** What Kafka answers. */
  readonly left?: string | RegExp
  /** What Tidemark answers. */
  readonly right?: string | RegExp
  readonly why: string
}

export const EXPLAINED: readonly Explanation[] = [
  // Where Kafka fails
  {
    path: '(failed)',
    left: 'UNKNOWN_SERVER_ERROR',
    why: "an exception of Kafka's own, by a request that it did not expect; we have a code for it, or an answer",
  },
  // What is not there yet
  {
    api: 'ApiVersions',
    path: /^(apiKeys|supportedFeatures|finalizedFeatures)\[/,
    left: 'present',
    right: 'absent',
    why: 'transactions, share groups, the new consumer protocol, SASL, ACLs, quotas: only what works is advertised',
  },
  {
    api: 'ApiVersions',
    path: /^supportedFeatures\[(group|transaction|share|streams)\.version\]\.maxVersion$/,
    why: 'follows from what is advertised',
  },
  {
    api: 'ApiVersions',
    path: 'finalizedFeatures[kraft.version]',
    left: 'absent',
    right: 'present',
    why: 'our voters are records (kraft.version 1), those of this Kafka a fixed list (0), which neither names',
  },
  {
    api: 'UpdateFeatures',
    why: 'follows from the features above, which the controller does not know yet',
  },
  {
    api: 'InitProducerId',
    path: 'errorCode',
    left: /NOT_COORDINATOR|INVALID_TRANSACTION_TIMEOUT/,
    right: 'INVALID_REQUEST',
    why: 'a transactional id: transactions are not served yet',
  },
  // Decisions
  {
    api: 'OffsetCommit',
    path: /errorCode$/,
    left: 'NONE',
    right: 'OFFSET_OUT_OF_RANGE',
    why: 'an offset beyond 2^53 would be stored rounded, so it is refused; Kafka stores it',
  },
  {
    situation: 'unread batches',
    api: 'Produce',
    why: 'compressed batches are believed, not opened (docs/decisions/0004); times beyond 2^53 are refused in any topic',
  },
  {
    path: /errorMessage$/,
    left: 'null',
    right: 'a text',
    why: 'we say what is wrong where Kafka says only the code',
  },
  {
    api: 'OffsetCommit',
    path: /^topics\[(again\]|\]\.partitions\[(again)?\])$/,
    left: /absent|present/,
    right: /absent|present/,
    why: 'a topic that is named twice is answered twice; Kafka gathers it where some topic of the request is unknown',
  },
  // Produce and fetch
  {
    api: 'Produce',
    path: /\.logStartOffset$/,
    right: '-1',
    why: 'the start of the log beside some errors: nobody reads it there',
  },
  {
    api: 'Produce',
    path: /\.logAppendTimeMs$/,
    left: /^\d+$/,
    right: '-1',
    why: "a repeated batch: Kafka answers with its time, also where the time is not the broker's",
  },
  {
    api: 'Produce',
    path: /errorCode$/,
    left: 'INVALID_RECORD',
    right: 'INVALID_REQUIRED_ACKS',
    why: 'two faults in one request: which is told is chance',
  },
  {
    api: 'Fetch',
    path: /abortedTransactions$/,
    left: 'null',
    right: 'present',
    why: 'none beside an error: null and empty mean the same',
  },
  {
    api: 'Fetch',
    path: /^responses\[(again)?\](\.partitions\[\])?$/,
    left: /absent|present/,
    right: /absent|present/,
    why: "a topic's partitions stand together; Kafka begins the topic again after another one",
  },
  {
    api: 'OffsetDelete',
    path: 'topics[]',
    left: 'present',
    right: 'absent',
    why: 'a topic that there is not, without partitions: there is nothing to say',
  },
  {
    api: 'OffsetCommit',
    path: 'topics[]',
    left: 'present',
    right: 'absent',
    why: 'a topic without partitions, by an id that nobody has: there is nothing to say',
  },
  {
    api: 'AlterPartitionReassignments',
    path: 'errorMessage',
    left: 'a text',
    right: 'null',
    why: 'a request for no topic at all: a text beside no error',
  },
  {
    api: 'OffsetForLeaderEpoch',
    path: /(leaderEpoch|endOffset)$/,
    right: '-1',
    why: 'the epochs -2 and below, which never were: Kafka treats them as older than the log',
  },
  // Metadata and configuration
  {
    api: 'Metadata',
    path: /^topics\[\](\.(errorCode|partitions\[\]|topicId))?$/,
    left: /^(UNKNOWN_TOPIC_OR_PARTITION|absent|A{22})$/,
    right: /^(NONE|present|<id>)$/,
    why: 'a topic that is created by asking is there in the first answer already; names beside ids are answered as well',
  },
  {
    api: 'CreateTopics',
    path: /^topics\[\]\.configs\[.*\]\.value$/,
    why: 'the value as it was understood, where Kafka repeats the text: spaces, capitals',
  },
  {
    api: 'IncrementalAlterConfigs',
    path: 'responses[].errorCode',
    left: /^(INVALID_REQUEST|INVALID_CONFIG)$/,
    right: /^(INVALID_REQUEST|INVALID_TOPIC_EXCEPTION|BROKER_ID_NOT_REGISTERED)$/,
    why: 'a change of what cannot be changed (another broker, a logger, a topic that cannot be): refused by another name',
  },
  {
    api: 'DescribeConfigs',
    path: /\[(advertised\.listeners|listeners|listener\.security\.protocol\.map|inter\.broker\.listener\.name|controller\.quorum\.voters|log\.dir)\]/,
    why: 'the two nodes are set up in their own ways',
  },
  {
    api: 'DescribeQuorum',
    path: /(port|replicaDirectoryId)$/,
    why: 'the two quorums are set up in their own ways: ours has voters with directory ids',
  },
]
