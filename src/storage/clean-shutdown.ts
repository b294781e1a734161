import type { Disk } from '#world/world.ts'
import { readText, replaceFile } from './files.ts'

const FILE = '.kafka_cleanshutdown'

/**
 * Takes away the mark of a clean stop, durably, before anything is written. Its broker epoch (-1 when it names none) tells
 * the controller at registration that nothing was lost (KIP-966). Undefined: the last stop was not clean.
 */
export async function takeCleanShutdown(disk: Disk, folder: string): Promise<number | undefined> {
  const text = await readText(disk, `${folder}/${FILE}`)
  if (text === undefined) return undefined
  await disk.remove(`${folder}/${FILE}`)
  await disk.syncFolder(folder)
  const match = /"brokerEpoch"\s*:\s*(-?\d+)/.exec(text)
  return match === null ? -1 : Number(match[1])
}

export function writeCleanShutdown(disk: Disk, folder: string, brokerEpoch: number): Promise<void> {
  return replaceFile(disk, folder, FILE, JSON.stringify({ version: 0, brokerEpoch }))
}
