/** A cluster with very many partitions: simulated, as many as no machine here holds, or three real nodes. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { manyPartitions } from './many-partitions.ts'
import { type From, root, type Server } from './server.ts'

/** The simulated disks of all nodes, and what the nodes hold, are in one process. */
const HEAP_MB = 12_000

export interface ClusterScale {
  readonly from: From
  readonly real: boolean
  readonly quick: boolean
  /** A folder for CPU profiles of the simulated cluster, if they are wanted. */
  readonly profiles: string | undefined
  track(server: Server): Server
  say(text: string): void
}

/** @returns whether what was promised was kept. */
export async function clusterScale({ from, real, quick, profiles, track, say }: ClusterScale): Promise<boolean> {
  if (real) {
    say(`Three nodes, ${quick ? 300 : 3000} partitions with 3 replicas each`)
    return await manyPartitions({ from, partitions: quick ? 300 : 3000, idleSeconds: quick ? 5 : 30, track, say })
  }
  say('3 controllers and 18 brokers in one process; times of a virtual clock, processor time beside them')
  const args = [
    '--expose-gc',
    `--max-old-space-size=${HEAP_MB}`,
    join(root, 'bench', 'simulated-cluster.ts'),
    quick ? '1200' : '24000,48000',
    ...(profiles === undefined ? [] : [profiles]),
  ]
  const child = spawn(process.execPath, args, { stdio: 'inherit' })
  const kill = (): void => void child.kill('SIGKILL')
  process.on('exit', kill)
  const code = await new Promise(resolve => child.once('exit', resolve))
  process.off('exit', kill)
  return code === 0
}
