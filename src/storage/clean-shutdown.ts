import type { Disk } from '#world/world.ts'
import { readText, replaceFile } from './files.ts'

const FILE = '.kafka_cleanshutdown'

/**
 * The broker epoch in the mark of a clean stop (-1 when it names none), which tells the controller at registration that
 * nothing was lost (KIP-966). Undefined: the last stop was not clean.
 */
export async function readCleanShutdown(disk: Disk, folder: string): Promise<number | undefined> {
  const text = await readText(disk, `${folder}/${FILE}`)
  if (text === undefined) return undefined
  const match = /"brokerEpoch"\s*:\s*(-?\d+)/.exec(text)
  return match === null ? -1 : Number(match[1])
}

/** Takes the mark away, durably: before anything is written. */
export async function removeCleanShutdown(disk: Disk, folder: string): Promise<void> {
  await disk.remove(`${folder}/${FILE}`)
  await disk.syncFolder(folder)
}

export function writeCleanShutdown(disk: Disk, folder: string, brokerEpoch: number): Promise<void> {
  return replaceFile(disk, folder, FILE, JSON.stringify({ version: 0, brokerEpoch }))
}
