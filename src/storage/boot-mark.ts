import type { Offset } from '#base/units.ts'
import type { Disk } from '#world/world.ts'
import { readText } from './files.ts'

const FILE = '.tidemark_boot'

/**
 * The broker epoch of a life that ended without a stop though the machine went on: everything that it had written is
 * still there, as what a process wrote outlives it. Undefined where that cannot be told.
 *
 *     {"version":0,"brokerEpoch":42,"bootId":"…"}
 */
export async function readBootMark(disk: Disk, folder: string): Promise<Offset | undefined> {
  const bootId = await disk.bootId()
  if (bootId === undefined) return undefined
  const text = await readText(disk, `${folder}/${FILE}`)
  const [, epoch, id] = /^\{"version":0,"brokerEpoch":(\d+),"bootId":"([^"]+)"\}$/.exec(text ?? '') ?? []
  return id === bootId ? Number(epoch) : undefined
}

/** Needs not be durable: after a power cut it is of another boot. */
export async function writeBootMark(disk: Disk, folder: string, brokerEpoch: Offset): Promise<void> {
  const bootId = await disk.bootId()
  if (bootId === undefined) return
  const path = `${folder}/${FILE}`
  await disk.remove(path)
  const file = await disk.open(path, { create: true, write: true })
  try {
    await file.write([Buffer.from(`{"version":0,"brokerEpoch":${brokerEpoch},"bootId":"${bootId}"}`)], 0)
  } finally {
    await file.close()
  }
}

export async function removeBootMark(disk: Disk, folder: string): Promise<void> {
  await disk.remove(`${folder}/${FILE}`)
}
