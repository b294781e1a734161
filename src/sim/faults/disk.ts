import type { SeededRandom } from '#base/random.ts'
import { type FakeDisk, NO_DISK_FAULTS } from '#world/fake/fake-disk.ts'

/** Something goes wrong with a disk for a while. Returns what it is, for the trace. */
export function breakDisk(disk: FakeDisk, random: SeededRandom): string {
  const { faults } = disk
  switch (random.below(5)) {
    case 0:
      faults.capacity = disk.usedBytes + random.below(5000)
      return 'full'
    case 1:
      faults.writeFails = random.pick([0.05, 0.5, 1])
      return 'writeFails'
    case 2:
      faults.syncFails = random.pick([0.05, 0.5, 1])
      return 'syncFails'
    case 3:
      faults.hangs = true
      return 'hangs'
    default:
      faults.latencyUs = [1000, random.pick([5000, 100_000])]
      faults.writesNow = 0
      return 'slow'
  }
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
