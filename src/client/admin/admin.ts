import type { Client } from '../client.ts'
import * as cluster from './cluster.ts'
import * as configs from './configs.ts'
import * as elections from './elections.ts'
import * as features from './features.ts'
import * as groups from './groups.ts'
import * as offsets from './offsets.ts'
import * as quorum from './quorum.ts'
import * as reassignments from './reassignments.ts'
import * as topics from './topics.ts'

type Bound<F> = F extends (client: Client, ...rest: infer Rest) => infer Result ? (...rest: Rest) => Result : never
type Admin = { readonly [Name in keyof typeof OPERATIONS]: Bound<(typeof OPERATIONS)[Name]> }

const OPERATIONS = {
  listTopics: topics.listTopics,
  describeTopic: topics.describeTopic,
  createTopic: topics.createTopic,
  deleteTopic: topics.deleteTopic,
  createPartitions: topics.createPartitions,
  deleteRecords: topics.deleteRecords,
  describeConfigs: configs.describeConfigs,
  alterConfigs: configs.alterConfigs,
  listGroups: groups.listGroups,
  describeGroup: groups.describeGroup,
  deleteGroup: groups.deleteGroup,
  fetchOffsets: groups.fetchOffsets,
  commitOffsets: groups.commitOffsets,
  deleteOffsets: groups.deleteOffsets,
  listOffsets: offsets.listOffsets,
  describeCluster: cluster.describeCluster,
  describeLogDirs: cluster.describeLogDirs,
  unregisterBroker: cluster.unregisterBroker,
  describeQuorum: quorum.describeQuorum,
  addVoter: quorum.addVoter,
  removeVoter: quorum.removeVoter,
  electLeaders: elections.electLeaders,
  describeFeatures: features.describeFeatures,
  updateFeatures: features.updateFeatures,
  listReassignments: reassignments.listReassignments,
  alterReassignments: reassignments.alterReassignments,
  copyProgress: reassignments.copyProgress,
}

/** Every administrative call, for one client. Who starts often and needs one of them imports its function alone. */
export function admin(client: Client): Admin {
  const bound = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (...rest: unknown[]) => (operation as (...all: unknown[]) => unknown)(client, ...rest),
  ])
  return Object.fromEntries(bound) as Admin
}
