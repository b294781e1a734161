import fs from 'node:fs'
import os from 'node:os'
import type { File } from '../world.ts'
import { paceOf } from './disk-pace.ts'
import { RealFile } from './file.ts'
import { findKernel } from './kernel.ts'

/** Fewer are synced one by one: a whole file system has others' writes to wait for. */
const TOGETHER_MIN = 16

/** Types of statfs whose sync of the whole is known to do what one of each file does: ext, XFS, Btrfs, F2FS, tmpfs. */
const TRUSTED_TYPES: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x01021994])

/** A file system that is in use; its descriptor hears of every failure to write since it was opened, and of each once. */
interface Held {
  readonly descriptor: number
  users: number
}

/** By device number. */
const held = new Map<number, Held>()

/**
 * Lets files on the file system of this folder be synced all at once. To be called before anything is written there, so
 * that no failure is missed; returns what ends it. It does nothing where the system cannot do it, or does not tell of
 * failures (Linux before 5.8).
 */
export function holdFileSystem(folder: string): () => void {
  const nothing = (): void => {}
  const [major = 0, minor = 0] = os.release().split('.').map(Number)
  if (findKernel() === undefined || major < 5 || (major === 5 && minor < 8)) return nothing
  let device: number
  try {
    if (!TRUSTED_TYPES.has(fs.statfsSync(folder).type)) return nothing
    device = fs.statSync(folder).dev
    const system = held.get(device) ?? { descriptor: fs.openSync(folder, 'r'), users: 0 }
    held.set(device, system)
    system.users++
  } catch {
    return nothing
  }
  return () => letGo(device)
}

function letGo(device: number): void {
  const system = held.get(device)
  if (system === undefined || --system.users > 0) return
  held.delete(device)
  fs.closeSync(system.descriptor)
}

/** See `Disk.syncAll`. */
export async function syncTogether(files: readonly File[], folders: readonly string[]): Promise<boolean> {
  const kernel = findKernel()
  if (kernel === undefined || held.size === 0 || files.length + folders.length < TOGETHER_MIN) return false
  const devices = new Set<number>()
  try {
    // What was written a moment ago is known to the system: neither call waits for the disk.
    for (const file of files) devices.add(file instanceof RealFile ? fs.fstatSync(file.descriptor).dev : -1)
    for (const folder of folders) devices.add(fs.statSync(folder).dev)
  } catch {
    return false
  }
  for (const device of devices) if (!held.has(device)) return false
  for (const device of devices) {
    const system = held.get(device)
    if (system === undefined) return false
    system.users++
    const pace = paceOf(device)
    const sync = pace.syncBegins(performance.now())
    try {
      if ((await kernel.syncFileSystem(system.descriptor)) !== 0) return false
    } finally {
      pace.syncEnds(sync)
      letGo(device)
    }
  }
  return true
}
