import type { Workload } from '../kernel.ts'
import { echo } from './echo.ts'
import { node } from './node.ts'
import { storage } from './storage.ts'

/** All that can be simulated, by name. */
export const WORKLOADS: ReadonlyMap<string, Workload> = new Map(
  [echo, node, storage].map(workload => [workload.name, workload]),
)
