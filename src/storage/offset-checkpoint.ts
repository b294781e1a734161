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
  #written = ''
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
    const offsets = new Map<string, Offset>()
    const text = await readText(this.#disk, `${this.#folder}/${this.#name}`)
    if (text === undefined) return offsets
    this.#written = text
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
      await replaceFile(this.#disk, this.#folder, this.#name, text)
      this.#written = text
    })
    this.#next = run
    this.#turn = run.catch(() => undefined)
    return run
  }
}
