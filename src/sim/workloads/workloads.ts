import type { Workload } from '../kernel.ts'
import { cluster } from './cluster.ts'
import { echo } from './echo.ts'
import { node } from './node.ts'
import { raft } from './raft.ts'
import { storage } from './storage.ts'

/** All that can be simulated, by name. */
export const WORKLOADS: ReadonlyMap<string, Workload> = new Map(
  [cluster, echo, node, raft, storage].map(workload => [workload.name, workload]),
)
