import type { SeededRandom } from '#base/random.ts'

/** What a disk writes whole or not at all. */
export const SECTOR_BYTES = 512

/** A change that is seen by every reader but is not durable yet. */
type Change =
  | { readonly kind: 'write'; readonly position: number; readonly bytes: Uint8Array; lost: boolean }
  | { readonly kind: 'truncate'; readonly size: number; lost: boolean }

/** Bytes that grow, with zeros where nothing was written. */
export class Content {
  #bytes = new Uint8Array(0)
  size = 0

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.size)
  }

  write(bytes: Uint8Array, position: number): void {
    this.#reach(position + bytes.length)
    this.#bytes.set(bytes, position)
    this.size = Math.max(this.size, position + bytes.length)
  }

  truncate(size: number): void {
    if (size < this.size) this.#bytes.fill(0, size, this.size)
    else this.#reach(size)
    this.size = size
  }

  copy(): Content {
    const copy = new Content()
    copy.write(this.bytes, 0)
    return copy
  }

  #reach(size: number): void {
    if (size <= this.#bytes.length) return
    const grown = new Uint8Array(Math.max(size, 2 * this.#bytes.length, SECTOR_BYTES))
    grown.set(this.bytes)
    this.#bytes = grown
  }
}

/** A file as the disk has it: what readers see, what is durable, and the changes between the two in order. */
export class Inode {
  readonly id: number
  content = new Content()
  #durable = new Content()
  #changes: Change[] = []
  /** A failed sync has lost something, and a later one that succeeded did not bring it back. */
  #lost = false
  /** How many changes are durable or lost: the number of the first one in `#changes`. */
  #settled = 0
  /** Open files that keep it, though it has no name any more. */
  opened = 0

  constructor(id: number) {
    this.id = id
  }

  /** Counts all changes that were ever made. */
  get changeCount(): number {
    return this.#settled + this.#changes.length
  }

  write(bytes: Uint8Array, position: number): void {
    this.content.write(bytes, position)
    this.#changes.push({ kind: 'write', position, bytes: bytes.slice(), lost: false })
  }

  truncate(size: number): void {
    this.content.truncate(size)
    this.#changes.push({ kind: 'truncate', size, lost: false })
  }

  /** Makes durable what had been changed when `changeCount` was `count`, but for what a failed sync has lost. */
  sync(count: number): void {
    const changes = this.#changes.splice(0, Math.max(0, count - this.#settled))
    this.#settled += changes.length
    for (const change of changes) {
      if (change.lost) this.#lost = true
      else apply(this.#durable, change)
    }
  }

  /**
   * A sync that failed: the system takes what it could not write for written. Readers still see it, no later sync writes
   * it, a power cut shows the truth.
   */
  failSync(random: SeededRandom): void {
    for (const change of this.#changes) if (random.chance(0.5)) change.lost = true
  }

  /**
   * The process died. The next one finds readable what a sync failed to write for the one before and cannot know that: no
   * log survives that by itself, so it is not asked for, and the disk has written it after all.
   */
  forgetFailedSyncs(): void {
    for (const change of this.#changes) change.lost = false
    if (!this.#lost) return
    this.#lost = false
    this.sync(this.changeCount)
    this.#durable = this.content.copy()
  }

  /** What is found after the power was cut: the durable bytes and, as chance has it, some of what came after. */
  powerCut(random: SeededRandom): void {
    const changes = this.#changes.filter(change => !change.lost)
    const kept = this.#durable
    switch (random.below(4)) {
      case 0:
        break
      case 1:
        for (const change of changes) apply(kept, change)
        break
      case 2: {
        // In order up to one that is torn between two sectors.
        const whole = random.below(changes.length + 1)
        for (const change of changes.slice(0, whole)) apply(kept, change)
        const torn = changes[whole]
        if (torn?.kind === 'write') {
          const sectors = sectorsOf(torn.position, torn.bytes)
          for (const sector of sectors.slice(0, random.below(sectors.length + 1))) kept.write(...sector)
        }
        break
      }
      default:
        // Any sector or none, with the size of all: what did not arrive is what was there before, or zeros.
        for (const change of changes) {
          if (change.kind === 'truncate') {
            kept.truncate(change.size)
            continue
          }
          const end = change.position + change.bytes.length
          if (kept.size < end) kept.truncate(end)
          for (const sector of sectorsOf(change.position, change.bytes)) if (random.chance(0.5)) kept.write(...sector)
        }
    }
    this.#settled += this.#changes.length
    this.#changes = []
    this.#lost = false
    this.#durable = kept
    this.content = kept.copy()
    this.opened = 0
  }
}

function apply(content: Content, change: Change): void {
  if (change.kind === 'truncate') content.truncate(change.size)
  else content.write(change.bytes, change.position)
}

/** A write cut at the disk's sector boundaries. */
function sectorsOf(position: number, bytes: Uint8Array): [bytes: Uint8Array, position: number][] {
  const sectors: [Uint8Array, number][] = []
  for (let at = 0; at < bytes.length; ) {
    const size = Math.min(bytes.length - at, SECTOR_BYTES - ((position + at) % SECTOR_BYTES))
    sectors.push([bytes.subarray(at, at + size), position + at])
    at += size
  }
  return sectors
}
