/**
 * Kafka's error codes, release 4.3: code, whether a client may simply try again, and what it means in a few words.
 * The rest of the code takes the numbers from {@link ErrorCode}; a message to a user starts with the text here.
 */
export const ERRORS = {
  UNKNOWN_SERVER_ERROR: [-1, 'fatal', 'the server failed in a way that it has no code for'],
  NONE: [0, 'fatal', 'no error'],
  OFFSET_OUT_OF_RANGE: [1, 'fatal', 'the partition holds no such offset'],
  CORRUPT_MESSAGE: [2, 'retriable', 'a record batch is damaged, too large, or lacks the key that compaction needs'],
  UNKNOWN_TOPIC_OR_PARTITION: [3, 'retriable', 'this broker knows no such topic or partition'],
  INVALID_FETCH_SIZE: [4, 'fatal', 'the size to fetch is not allowed'],
  LEADER_NOT_AVAILABLE: [5, 'retriable', 'the partition has no leader at the moment'],
  NOT_LEADER_OR_FOLLOWER: [6, 'retriable', 'this broker does not lead the partition, or holds no replica of it'],
  REQUEST_TIMED_OUT: [7, 'retriable', 'the request was not finished in its time'],
  BROKER_NOT_AVAILABLE: [8, 'fatal', 'the broker cannot be reached'],
  REPLICA_NOT_AVAILABLE: [9, 'retriable', 'the replica of this partition is not available here'],
  MESSAGE_TOO_LARGE: [10, 'fatal', 'a record batch is larger than the topic allows'],
  STALE_CONTROLLER_EPOCH: [11, 'fatal', 'another controller has taken over'],
  OFFSET_METADATA_TOO_LARGE: [12, 'fatal', 'the text committed with the offset is too long'],
  NETWORK_EXCEPTION: [13, 'retriable', 'the connection broke before the answer came'],
  COORDINATOR_LOAD_IN_PROGRESS: [14, 'retriable', 'the coordinator is still reading its log'],
  COORDINATOR_NOT_AVAILABLE: [15, 'retriable', 'there is no coordinator at the moment'],
  NOT_COORDINATOR: [16, 'retriable', 'another broker is the coordinator'],
  INVALID_TOPIC_EXCEPTION: [17, 'fatal', 'the topic has a name that is not allowed, or is not for this use'],
  RECORD_LIST_TOO_LARGE: [18, 'fatal', 'the batches are larger than a segment may be'],
  NOT_ENOUGH_REPLICAS: [19, 'retriable', 'fewer replicas are in sync than min.insync.replicas asks for'],
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: [20, 'retriable', 'written, but on fewer in-sync replicas than asked for'],
  INVALID_REQUIRED_ACKS: [21, 'fatal', 'acks must be -1, 0 or 1'],
  ILLEGAL_GENERATION: [22, 'fatal', 'the group has moved on to another generation'],
  INCONSISTENT_GROUP_PROTOCOL: [23, 'fatal', 'the member shares no protocol with the other members of its group'],
  INVALID_GROUP_ID: [24, 'fatal', 'the group id is not allowed'],
  UNKNOWN_MEMBER_ID: [25, 'fatal', 'the group has no such member'],
  INVALID_SESSION_TIMEOUT: [26, 'fatal', 'the session timeout is outside of what the broker allows'],
  REBALANCE_IN_PROGRESS: [27, 'fatal', 'the group is rebalancing: join again'],
  INVALID_COMMIT_OFFSET_SIZE: [28, 'fatal', 'the commit is larger than its topic can store'],
  TOPIC_AUTHORIZATION_FAILED: [29, 'fatal', 'not allowed on this topic'],
  GROUP_AUTHORIZATION_FAILED: [30, 'fatal', 'not allowed on this group'],
  CLUSTER_AUTHORIZATION_FAILED: [31, 'fatal', 'not allowed on this cluster'],
  INVALID_TIMESTAMP: [32, 'fatal', 'a record has a time outside of what the topic accepts'],
  UNSUPPORTED_SASL_MECHANISM: [33, 'fatal', 'the broker does not offer this SASL mechanism'],
  ILLEGAL_SASL_STATE: [34, 'fatal', 'the request comes at the wrong point of the authentication'],
  UNSUPPORTED_VERSION: [35, 'fatal', 'the other side does not support this version or feature'],
  TOPIC_ALREADY_EXISTS: [36, 'fatal', 'a topic of this name exists'],
  INVALID_PARTITIONS: [37, 'fatal', 'the number of partitions is not possible'],
  INVALID_REPLICATION_FACTOR: [38, 'fatal', 'the replication factor is below one or above the number of brokers'],
  INVALID_REPLICA_ASSIGNMENT: [39, 'fatal', 'the replicas cannot be placed as asked for'],
  INVALID_CONFIG: [40, 'fatal', 'a configuration value is not allowed'],
  NOT_CONTROLLER: [41, 'retriable', 'another node is the active controller'],
  INVALID_REQUEST: [42, 'fatal', 'the request contradicts itself or the protocol'],
  UNSUPPORTED_FOR_MESSAGE_FORMAT: [43, 'fatal', "not possible with the topic's message format"],
  POLICY_VIOLATION: [44, 'fatal', "refused by the cluster's policy"],
  OUT_OF_ORDER_SEQUENCE_NUMBER: [45, 'fatal', "a batch of this producer's sequence is missing"],
  DUPLICATE_SEQUENCE_NUMBER: [46, 'fatal', 'the batch was written before'],
  INVALID_PRODUCER_EPOCH: [47, 'fatal', "the producer's epoch is older than the newest one"],
  INVALID_TXN_STATE: [48, 'fatal', 'the transaction is in no state for this'],
  INVALID_PRODUCER_ID_MAPPING: [49, 'fatal', 'the producer id does not belong to the transactional id'],
  INVALID_TRANSACTION_TIMEOUT: [50, 'fatal', 'the transaction timeout is larger than transaction.max.timeout.ms'],
  CONCURRENT_TRANSACTIONS: [51, 'retriable', 'the transaction before is not finished yet'],
  TRANSACTION_COORDINATOR_FENCED: [52, 'fatal', 'a newer coordinator has taken over the transaction'],
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: [53, 'fatal', 'not allowed with this transactional id'],
  SECURITY_DISABLED: [54, 'fatal', 'the broker runs without an authorizer'],
  OPERATION_NOT_ATTEMPTED: [55, 'fatal', 'not tried, because another part of the request failed'],
  KAFKA_STORAGE_ERROR: [56, 'retriable', 'the disk of the log is full or failing'],
  LOG_DIR_NOT_FOUND: [57, 'fatal', 'the broker has no such log folder'],
  SASL_AUTHENTICATION_FAILED: [58, 'fatal', 'the credentials were not accepted'],
  UNKNOWN_PRODUCER_ID: [59, 'fatal', 'nothing is known of this producer any more'],
  REASSIGNMENT_IN_PROGRESS: [60, 'fatal', 'the partition is being moved'],
  DELEGATION_TOKEN_AUTH_DISABLED: [61, 'fatal', 'delegation tokens are turned off'],
  DELEGATION_TOKEN_NOT_FOUND: [62, 'fatal', 'there is no such delegation token'],
  DELEGATION_TOKEN_OWNER_MISMATCH: [63, 'fatal', 'the token belongs to someone else'],
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: [64, 'fatal', 'tokens cannot be asked for over this kind of connection'],
  DELEGATION_TOKEN_AUTHORIZATION_FAILED: [65, 'fatal', 'not allowed with this delegation token'],
  DELEGATION_TOKEN_EXPIRED: [66, 'fatal', 'the delegation token has expired'],
  INVALID_PRINCIPAL_TYPE: [67, 'fatal', 'this type of principal is not supported'],
  NON_EMPTY_GROUP: [68, 'fatal', 'the group still has members'],
  GROUP_ID_NOT_FOUND: [69, 'fatal', 'there is no such group'],
  FETCH_SESSION_ID_NOT_FOUND: [70, 'retriable', 'the fetch session is not known any more'],
  INVALID_FETCH_SESSION_EPOCH: [71, 'retriable', 'the fetch session is at another epoch'],
  LISTENER_NOT_FOUND: [72, 'retriable', 'the leader has no listener of the name that was asked'],
  TOPIC_DELETION_DISABLED: [73, 'fatal', 'deleting topics is turned off'],
  FENCED_LEADER_EPOCH: [74, 'retriable', 'the leader epoch of the request is out of date'],
  UNKNOWN_LEADER_EPOCH: [75, 'retriable', 'the leader epoch of the request is not known here yet'],
  UNSUPPORTED_COMPRESSION_TYPE: [76, 'fatal', 'the client cannot read the compression of these records'],
  STALE_BROKER_EPOCH: [77, 'fatal', 'the broker has registered anew since'],
  OFFSET_NOT_AVAILABLE: [78, 'retriable', 'a new leader does not know its high watermark yet'],
  MEMBER_ID_REQUIRED: [79, 'fatal', 'join again with the member id of this answer'],
  PREFERRED_LEADER_NOT_AVAILABLE: [80, 'retriable', 'the preferred leader is not available'],
  GROUP_MAX_SIZE_REACHED: [81, 'fatal', 'the group has as many members as it may have'],
  FENCED_INSTANCE_ID: [82, 'fatal', 'another member uses this group.instance.id'],
  ELIGIBLE_LEADERS_NOT_AVAILABLE: [83, 'retriable', 'no replica that may lead is available'],
  ELECTION_NOT_NEEDED: [84, 'retriable', 'the partition has the right leader'],
  NO_REASSIGNMENT_IN_PROGRESS: [85, 'fatal', 'the partition is not being moved'],
  GROUP_SUBSCRIBED_TO_TOPIC: [86, 'fatal', 'the group is subscribed to the topic'],
  INVALID_RECORD: [87, 'fatal', 'a record was refused'],
  UNSTABLE_OFFSET_COMMIT: [88, 'retriable', 'an open transaction holds commits of these offsets'],
  THROTTLING_QUOTA_EXCEEDED: [89, 'retriable', 'more changes than the quota allows: wait'],
  PRODUCER_FENCED: [90, 'fatal', 'a newer producer uses the same transactional id'],
  RESOURCE_NOT_FOUND: [91, 'fatal', 'what the request names does not exist'],
  DUPLICATE_RESOURCE: [92, 'fatal', 'the request names one thing twice'],
  UNACCEPTABLE_CREDENTIAL: [93, 'fatal', 'the credential does not meet the rules'],
  INCONSISTENT_VOTER_SET: [94, 'fatal', 'sender and receiver do not agree on who votes'],
  INVALID_UPDATE_VERSION: [95, 'fatal', 'the version to update to is not possible'],
  FEATURE_UPDATE_FAILED: [96, 'fatal', 'the features could not be updated'],
  PRINCIPAL_DESERIALIZATION_FAILURE: [97, 'fatal', 'the principal of a forwarded request cannot be read'],
  SNAPSHOT_NOT_FOUND: [98, 'fatal', 'there is no such snapshot'],
  POSITION_OUT_OF_RANGE: [99, 'fatal', 'the position is outside of the snapshot'],
  UNKNOWN_TOPIC_ID: [100, 'retriable', 'this broker knows no topic of this id'],
  DUPLICATE_BROKER_REGISTRATION: [101, 'fatal', 'a live broker uses this id'],
  BROKER_ID_NOT_REGISTERED: [102, 'fatal', 'no broker of this id is registered'],
  INCONSISTENT_TOPIC_ID: [103, 'retriable', 'the topic has another id here'],
  INCONSISTENT_CLUSTER_ID: [104, 'fatal', 'this node belongs to another cluster'],
  TRANSACTIONAL_ID_NOT_FOUND: [105, 'fatal', 'there is no such transactional id'],
  FETCH_SESSION_TOPIC_ID_ERROR: [106, 'retriable', 'the fetch session mixes topic names and ids'],
  INELIGIBLE_REPLICA: [107, 'fatal', 'a replica may not join the in-sync set'],
  NEW_LEADER_ELECTED: [108, 'fatal', 'done, and the partition has another leader now'],
  OFFSET_MOVED_TO_TIERED_STORAGE: [109, 'fatal', 'the offset is in tiered storage only'],
  FENCED_MEMBER_EPOCH: [110, 'fatal', 'the group has fenced this member: give up its partitions and join again'],
  UNRELEASED_INSTANCE_ID: [111, 'fatal', 'another member still holds this instance id'],
  UNSUPPORTED_ASSIGNOR: [112, 'fatal', 'the group does not support this assignor'],
  STALE_MEMBER_EPOCH: [113, 'fatal', "the member's epoch is out of date: heartbeat, then try again"],
  MISMATCHED_ENDPOINT_TYPE: [114, 'fatal', 'broker and controller were mistaken for each other'],
  UNSUPPORTED_ENDPOINT_TYPE: [115, 'fatal', 'this type of endpoint is not supported'],
  UNKNOWN_CONTROLLER_ID: [116, 'fatal', 'there is no controller of this id'],
  UNKNOWN_SUBSCRIPTION_ID: [117, 'fatal', 'the telemetry subscription is not the current one'],
  TELEMETRY_TOO_LARGE: [118, 'fatal', 'the telemetry is larger than the broker takes'],
  INVALID_REGISTRATION: [119, 'fatal', 'the controller does not accept the registration'],
  TRANSACTION_ABORTABLE: [120, 'fatal', 'the transaction must be aborted; the producer can go on'],
  INVALID_RECORD_STATE: [121, 'fatal', 'the record cannot be acknowledged in its state'],
  SHARE_SESSION_NOT_FOUND: [122, 'retriable', 'the share session is not known any more'],
  INVALID_SHARE_SESSION_EPOCH: [123, 'retriable', 'the share session is at another epoch'],
  FENCED_STATE_EPOCH: [124, 'fatal', "the share group's state is at a newer epoch"],
  INVALID_VOTER_KEY: [125, 'fatal', 'the request is meant for another directory of this voter'],
  DUPLICATE_VOTER: [126, 'fatal', 'the node votes already'],
  VOTER_NOT_FOUND: [127, 'fatal', 'the node is no voter'],
  INVALID_REGULAR_EXPRESSION: [128, 'fatal', 'the regular expression cannot be read'],
  REBOOTSTRAP_REQUIRED: [129, 'fatal', 'what the client knows is too old: start again from the bootstrap servers'],
  STREAMS_INVALID_TOPOLOGY: [130, 'fatal', 'the streams topology is not possible'],
  STREAMS_INVALID_TOPOLOGY_EPOCH: [131, 'fatal', "the streams topology's epoch is not possible"],
  STREAMS_TOPOLOGY_FENCED: [132, 'fatal', 'the streams topology is out of date'],
  SHARE_SESSION_LIMIT_REACHED: [133, 'retriable', 'the broker holds as many share sessions as it may'],
} as const satisfies Record<string, readonly [code: number, retry: 'retriable' | 'fatal', text: string]>

export type ErrorName = keyof typeof ERRORS

/** The codes by name: `ErrorCode.NOT_LEADER_OR_FOLLOWER` is 6. */
export const ErrorCode = Object.fromEntries(Object.entries(ERRORS).map(([name, [code]]) => [name, code])) as {
  readonly [Name in ErrorName]: (typeof ERRORS)[Name][0]
}
export type ErrorCode = (typeof ErrorCode)[ErrorName]

export interface ProtocolError {
  readonly code: ErrorCode
  readonly name: ErrorName
  readonly retriable: boolean
  /** What it means, in lower case and without a full stop. */
  readonly message: string
}

const errorsByCode = new Map<number, ProtocolError>()
for (const [name, [code, retry, message]] of Object.entries(ERRORS)) {
  errorsByCode.set(code, { code, name: name as ErrorName, retriable: retry === 'retriable', message })
}

/** All that is known of a code; what is not known counts as UNKNOWN_SERVER_ERROR, as in Kafka's clients. */
export function errorOf(code: number): ProtocolError {
  return (errorsByCode.get(code) ?? errorsByCode.get(ERRORS.UNKNOWN_SERVER_ERROR[0])) as ProtocolError
}

export function isRetriable(code: number): boolean {
  return errorOf(code).retriable
}

export function errorText(code: number): string {
  return errorOf(code).message
}
