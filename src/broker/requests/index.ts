import { apiVersions } from '#network/api-versions.ts'
import { type Service, service } from '#network/service.ts'
import type { Broker } from '../broker.ts'
import { produce } from './00-produce.ts'
import { fetch } from './01-fetch.ts'
import { listOffsets } from './02-list-offsets.ts'
import { metadata } from './03-metadata.ts'
import { offsetCommit } from './08-offset-commit.ts'
import { offsetFetch } from './09-offset-fetch.ts'
import { findCoordinator } from './10-find-coordinator.ts'
import { joinGroup } from './11-join-group.ts'
import { heartbeat } from './12-heartbeat.ts'
import { leaveGroup } from './13-leave-group.ts'
import { syncGroup } from './14-sync-group.ts'
import { describeGroups } from './15-describe-groups.ts'
import { listGroups } from './16-list-groups.ts'
import { createTopics } from './19-create-topics.ts'
import { deleteTopics } from './20-delete-topics.ts'
import { deleteRecords } from './21-delete-records.ts'
import { initProducerId } from './22-init-producer-id.ts'
import { offsetForLeaderEpoch } from './23-offset-for-leader-epoch.ts'
import { describeConfigs } from './32-describe-configs.ts'
import { alterConfigs } from './33-alter-configs.ts'
import { describeLogDirs } from './35-describe-log-dirs.ts'
import { createPartitions } from './37-create-partitions.ts'
import { deleteGroups } from './42-delete-groups.ts'
import { electLeaders } from './43-elect-leaders.ts'
import { incrementalAlterConfigs } from './44-incremental-alter-configs.ts'
import { alterPartitionReassignments } from './45-alter-partition-reassignments.ts'
import { listPartitionReassignments } from './46-list-partition-reassignments.ts'
import { offsetDelete } from './47-offset-delete.ts'
import { describeQuorum } from './55-describe-quorum.ts'
import { updateFeatures } from './57-update-features.ts'
import { describeCluster } from './60-describe-cluster.ts'
import { describeProducers } from './61-describe-producers.ts'
import { unregisterBroker } from './64-unregister-broker.ts'
import { listConfigResources } from './74-list-config-resources.ts'
import { describeTopicPartitions } from './75-describe-topic-partitions.ts'
import { addRaftVoter } from './80-add-raft-voter.ts'
import { removeRaftVoter } from './81-remove-raft-voter.ts'

/** Everything that clients may ask of a broker. Only what is here is advertised. */
export function brokerService(broker: Broker): Service {
  const all: Service = service([
    produce(broker),
    fetch(broker),
    listOffsets(broker),
    metadata(broker),
    offsetCommit(broker),
    offsetFetch(broker),
    findCoordinator(broker),
    joinGroup(broker),
    heartbeat(broker),
    leaveGroup(broker),
    syncGroup(broker),
    describeGroups(broker),
    listGroups(broker),
    apiVersions(
      () => all,
      () => broker.features(),
    ),
    createTopics(broker),
    deleteTopics(broker),
    deleteRecords(broker),
    initProducerId(broker),
    offsetForLeaderEpoch(broker),
    describeConfigs(broker),
    alterConfigs(broker),
    describeLogDirs(broker),
    createPartitions(broker),
    deleteGroups(broker),
    electLeaders(broker),
    incrementalAlterConfigs(broker),
    alterPartitionReassignments(broker),
    listPartitionReassignments(broker),
    offsetDelete(broker),
    describeQuorum(broker),
    updateFeatures(broker),
    describeCluster(broker),
    describeProducers(broker),
    unregisterBroker(broker),
    listConfigResources(broker),
    describeTopicPartitions(broker),
    addRaftVoter(broker),
    removeRaftVoter(broker),
  ])
  return all
}
