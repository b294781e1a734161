import { AddOffsetsToTxnRequest, AddOffsetsToTxnResponse } from './messages/add-offsets-to-txn.ts'
import { AddPartitionsToTxnRequest, AddPartitionsToTxnResponse } from './messages/add-partitions-to-txn.ts'
import { AddRaftVoterRequest, AddRaftVoterResponse } from './messages/add-raft-voter.ts'
import { AllocateProducerIdsRequest, AllocateProducerIdsResponse } from './messages/allocate-producer-ids.ts'
import { AlterClientQuotasRequest, AlterClientQuotasResponse } from './messages/alter-client-quotas.ts'
import { AlterConfigsRequest, AlterConfigsResponse } from './messages/alter-configs.ts'
import { AlterPartitionRequest, AlterPartitionResponse } from './messages/alter-partition.ts'
import {
  AlterPartitionReassignmentsRequest,
  AlterPartitionReassignmentsResponse,
} from './messages/alter-partition-reassignments.ts'
import { AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse } from './messages/alter-replica-log-dirs.ts'
import { AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse } from './messages/alter-share-group-offsets.ts'
import {
  AlterUserScramCredentialsRequest,
  AlterUserScramCredentialsResponse,
} from './messages/alter-user-scram-credentials.ts'
import { ApiVersionsRequest, ApiVersionsResponse } from './messages/api-versions.ts'
import { AssignReplicasToDirsRequest, AssignReplicasToDirsResponse } from './messages/assign-replicas-to-dirs.ts'
import { BeginQuorumEpochRequest, BeginQuorumEpochResponse } from './messages/begin-quorum-epoch.ts'
import { BrokerHeartbeatRequest, BrokerHeartbeatResponse } from './messages/broker-heartbeat.ts'
import { BrokerRegistrationRequest, BrokerRegistrationResponse } from './messages/broker-registration.ts'
import { ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse } from './messages/consumer-group-describe.ts'
import { ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse } from './messages/consumer-group-heartbeat.ts'
import { ControllerRegistrationRequest, ControllerRegistrationResponse } from './messages/controller-registration.ts'
import { CreateAclsRequest, CreateAclsResponse } from './messages/create-acls.ts'
import { CreateDelegationTokenRequest, CreateDelegationTokenResponse } from './messages/create-delegation-token.ts'
import { CreatePartitionsRequest, CreatePartitionsResponse } from './messages/create-partitions.ts'
import { CreateTopicsRequest, CreateTopicsResponse } from './messages/create-topics.ts'
import { DeleteAclsRequest, DeleteAclsResponse } from './messages/delete-acls.ts'
import { DeleteGroupsRequest, DeleteGroupsResponse } from './messages/delete-groups.ts'
import { DeleteRecordsRequest, DeleteRecordsResponse } from './messages/delete-records.ts'
import {
  DeleteShareGroupOffsetsRequest,
  DeleteShareGroupOffsetsResponse,
} from './messages/delete-share-group-offsets.ts'
import { DeleteShareGroupStateRequest, DeleteShareGroupStateResponse } from './messages/delete-share-group-state.ts'
import { DeleteTopicsRequest, DeleteTopicsResponse } from './messages/delete-topics.ts'
import { DescribeAclsRequest, DescribeAclsResponse } from './messages/describe-acls.ts'
import { DescribeClientQuotasRequest, DescribeClientQuotasResponse } from './messages/describe-client-quotas.ts'
import { DescribeClusterRequest, DescribeClusterResponse } from './messages/describe-cluster.ts'
import { DescribeConfigsRequest, DescribeConfigsResponse } from './messages/describe-configs.ts'
import {
  DescribeDelegationTokenRequest,
  DescribeDelegationTokenResponse,
} from './messages/describe-delegation-token.ts'
import { DescribeGroupsRequest, DescribeGroupsResponse } from './messages/describe-groups.ts'
import { DescribeLogDirsRequest, DescribeLogDirsResponse } from './messages/describe-log-dirs.ts'
import { DescribeProducersRequest, DescribeProducersResponse } from './messages/describe-producers.ts'
import { DescribeQuorumRequest, DescribeQuorumResponse } from './messages/describe-quorum.ts'
import {
  DescribeShareGroupOffsetsRequest,
  DescribeShareGroupOffsetsResponse,
} from './messages/describe-share-group-offsets.ts'
import {
  DescribeTopicPartitionsRequest,
  DescribeTopicPartitionsResponse,
} from './messages/describe-topic-partitions.ts'
import { DescribeTransactionsRequest, DescribeTransactionsResponse } from './messages/describe-transactions.ts'
import {
  DescribeUserScramCredentialsRequest,
  DescribeUserScramCredentialsResponse,
} from './messages/describe-user-scram-credentials.ts'
import { ElectLeadersRequest, ElectLeadersResponse } from './messages/elect-leaders.ts'
import { EndQuorumEpochRequest, EndQuorumEpochResponse } from './messages/end-quorum-epoch.ts'
import { EndTxnRequest, EndTxnResponse } from './messages/end-txn.ts'
import { EnvelopeRequest, EnvelopeResponse } from './messages/envelope.ts'
import { ExpireDelegationTokenRequest, ExpireDelegationTokenResponse } from './messages/expire-delegation-token.ts'
import { FetchRequest, FetchResponse } from './messages/fetch.ts'
import { FetchSnapshotRequest, FetchSnapshotResponse } from './messages/fetch-snapshot.ts'
import { FindCoordinatorRequest, FindCoordinatorResponse } from './messages/find-coordinator.ts'
import {
  GetTelemetrySubscriptionsRequest,
  GetTelemetrySubscriptionsResponse,
} from './messages/get-telemetry-subscriptions.ts'
import { HeartbeatRequest, HeartbeatResponse } from './messages/heartbeat.ts'
import {
  IncrementalAlterConfigsRequest,
  IncrementalAlterConfigsResponse,
} from './messages/incremental-alter-configs.ts'
import { InitProducerIdRequest, InitProducerIdResponse } from './messages/init-producer-id.ts'
import {
  InitializeShareGroupStateRequest,
  InitializeShareGroupStateResponse,
} from './messages/initialize-share-group-state.ts'
import { JoinGroupRequest, JoinGroupResponse } from './messages/join-group.ts'
import { LeaveGroupRequest, LeaveGroupResponse } from './messages/leave-group.ts'
import { ListConfigResourcesRequest, ListConfigResourcesResponse } from './messages/list-config-resources.ts'
import { ListGroupsRequest, ListGroupsResponse } from './messages/list-groups.ts'
import { ListOffsetsRequest, ListOffsetsResponse } from './messages/list-offsets.ts'
import {
  ListPartitionReassignmentsRequest,
  ListPartitionReassignmentsResponse,
} from './messages/list-partition-reassignments.ts'
import { ListTransactionsRequest, ListTransactionsResponse } from './messages/list-transactions.ts'
import { MetadataRequest, MetadataResponse } from './messages/metadata.ts'
import { OffsetCommitRequest, OffsetCommitResponse } from './messages/offset-commit.ts'
import { OffsetDeleteRequest, OffsetDeleteResponse } from './messages/offset-delete.ts'
import { OffsetFetchRequest, OffsetFetchResponse } from './messages/offset-fetch.ts'
import { OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse } from './messages/offset-for-leader-epoch.ts'
import { ProduceRequest, ProduceResponse } from './messages/produce.ts'
import { PushTelemetryRequest, PushTelemetryResponse } from './messages/push-telemetry.ts'
import { ReadShareGroupStateRequest, ReadShareGroupStateResponse } from './messages/read-share-group-state.ts'
import {
  ReadShareGroupStateSummaryRequest,
  ReadShareGroupStateSummaryResponse,
} from './messages/read-share-group-state-summary.ts'
import { RemoveRaftVoterRequest, RemoveRaftVoterResponse } from './messages/remove-raft-voter.ts'
import { RenewDelegationTokenRequest, RenewDelegationTokenResponse } from './messages/renew-delegation-token.ts'
import { SaslAuthenticateRequest, SaslAuthenticateResponse } from './messages/sasl-authenticate.ts'
import { SaslHandshakeRequest, SaslHandshakeResponse } from './messages/sasl-handshake.ts'
import { ShareAcknowledgeRequest, ShareAcknowledgeResponse } from './messages/share-acknowledge.ts'
import { ShareFetchRequest, ShareFetchResponse } from './messages/share-fetch.ts'
import { ShareGroupDescribeRequest, ShareGroupDescribeResponse } from './messages/share-group-describe.ts'
import { ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse } from './messages/share-group-heartbeat.ts'
import { StreamsGroupDescribeRequest, StreamsGroupDescribeResponse } from './messages/streams-group-describe.ts'
import { StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse } from './messages/streams-group-heartbeat.ts'
import { SyncGroupRequest, SyncGroupResponse } from './messages/sync-group.ts'
import { TxnOffsetCommitRequest, TxnOffsetCommitResponse } from './messages/txn-offset-commit.ts'
import { UnregisterBrokerRequest, UnregisterBrokerResponse } from './messages/unregister-broker.ts'
import { UpdateFeaturesRequest, UpdateFeaturesResponse } from './messages/update-features.ts'
import { UpdateRaftVoterRequest, UpdateRaftVoterResponse } from './messages/update-raft-voter.ts'
import { VoteRequest, VoteResponse } from './messages/vote.ts'
import { WriteShareGroupStateRequest, WriteShareGroupStateResponse } from './messages/write-share-group-state.ts'
import { WriteTxnMarkersRequest, WriteTxnMarkersResponse } from './messages/write-txn-markers.ts'
import { type Listener, parseVersions, type Schema, type VersionRange } from './schema.ts'

export interface Api<Request extends Schema = Schema, Response extends Schema = Schema> {
  readonly key: number
  /** Kafka's name, such as `Fetch`. */
  readonly name: string
  readonly request: Request
  readonly response: Response
  /** The final versions, which may be advertised. */
  readonly versions: VersionRange
  /** The highest version with a codec; above `versions.last` where the newest one is not final. */
  readonly lastVersion: number
  /** From this version on, headers and bodies have tagged sections; Infinity where none has. */
  readonly flexibleFrom: number
  readonly listeners: readonly Listener[]
}

function api<Q extends Schema, R extends Schema>(name: string, request: Q, response: R): Api<Q, R> {
  const { first, last } = parseVersions(request.versions)
  return {
    key: request.apiKey as number,
    name,
    request,
    response,
    versions: { first, last: request.latestVersionUnstable === true ? last - 1 : last },
    lastVersion: last,
    flexibleFrom: request.flexible === undefined ? Number.POSITIVE_INFINITY : parseVersions(request.flexible).first,
    listeners: request.listeners ?? [],
  }
}

/** Every API of Kafka 4.3 that has a version left, by name. */
export const API = {
  Produce: api('Produce', ProduceRequest, ProduceResponse),
  Fetch: api('Fetch', FetchRequest, FetchResponse),
  ListOffsets: api('ListOffsets', ListOffsetsRequest, ListOffsetsResponse),
  Metadata: api('Metadata', MetadataRequest, MetadataResponse),
  OffsetCommit: api('OffsetCommit', OffsetCommitRequest, OffsetCommitResponse),
  OffsetFetch: api('OffsetFetch', OffsetFetchRequest, OffsetFetchResponse),
  FindCoordinator: api('FindCoordinator', FindCoordinatorRequest, FindCoordinatorResponse),
  JoinGroup: api('JoinGroup', JoinGroupRequest, JoinGroupResponse),
  Heartbeat: api('Heartbeat', HeartbeatRequest, HeartbeatResponse),
  LeaveGroup: api('LeaveGroup', LeaveGroupRequest, LeaveGroupResponse),
  SyncGroup: api('SyncGroup', SyncGroupRequest, SyncGroupResponse),
  DescribeGroups: api('DescribeGroups', DescribeGroupsRequest, DescribeGroupsResponse),
  ListGroups: api('ListGroups', ListGroupsRequest, ListGroupsResponse),
  SaslHandshake: api('SaslHandshake', SaslHandshakeRequest, SaslHandshakeResponse),
  ApiVersions: api('ApiVersions', ApiVersionsRequest, ApiVersionsResponse),
  CreateTopics: api('CreateTopics', CreateTopicsRequest, CreateTopicsResponse),
  DeleteTopics: api('DeleteTopics', DeleteTopicsRequest, DeleteTopicsResponse),
  DeleteRecords: api('DeleteRecords', DeleteRecordsRequest, DeleteRecordsResponse),
  InitProducerId: api('InitProducerId', InitProducerIdRequest, InitProducerIdResponse),
  OffsetForLeaderEpoch: api('OffsetForLeaderEpoch', OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
  AddPartitionsToTxn: api('AddPartitionsToTxn', AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
  AddOffsetsToTxn: api('AddOffsetsToTxn', AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
  EndTxn: api('EndTxn', EndTxnRequest, EndTxnResponse),
  WriteTxnMarkers: api('WriteTxnMarkers', WriteTxnMarkersRequest, WriteTxnMarkersResponse),
  TxnOffsetCommit: api('TxnOffsetCommit', TxnOffsetCommitRequest, TxnOffsetCommitResponse),
  DescribeAcls: api('DescribeAcls', DescribeAclsRequest, DescribeAclsResponse),
  CreateAcls: api('CreateAcls', CreateAclsRequest, CreateAclsResponse),
  DeleteAcls: api('DeleteAcls', DeleteAclsRequest, DeleteAclsResponse),
  DescribeConfigs: api('DescribeConfigs', DescribeConfigsRequest, DescribeConfigsResponse),
  AlterConfigs: api('AlterConfigs', AlterConfigsRequest, AlterConfigsResponse),
  AlterReplicaLogDirs: api('AlterReplicaLogDirs', AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse),
  DescribeLogDirs: api('DescribeLogDirs', DescribeLogDirsRequest, DescribeLogDirsResponse),
  SaslAuthenticate: api('SaslAuthenticate', SaslAuthenticateRequest, SaslAuthenticateResponse),
  CreatePartitions: api('CreatePartitions', CreatePartitionsRequest, CreatePartitionsResponse),
  CreateDelegationToken: api('CreateDelegationToken', CreateDelegationTokenRequest, CreateDelegationTokenResponse),
  RenewDelegationToken: api('RenewDelegationToken', RenewDelegationTokenRequest, RenewDelegationTokenResponse),
  ExpireDelegationToken: api('ExpireDelegationToken', ExpireDelegationTokenRequest, ExpireDelegationTokenResponse),
  DescribeDelegationToken: api(
    'DescribeDelegationToken',
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
  ),
  DeleteGroups: api('DeleteGroups', DeleteGroupsRequest, DeleteGroupsResponse),
  ElectLeaders: api('ElectLeaders', ElectLeadersRequest, ElectLeadersResponse),
  IncrementalAlterConfigs: api(
    'IncrementalAlterConfigs',
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
  ),
  AlterPartitionReassignments: api(
    'AlterPartitionReassignments',
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
  ),
  ListPartitionReassignments: api(
    'ListPartitionReassignments',
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
  ),
  OffsetDelete: api('OffsetDelete', OffsetDeleteRequest, OffsetDeleteResponse),
  DescribeClientQuotas: api('DescribeClientQuotas', DescribeClientQuotasRequest, DescribeClientQuotasResponse),
  AlterClientQuotas: api('AlterClientQuotas', AlterClientQuotasRequest, AlterClientQuotasResponse),
  DescribeUserScramCredentials: api(
    'DescribeUserScramCredentials',
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
  ),
  AlterUserScramCredentials: api(
    'AlterUserScramCredentials',
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
  ),
  Vote: api('Vote', VoteRequest, VoteResponse),
  BeginQuorumEpoch: api('BeginQuorumEpoch', BeginQuorumEpochRequest, BeginQuorumEpochResponse),
  EndQuorumEpoch: api('EndQuorumEpoch', EndQuorumEpochRequest, EndQuorumEpochResponse),
  DescribeQuorum: api('DescribeQuorum', DescribeQuorumRequest, DescribeQuorumResponse),
  AlterPartition: api('AlterPartition', AlterPartitionRequest, AlterPartitionResponse),
  UpdateFeatures: api('UpdateFeatures', UpdateFeaturesRequest, UpdateFeaturesResponse),
  Envelope: api('Envelope', EnvelopeRequest, EnvelopeResponse),
  FetchSnapshot: api('FetchSnapshot', FetchSnapshotRequest, FetchSnapshotResponse),
  DescribeCluster: api('DescribeCluster', DescribeClusterRequest, DescribeClusterResponse),
  DescribeProducers: api('DescribeProducers', DescribeProducersRequest, DescribeProducersResponse),
  BrokerRegistration: api('BrokerRegistration', BrokerRegistrationRequest, BrokerRegistrationResponse),
  BrokerHeartbeat: api('BrokerHeartbeat', BrokerHeartbeatRequest, BrokerHeartbeatResponse),
  UnregisterBroker: api('UnregisterBroker', UnregisterBrokerRequest, UnregisterBrokerResponse),
  DescribeTransactions: api('DescribeTransactions', DescribeTransactionsRequest, DescribeTransactionsResponse),
  ListTransactions: api('ListTransactions', ListTransactionsRequest, ListTransactionsResponse),
  AllocateProducerIds: api('AllocateProducerIds', AllocateProducerIdsRequest, AllocateProducerIdsResponse),
  ConsumerGroupHeartbeat: api('ConsumerGroupHeartbeat', ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse),
  ConsumerGroupDescribe: api('ConsumerGroupDescribe', ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
  ControllerRegistration: api('ControllerRegistration', ControllerRegistrationRequest, ControllerRegistrationResponse),
  GetTelemetrySubscriptions: api(
    'GetTelemetrySubscriptions',
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
  ),
  PushTelemetry: api('PushTelemetry', PushTelemetryRequest, PushTelemetryResponse),
  AssignReplicasToDirs: api('AssignReplicasToDirs', AssignReplicasToDirsRequest, AssignReplicasToDirsResponse),
  ListConfigResources: api('ListConfigResources', ListConfigResourcesRequest, ListConfigResourcesResponse),
  DescribeTopicPartitions: api(
    'DescribeTopicPartitions',
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
  ),
  ShareGroupHeartbeat: api('ShareGroupHeartbeat', ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse),
  ShareGroupDescribe: api('ShareGroupDescribe', ShareGroupDescribeRequest, ShareGroupDescribeResponse),
  ShareFetch: api('ShareFetch', ShareFetchRequest, ShareFetchResponse),
  ShareAcknowledge: api('ShareAcknowledge', ShareAcknowledgeRequest, ShareAcknowledgeResponse),
  AddRaftVoter: api('AddRaftVoter', AddRaftVoterRequest, AddRaftVoterResponse),
  RemoveRaftVoter: api('RemoveRaftVoter', RemoveRaftVoterRequest, RemoveRaftVoterResponse),
  UpdateRaftVoter: api('UpdateRaftVoter', UpdateRaftVoterRequest, UpdateRaftVoterResponse),
  InitializeShareGroupState: api(
    'InitializeShareGroupState',
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
  ),
  ReadShareGroupState: api('ReadShareGroupState', ReadShareGroupStateRequest, ReadShareGroupStateResponse),
  WriteShareGroupState: api('WriteShareGroupState', WriteShareGroupStateRequest, WriteShareGroupStateResponse),
  DeleteShareGroupState: api('DeleteShareGroupState', DeleteShareGroupStateRequest, DeleteShareGroupStateResponse),
  ReadShareGroupStateSummary: api(
    'ReadShareGroupStateSummary',
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
  ),
  StreamsGroupHeartbeat: api('StreamsGroupHeartbeat', StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse),
  StreamsGroupDescribe: api('StreamsGroupDescribe', StreamsGroupDescribeRequest, StreamsGroupDescribeResponse),
  DescribeShareGroupOffsets: api(
    'DescribeShareGroupOffsets',
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
  ),
  AlterShareGroupOffsets: api('AlterShareGroupOffsets', AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse),
  DeleteShareGroupOffsets: api(
    'DeleteShareGroupOffsets',
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
  ),
}

/** The same in order of keys. */
export const APIS: readonly Api[] = Object.values(API)

const apisByKey: readonly (Api | undefined)[] = APIS.reduce<(Api | undefined)[]>((table, entry) => {
  table[entry.key] = entry
  return table
}, [])

/** The API with a key from the wire; undefined where there is none. */
export function apiByKey(key: number): Api | undefined {
  return apisByKey[key]
}
