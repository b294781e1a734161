import type { Offset } from '#base/units.ts'
import type { Clock } from '#world/world.ts'
import { Segment, type SegmentPlace } from './segment.ts'
import type { Syncs } from './syncs.ts'

/**
 * The files of a log, of which the last one grows: how another one follows it, how they become durable, and how they are cut
 * from the end. Whoever changes them needs them for himself; a sync may go beside a write, but not beside a cut.
 */
export class Segments {
  readonly #place: SegmentPlace
  readonly #clock: Clock
  /** Oldest first; at least one. */
  readonly list: Segment[]
  #folderUnsynced: boolean
  /** A segment whose file may be there, though making it failed: left behind, its name would lie about the log's end. */
  #unborn: Segment | undefined

  constructor(place: SegmentPlace, clock: Clock, list: Segment[], folderUnsynced: boolean) {
    this.#place = place
    this.#clock = clock
    this.list = list
    this.#folderUnsynced = folderUnsynced
  }

  /** The one that grows. */
  get active(): Segment {
    return this.list.at(-1) as Segment
  }

  bases(): Offset[] {
    return this.list.map(segment => segment.baseOffset)
  }

  /** Another one grows from now on. Returns the one that did, which is full; none where an empty one was replaced. */
  async begin(baseOffset: Offset): Promise<Segment | undefined> {
    const old = this.active
    const segment = new Segment(this.#place, baseOffset, this.#clock.now())
    segment.reset()
    segment.busy = true
    this.#unborn = segment
    const file = await segment.openWritable()
    if ((await file.size()) > 0) await file.truncate(0)
    this.#unborn = undefined
    segment.nameUnsynced = true
    if (old.size === 0) {
      this.list.pop()
      if (old.baseOffset !== baseOffset) await old.removeFiles()
    }
    this.list.push(segment)
    if (old.size === 0) return undefined
    old.seal()
    return old
  }

  /** Takes away the file of one that could not begin. */
  async removeUnborn(): Promise<void> {
    if (this.#unborn === undefined) return
    await this.#unborn.removeFiles()
    await this.#syncFolder()
    this.#unborn = undefined
  }

  /** Whether something lies there that was not synced. */
  get isUnsynced(): boolean {
    return isUnsynced(this.active)
  }

  /** Older ones first: what is durable has no holes. */
  async sync(syncs: Syncs): Promise<void> {
    const { folder } = this.#place
    let first = this.list.length - 1
    while (first > 0 && isUnsynced(this.list[first - 1] as Segment)) first--
    let names = this.#folderUnsynced
    for (const segment of this.list.slice(first)) {
      if (segment.nameUnsynced) names = true
      if (!segment.unsynced) continue
      // Retention may take it away meanwhile, also between its being found here and its file being opened.
      if (!this.list.includes(segment)) continue
      segment.unsynced = false
      try {
        await syncs.file(segment.file ?? (await segment.open()))
      } catch (error) {
        segment.unsynced = true
        if (this.list.includes(segment)) throw error
      }
    }
    if (!names) return
    await syncs.folder(folder)
    for (const segment of this.list.slice(first)) segment.nameUnsynced = false
    if (!this.#folderUnsynced) return
    await syncs.folder(folder.slice(0, Math.max(1, folder.lastIndexOf('/'))))
    this.#folderUnsynced = false
  }

  /** Cuts off the batch that holds `offset` and all after it. Returns where the last batch that stays ends. */
  async cut(offset: Offset): Promise<Offset> {
    const { list } = this
    const count = list.length
    while (list.length > 1 && this.active.baseOffset > offset) {
      await this.active.removeFiles()
      list.pop()
    }
    // A file that comes back in a power cut would lie across what is appended in its place.
    if (list.length < count) await this.#syncFolder()
    const { active } = this
    const walk = active.size > 0 ? await active.seek(offset) : undefined
    const below = walk === undefined ? offset : Math.min(offset, walk.baseOffset)
    return await active.truncate(walk?.position ?? active.size, below)
  }

  /** Throws them all away; an empty one at `offset` takes their place. */
  async restart(offset: Offset): Promise<void> {
    const { list } = this
    // Later it would take the file of the one that begins here, if it has the same name.
    await this.removeUnborn()
    while (list.length > 1) {
      await this.active.removeFiles()
      list.pop()
    }
    await this.active.removeFiles()
    const segment = new Segment(this.#place, offset, this.#clock.now())
    list[0] = segment
    segment.reset()
    segment.busy = true
    // An empty file, because its name is all that says where the log begins.
    await (await segment.openWritable()).truncate(0)
    await segment.writeIndexes()
    await this.#syncFolder()
  }

  #syncFolder(): Promise<void> {
    return this.#place.disk.syncFolder(this.#place.folder)
  }
}

function isUnsynced(segment: Segment): boolean {
  return segment.unsynced || segment.nameUnsynced
}
