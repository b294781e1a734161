import type { Offset } from '#base/units.ts'
import type { Disk } from '#world/world.ts'
import type { ProducerEntry } from './batch-fold.ts'
import { offsetName, overwriteFile } from './files.ts'
import { decodeProducerSnapshot, encodeProducerSnapshot, PRODUCER_SNAPSHOT_SUFFIX } from './producer-snapshot.ts'
import { type Syncs, syncEach } from './syncs.ts'

const NONE: readonly Offset[] = []

/**
 * The `.snapshot` files of one log. A name is the first offset that its content does not cover. Those at the base of a
 * segment stay as long as it does, of the others only the newest.
 */
export class ProducerSnapshots {
  readonly #disk: Disk
  readonly #folder: string
  /** Rising. */
  #offsets: readonly Offset[] = NONE
  /** Of those that could not be written: the file may be there all the same, and whole. */
  readonly #unsure = new Set<Offset>()

  constructor(disk: Disk, folder: string, offsets: readonly Offset[]) {
    this.#disk = disk
    this.#folder = folder
    if (offsets.length > 0) this.#offsets = offsets.toSorted((a, b) => a - b)
  }

  has(offset: Offset): boolean {
    return this.#offsets.includes(offset)
  }

  get newest(): Offset | undefined {
    return this.#offsets.at(-1)
  }

  async write(
    offset: Offset,
    entries: readonly ProducerEntry[],
    segmentBases: readonly Offset[],
    syncs: Syncs = syncEach(this.#disk),
  ): Promise<void> {
    this.#unsure.add(offset)
    await overwriteFile(this.#disk, this.#path(offset), encodeProducerSnapshot(entries), syncs)
    this.#unsure.delete(offset)
    if (!this.#offsets.includes(offset)) this.#offsets = [...this.#offsets, offset].toSorted((a, b) => a - b)
    await this.removeStrays(segmentBases)
  }

  /** The newest that can be read and covers nothing at or after `end`. Torn ones are removed. */
  async load(end: Offset): Promise<{ readonly offset: Offset; readonly entries: ProducerEntry[] } | undefined> {
    for (const offset of this.#offsets.filter(candidate => candidate <= end).toReversed()) {
      const bytes = await this.#disk.readFile(this.#path(offset))
      const entries = bytes === undefined ? undefined : decodeProducerSnapshot(bytes)
      if (entries !== undefined) return { offset, entries }
      await this.#remove([offset])
    }
    return undefined
  }

  removeAbove(end: Offset): Promise<void> {
    return this.#remove([...this.#offsets, ...this.#unsure].filter(offset => offset > end))
  }

  removeBelow(start: Offset): Promise<void> {
    return this.#remove([...this.#offsets, ...this.#unsure].filter(offset => offset < start))
  }

  removeStrays(segmentBases: readonly Offset[]): Promise<void> {
    return this.#remove(this.#offsets.slice(0, -1).filter(offset => !segmentBases.includes(offset)))
  }

  async #remove(offsets: readonly Offset[]): Promise<void> {
    if (offsets.length === 0) return
    this.#offsets = this.#offsets.filter(offset => !offsets.includes(offset))
    for (const offset of offsets) this.#unsure.add(offset)
    for (const offset of new Set(offsets)) {
      await this.#disk.remove(this.#path(offset))
      this.#unsure.delete(offset)
    }
  }

  #path(offset: Offset): string {
    return `${this.#folder}/${offsetName(offset, PRODUCER_SNAPSHOT_SUFFIX)}`
  }
}
