import type { Offset } from '#base/units.ts'
import type { Disk } from '#world/world.ts'
import { readText, replaceFile } from './files.ts'

export const RECOVERY_POINT_CHECKPOINT = 'recovery-point-offset-checkpoint'
export const LOG_START_CHECKPOINT = 'log-start-offset-checkpoint'
export const HIGH_WATERMARK_CHECKPOINT = 'replication-offset-checkpoint'

/**
 * One offset per partition of a log folder, as Kafka keeps them: version 0, number of entries, `topic partition offset`
 * lines. Keys are `<topic>-<partition>`.
 */
export class OffsetCheckpoint {
  readonly #disk: Disk
  readonly #folder: string
  readonly #name: string
  /** What the file holds; undefined where a write has failed, and it may be either. */
  #written: string | undefined = ''
  /** The same, read when it is asked for. */
  #said: ReadonlyMap<string, Offset> | undefined
  #turn: Promise<unknown> = Promise.resolve()
  /** Has not begun yet. */
  #next: Promise<void> | undefined

  constructor(disk: Disk, folder: string, name: string) {
    this.#disk = disk
    this.#folder = folder
    this.#name = name
  }

  /** Lines that make no sense are left out: without an offset a log is only checked from its beginning. */
  async read(): Promise<Map<string, Offset>> {
    this.#written = (await readText(this.#disk, `${this.#folder}/${this.#name}`)) ?? ''
    return decode(this.#written)
  }

  /**
   * Resolves when the file on the disk says no more of a key than `offset`, undefined being nothing at all. What is written
   * for it must not say more by then.
   */
  async lower(key: string, offset: Offset | undefined, offsets: () => ReadonlyMap<string, Offset>): Promise<void> {
    // One that is under way may have asked before.
    await this.#turn
    if (this.#written !== undefined) {
      this.#said ??= decode(this.#written)
      if ((this.#said.get(key) ?? -1) <= (offset ?? -1)) return
    }
    await this.write(offsets)
  }

  /**
   * Asks for the offsets when its turn comes, so that of two writes the later one has the newer offsets. All who come while
   * one is under way share the next.
   */
  write(offsets: () => ReadonlyMap<string, Offset>): Promise<void> {
    if (this.#next !== undefined) return this.#next
    const run = this.#turn.then(async () => {
      this.#next = undefined
      const entries = offsets()
      let text = `0\n${entries.size}\n`
      for (const [key, offset] of entries) {
        const dash = key.lastIndexOf('-')
        text += `${key.slice(0, dash)} ${key.slice(dash + 1)} ${offset}\n`
      }
      if (text === this.#written) return
      this.#written = undefined
      this.#said = undefined
      await replaceFile(this.#disk, this.#folder, this.#name, text)
      this.#written = text
    })
    this.#next = run
    this.#turn = run.catch(() => undefined)
    return run
  }
}

function decode(text: string): Map<string, Offset> {
  const offsets = new Map<string, Offset>()
  const [version, , ...lines] = text.split('\n')
  if (version?.trim() !== '0') return offsets
  for (const line of lines) {
    const match = /^(\S+) (\d+) (\d+)\s*$/.exec(line)
    if (match === null) continue
    const offset = Number(match[3])
    if (Number.isSafeInteger(offset)) offsets.set(`${match[1]}-${match[2]}`, offset)
  }
  return offsets
}
