import type { Offset } from '#base/units.ts'
import { isUuid, type Uuid } from '#base/uuid.ts'
import type { Disk } from '#world/world.ts'
import { readText } from './files.ts'

const FILE = '.tidemark_boot'

/**
 * What a life left behind that ended without a stop though the machine went on: everything that it had written is still
 * there, as what a process wrote outlives it.
 *
 *     {"version":0,"brokerEpoch":42,"incarnationId":"…","bootId":"…"}
 */
export interface BootMark {
  /** -1 where something may be missing. */
  readonly brokerEpoch: Offset
  /** It was about to register under this id, and did not hear of its new epoch: it may be registered, and did nothing yet. */
  readonly incarnationId: Uuid | undefined
}

/** Undefined where there is none of this boot. */
export async function readBootMark(disk: Disk, folder: string): Promise<BootMark | undefined> {
  const bootId = await disk.bootId()
  const text = bootId === undefined ? undefined : await readText(disk, `${folder}/${FILE}`)
  if (text === undefined) return undefined
  try {
    const mark: Partial<Record<string, unknown>> = JSON.parse(text)
    if (mark.bootId !== bootId || !Number.isSafeInteger(mark.brokerEpoch)) return undefined
    const { incarnationId } = mark
    const isRegistering = typeof incarnationId === 'string' && isUuid(incarnationId)
    return { brokerEpoch: Number(mark.brokerEpoch), incarnationId: isRegistering ? (incarnationId as Uuid) : undefined }
  } catch {
    return undefined
  }
}

/** Needs not be durable: after a power cut it is of another boot. */
export async function writeBootMark(disk: Disk, folder: string, mark: BootMark): Promise<void> {
  const bootId = await disk.bootId()
  if (bootId === undefined) return
  const path = `${folder}/${FILE}`
  await disk.remove(path)
  const file = await disk.open(path, { create: true, write: true })
  try {
    await file.write([Buffer.from(JSON.stringify({ version: 0, ...mark, bootId }))], 0)
  } finally {
    await file.close()
  }
}

export async function removeBootMark(disk: Disk, folder: string): Promise<void> {
  await disk.remove(`${folder}/${FILE}`)
}
