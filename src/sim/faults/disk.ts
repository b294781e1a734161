import type { SeededRandom } from '#base/random.ts'
import { type FakeDisk, NO_DISK_FAULTS } from '#world/fake/fake-disk.ts'

const HARMLESS = ['full', 'slow'] as const
const KINDS = [...HARMLESS, 'writeFails', 'syncFails', 'hangs'] as const

/** Something goes wrong with a disk for a while, with `mayFail` also what may lose what was written. Returns what it is, for the trace. */
export function breakDisk(disk: FakeDisk, random: SeededRandom, mayFail = true): string {
  const { faults } = disk
  const kind = random.pick<(typeof KINDS)[number]>(mayFail ? KINDS : HARMLESS)
  switch (kind) {
    case 'full':
      faults.capacity = disk.usedBytes + random.below(5000)
      break
    case 'slow':
      faults.latencyUs = [1000, random.pick([5000, 100_000])]
      faults.writesNow = 0
      break
    case 'hangs':
      faults.hangs = true
      break
    default:
      faults[kind] = random.pick([0.05, 0.5, 1])
  }
  return kind
}

/** What lies on a disk of its own cannot be had any more, neither read nor written. */
export function loseFolder(disk: FakeDisk, folder: string): void {
  disk.faults = { ...disk.faults, within: folder, readFails: 1, writeFails: 1, syncFails: 1 }
}

export function healDisk(disk: FakeDisk): void {
  const { syncLies } = disk.faults
  disk.faults = { ...NO_DISK_FAULTS, syncLies }
  disk.unhang()
}
