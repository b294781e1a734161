import type { Epoch, Offset } from '#base/units.ts'
import { areWholeBatches, isWholeSnapshot } from '#core/metadata/whole-snapshot.ts'
import type { SnapshotId } from '#core/raft/log-view.ts'
import { LOG_OVERHEAD, sizeInBytes, wholeBatchSize } from '#records/batch.ts'
import { offsetName } from '#storage/files.ts'
import { type Disk, type File, type Logger, WorldError } from '#world/world.ts'

const SUFFIX = '.checkpoint'
const NAME = /^(\d{20})-(\d{10})\.checkpoint$/
/** The last one, and the one before it for those who are reading it; the log begins where that one ends. */
const KEPT = 2
/** So much of one is in memory while it is checked, unless a batch has more. */
const CHECK_BYTES = 1024 * 1024

export interface SnapshotFile {
  readonly id: SnapshotId
  readonly file: File
  readonly size: number
}

function nameOf({ endOffset, epoch }: SnapshotId): string {
  return `${offsetName(endOffset, '')}-${String(epoch).padStart(10, '0')}${SUFFIX}`
}

/** A snapshot on its way from the leader: a file `.part` that grows until it is whole. */
export class IncomingSnapshot {
  readonly id: SnapshotId
  readonly file: File
  size = 0

  constructor(id: SnapshotId, file: File) {
    this.id = id
    this.file = file
  }

  async append(bytes: Uint8Array): Promise<void> {
    await this.file.write([bytes], this.size)
    this.size += bytes.length
  }
}

/** The snapshots of the metadata log: files `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`, kept open for fetches. */
export class Snapshots {
  readonly #disk: Disk
  readonly #folder: string
  readonly #log: Logger
  /** Oldest first. */
  readonly #files: SnapshotFile[]
  /** What was found to be damaged while it was kept: it stays until another one has its place. */
  readonly #damaged = new Set<SnapshotFile>()

  private constructor(disk: Disk, folder: string, log: Logger, files: SnapshotFile[]) {
    this.#disk = disk
    this.#folder = folder
    this.#log = log
    this.#files = files
  }

  /** Finds what is there; what a crash left half written or half deleted goes. */
  static async open(disk: Disk, folder: string, log: Logger): Promise<Snapshots> {
    const ids: SnapshotId[] = []
    for (const { name } of await disk.list(folder)) {
      if (name.endsWith(`${SUFFIX}.part`) || name.endsWith(`${SUFFIX}.deleted`)) await disk.remove(`${folder}/${name}`)
      const match = NAME.exec(name)
      if (match === null) continue
      ids.push({ endOffset: Number(match[1]) as Offset, epoch: Number(match[2]) as Epoch })
    }
    ids.sort((a, b) => a.endOffset - b.endOffset)
    // Those that could not be deleted in their time: the log before the kept ones may be gone, so they lead nowhere.
    for (const id of ids.splice(0, Math.max(0, ids.length - KEPT))) await disk.remove(`${folder}/${nameOf(id)}`)
    const files: SnapshotFile[] = []
    for (const id of ids) {
      const file = await disk.open(`${folder}/${nameOf(id)}`, { create: false, write: false })
      files.push({ id, file, size: await file.size() })
    }
    return new Snapshots(disk, folder, log, files)
  }

  get earliest(): SnapshotId | undefined {
    return this.#files[0]?.id
  }

  /** Of those that are whole, as far as is known. */
  get latest(): SnapshotId | undefined {
    return (this.#files.findLast(each => !this.#damaged.has(each)) ?? this.#files.at(-1))?.id
  }

  /** Whether the disk still has it as it was written. Once it has not, nobody is given it any more. */
  async isWhole(snapshot: SnapshotFile): Promise<boolean> {
    if (this.#damaged.has(snapshot)) return false
    const isWhole = await this.#check(snapshot).catch((error: unknown) => {
      if (!(error instanceof WorldError)) throw error
      return false
    })
    // One that was deleted meanwhile could not be read to its end.
    if (isWhole || !this.#files.includes(snapshot)) return true
    this.#damaged.add(snapshot)
    return false
  }

  async #check({ file, size }: SnapshotFile): Promise<boolean> {
    let last: Buffer = Buffer.alloc(0)
    let wanted = CHECK_BYTES
    for (let at = 0; at < size; ) {
      const bytes = Buffer.allocUnsafe(Math.min(wanted, size - at))
      if ((await file.read(bytes, at)) !== bytes.length) return false
      let end = 0
      let next = wholeBatchSize(bytes, end, bytes.length)
      for (; next > 0; next = wholeBatchSize(bytes, end, bytes.length)) end += next
      if (end === 0) {
        const first = bytes.length < LOG_OVERHEAD ? 0 : sizeInBytes(bytes, 0)
        if (next < 0 || first <= bytes.length || first > size - at) return false
        wanted = first
        continue
      }
      wanted = CHECK_BYTES
      last = bytes.subarray(0, end)
      if (!areWholeBatches(last)) return false
      at += end
    }
    return isWholeSnapshot(last)
  }

  /** It is damaged: whoever asks is told of the one before it, and of the log behind that. */
  async discard(snapshot: SnapshotFile): Promise<void> {
    const index = this.#files.indexOf(snapshot)
    if (index < 0) return
    this.#files.splice(index, 1)
    try {
      await this.#delete(snapshot)
    } catch (error) {
      // It is found once more at the next start.
      if (!(error instanceof WorldError)) throw error
    }
  }

  newestFirst(): readonly SnapshotFile[] {
    return this.#files.toReversed()
  }

  find({ endOffset, epoch }: SnapshotId): SnapshotFile | undefined {
    return this.#files.find(({ id }) => id.endOffset === endOffset && id.epoch === epoch)
  }

  isDamaged(snapshot: SnapshotFile): boolean {
    return this.#damaged.has(snapshot)
  }

  async read({ file, size }: Pick<SnapshotFile, 'file' | 'size'>): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(size)
    let filled = 0
    while (filled < size) {
      const count = await file.read(bytes.subarray(filled), filled)
      if (count === 0)
        throw new WorldError('EIO', `a snapshot in ${this.#folder} ended after ${filled} of ${size} bytes`)
      filled += count
    }
    return bytes
  }

  /** Begins to take a snapshot that comes in pieces; what was left of one before goes. */
  async incoming(id: SnapshotId): Promise<IncomingSnapshot> {
    const path = `${this.#folder}/${nameOf(id)}.part`
    const file = await this.#disk.open(path, { create: true, write: true })
    await file.truncate(0)
    return new IncomingSnapshot(id, file)
  }

  /** What came is whole: from now on it is a snapshot, durably. Its file stays open. */
  async install({ id, file, size }: IncomingSnapshot): Promise<void> {
    const path = `${this.#folder}/${nameOf(id)}`
    await file.sync()
    await this.#disk.rename(`${path}.part`, path)
    await this.#disk.syncFolder(this.#folder)
    await this.#take({ id, file, size })
  }

  /** Its file lies in its place, perhaps over one that was damaged. */
  async #take(snapshot: SnapshotFile): Promise<void> {
    const known = this.find(snapshot.id)
    if (known === undefined) this.#files.push(snapshot)
    else {
      this.#files.splice(this.#files.indexOf(known), 1, snapshot)
      this.#damaged.delete(known)
      await known.file.close()
    }
  }

  /** Deletes all but one: they lead nowhere, as the log begins there. */
  async keepOnly({ endOffset, epoch }: SnapshotId): Promise<void> {
    const kept = this.#files.filter(({ id }) => id.endOffset === endOffset && id.epoch === epoch)
    // What cannot be deleted now goes at the next start.
    const others = this.#files.filter(each => !kept.includes(each))
    this.#files.splice(0, this.#files.length, ...kept)
    for (const each of others) await this.#delete(each)
  }

  /** Writes one so that it is there whole or not at all. */
  async write(id: SnapshotId, parts: readonly Uint8Array[]): Promise<void> {
    const before = this.find(id)
    if (before !== undefined && !this.#damaged.has(before)) return
    const path = `${this.#folder}/${nameOf(id)}`
    const file = await this.#disk.open(`${path}.part`, { create: true, write: true })
    let size = 0
    try {
      await file.truncate(0)
      await file.write(parts, 0)
      await file.sync()
      for (const part of parts) size += part.length
      await this.#disk.rename(`${path}.part`, path)
      await this.#disk.syncFolder(this.#folder)
    } catch (error) {
      await this.#forgo(path, file)
      throw error
    }
    await this.#take({ id, file, size })
  }

  /** It will not be whole. */
  forgo({ id, file }: IncomingSnapshot): Promise<void> {
    return this.#forgo(`${this.#folder}/${nameOf(id)}`, file)
  }

  /** Where the disk is full, the log beside it needs the room. */
  async #forgo(path: string, file: File): Promise<void> {
    try {
      await file.close()
      await this.#disk.remove(`${path}.part`)
    } catch (error) {
      // It goes at the next start.
      if (!(error instanceof WorldError)) throw error
    }
  }

  /** Deletes all but the last ones, and what is damaged. */
  async prune(): Promise<void> {
    if (this.#damaged.size < this.#files.length) for (const each of [...this.#damaged]) await this.discard(each)
    while (this.#files.length > KEPT) await this.#delete(this.#files.shift() as SnapshotFile)
  }

  async #delete(snapshot: SnapshotFile): Promise<void> {
    const { id, file } = snapshot
    this.#damaged.delete(snapshot)
    await file.close()
    await this.#disk.remove(`${this.#folder}/${nameOf(id)}`)
    this.#log.debug({ folder: this.#folder, snapshot: nameOf(id) }, 'deleted an old snapshot')
  }

  async close(): Promise<void> {
    for (const { file } of this.#files.splice(0)) await file.close()
  }
}
