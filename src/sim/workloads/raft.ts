import { simulateQuorum } from '#core/raft/testing/sim-chaos.ts'
import { SimQuorum } from '#core/raft/testing/sim-quorum.ts'
import type { Workload } from '../kernel.ts'
import { RAFT_MUTANTS } from '../mutants/raft-mutants.ts'

/** Raft alone, without disks, sockets and promises, so that a second holds a hundred quorums: see simulateQuorum for its faults. */
export const raft: Workload = {
  name: 'raft',
  mutants: Object.keys(RAFT_MUTANTS),
  async run(simulation, mutant) {
    const broken = mutant === undefined ? undefined : RAFT_MUTANTS[mutant]
    const mend = broken?.patch?.()
    const quorum = new SimQuorum(simulation.random.uint32(), {}, broken?.driver)
    try {
      simulateQuorum(quorum)
    } finally {
      mend?.()
      simulation.beside += quorum.steps
      simulation.trace.add(quorum.now * 1000, 'quorum', 'over', quorum.steps, quorum.truth.committed.length)
    }
    await simulation.wait(quorum.now)
  },
}
