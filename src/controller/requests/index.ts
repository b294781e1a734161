import { apiVersions } from '#network/api-versions.ts'
import { type Service, service } from '#network/service.ts'
import type { Controller } from '../controller.ts'
import { fetch } from './01-fetch.ts'
import { createTopics } from './19-create-topics.ts'
import { deleteTopics } from './20-delete-topics.ts'
import { alterConfigs } from './33-alter-configs.ts'
import { createPartitions } from './37-create-partitions.ts'
import { electLeaders } from './43-elect-leaders.ts'
import { incrementalAlterConfigs } from './44-incremental-alter-configs.ts'
import { alterPartitionReassignments } from './45-alter-partition-reassignments.ts'
import { listPartitionReassignments } from './46-list-partition-reassignments.ts'
import { vote } from './52-vote.ts'
import { beginQuorumEpoch } from './53-begin-quorum-epoch.ts'
import { endQuorumEpoch } from './54-end-quorum-epoch.ts'
import { describeQuorum } from './55-describe-quorum.ts'
import { alterPartition } from './56-alter-partition.ts'
import { updateFeatures } from './57-update-features.ts'
import { envelope } from './58-envelope.ts'
import { fetchSnapshot } from './59-fetch-snapshot.ts'
import { describeCluster } from './60-describe-cluster.ts'
import { brokerRegistration } from './62-broker-registration.ts'
import { brokerHeartbeat } from './63-broker-heartbeat.ts'
import { unregisterBroker } from './64-unregister-broker.ts'
import { allocateProducerIds } from './67-allocate-producer-ids.ts'
import { controllerRegistration } from './70-controller-registration.ts'
import { assignReplicasToDirs } from './73-assign-replicas-to-dirs.ts'
import { addRaftVoter } from './80-add-raft-voter.ts'
import { removeRaftVoter } from './81-remove-raft-voter.ts'
import { updateRaftVoter } from './82-update-raft-voter.ts'

/** What the controller's listener serves. */
export function controllerService(controller: Controller): Service {
  const apis: Service = service([
    fetch(controller),
    apiVersions(
      () => apis,
      () => controller.featureState(),
    ),
    createTopics(controller),
    deleteTopics(controller),
    alterConfigs(controller),
    createPartitions(controller),
    electLeaders(controller),
    incrementalAlterConfigs(controller),
    alterPartitionReassignments(controller),
    listPartitionReassignments(controller),
    vote(controller),
    beginQuorumEpoch(controller),
    endQuorumEpoch(controller),
    describeQuorum(controller),
    alterPartition(controller),
    updateFeatures(controller),
    envelope(controller, () => apis),
    fetchSnapshot(controller),
    describeCluster(controller),
    brokerRegistration(controller),
    brokerHeartbeat(controller),
    unregisterBroker(controller),
    allocateProducerIds(controller),
    controllerRegistration(controller),
    assignReplicasToDirs(controller),
    addRaftVoter(controller),
    removeRaftVoter(controller),
    updateRaftVoter(controller),
  ])
  return apis
}
