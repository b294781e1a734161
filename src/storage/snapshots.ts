import type { Epoch, Offset } from '#base/units.ts'
import type { Disk, File } from '#world/world.ts'
import { isMissing, withFile } from './files.ts'

/** A snapshot of the metadata log: all that lies below `endOffset`, whose last record has the epoch (KIP-630). */
export interface SnapshotId {
  readonly endOffset: Offset
  readonly epoch: Epoch
}

const SUFFIX = '.checkpoint'

/** `<20 digits offset>-<10 digits epoch>.checkpoint`. */
export function snapshotName({ endOffset, epoch }: SnapshotId): string {
  return `${String(endOffset).padStart(20, '0')}-${String(epoch).padStart(10, '0')}${SUFFIX}`
}

function snapshotOfName(name: string): SnapshotId | undefined {
  const match = /^(\d{20})-(\d{10})\.checkpoint$/.exec(name)
  return match === null ? undefined : { endOffset: Number(match[1]), epoch: Number(match[2]) }
}

/** The whole snapshots in a folder, oldest first. What was being written or deleted when the process stopped is removed. */
export async function listSnapshots(disk: Disk, folder: string): Promise<SnapshotId[]> {
  const snapshots: SnapshotId[] = []
  try {
    for (const { name } of await disk.list(folder)) {
      const snapshot = snapshotOfName(name)
      if (snapshot !== undefined) snapshots.push(snapshot)
      else if (/\.checkpoint\.(?:part|deleted)$/.test(name)) await disk.remove(`${folder}/${name}`)
    }
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  return snapshots.toSorted((a, b) => a.endOffset - b.endOffset || a.epoch - b.epoch)
}

/** Writes `.part`, syncs and renames: it is there whole or not at all. Replaces one of the same name. */
export async function writeSnapshot(
  disk: Disk,
  folder: string,
  id: SnapshotId,
  parts: readonly Uint8Array[],
): Promise<void> {
  const part = await SnapshotPart.open(disk, folder, id)
  await part.append(parts)
  await part.freeze()
}

export function readSnapshot(disk: Disk, folder: string, id: SnapshotId): Promise<Uint8Array | undefined> {
  return disk.readFile(`${folder}/${snapshotName(id)}`)
}

/** For followers, who ask for it piece by piece; the caller closes the file. Rejects with ENOENT when it is gone. */
export function openSnapshot(disk: Disk, folder: string, id: SnapshotId): Promise<File> {
  return disk.open(`${folder}/${snapshotName(id)}`, { create: false, write: false })
}

export async function removeSnapshot(disk: Disk, folder: string, id: SnapshotId): Promise<void> {
  await disk.remove(`${folder}/${snapshotName(id)}`)
}

/** A snapshot that comes piece by piece, as a follower fetches it. */
export class SnapshotPart {
  readonly #disk: Disk
  readonly #folder: string
  readonly #path: string
  readonly #file: File
  size = 0

  private constructor(disk: Disk, folder: string, path: string, file: File) {
    this.#disk = disk
    this.#folder = folder
    this.#path = path
    this.#file = file
  }

  static async open(disk: Disk, folder: string, id: SnapshotId): Promise<SnapshotPart> {
    const path = `${folder}/${snapshotName(id)}`
    await disk.makeFolder(folder)
    const file = await disk.open(`${path}.part`, { create: true, write: true })
    await file.truncate(0)
    return new SnapshotPart(disk, folder, path, file)
  }

  async append(parts: readonly Uint8Array[]): Promise<void> {
    if (parts.length === 0) return
    await this.#file.write(parts, this.size)
    for (const { length } of parts) this.size += length
  }

  /** It becomes a snapshot. */
  async freeze(): Promise<void> {
    await this.#file.sync()
    await this.#file.close()
    await this.#disk.rename(`${this.#path}.part`, this.#path)
    await this.#disk.syncFolder(this.#folder)
  }

  /** It is not wanted any more. */
  async drop(): Promise<void> {
    await this.#file.close()
    await this.#disk.remove(`${this.#path}.part`)
  }
}

/** In bytes. Rejects with ENOENT when it is gone. */
export function snapshotSize(disk: Disk, folder: string, id: SnapshotId): Promise<number> {
  return withFile(disk, `${folder}/${snapshotName(id)}`, { create: false, write: false }, file => file.size())
}
