import type { Offset } from '#base/units.ts'
import type { Disk } from '#world/world.ts'
import type { Log } from './log.ts'
import { OffsetCheckpoint } from './offset-checkpoint.ts'

export interface OpenLog {
  readonly log: Log
  /** What the partition's owner says when checkpoints are written. */
  readonly highWatermark: () => Offset
}

/** One offset of every log in a folder: as the log has it where it is open, else as it was read at the start. */
export class LogOffsets {
  readonly #checkpoint: OffsetCheckpoint
  readonly #loaded: Map<string, Offset>
  readonly #open: ReadonlyMap<string, OpenLog>
  readonly #of: (open: OpenLog) => Offset

  private constructor(
    checkpoint: OffsetCheckpoint,
    loaded: Map<string, Offset>,
    open: ReadonlyMap<string, OpenLog>,
    of: (open: OpenLog) => Offset,
  ) {
    this.#checkpoint = checkpoint
    this.#loaded = loaded
    this.#open = open
    this.#of = of
  }

  static async read(
    disk: Disk,
    folder: string,
    name: string,
    open: ReadonlyMap<string, OpenLog>,
    of: (open: OpenLog) => Offset,
  ): Promise<LogOffsets> {
    const checkpoint = new OffsetCheckpoint(disk, folder, name)
    return new LogOffsets(checkpoint, await checkpoint.read(), open, of)
  }

  /** Of a log that is not open. */
  loaded(name: string): Offset {
    return this.#loaded.get(name) ?? 0
  }

  /** A log that is not open yet ends below it. */
  async correct(name: string, offset: Offset): Promise<void> {
    if (this.loaded(name) <= offset) return
    this.#loaded.set(name, offset)
    await this.write()
  }

  /** The log was cut: resolves when the disk says no more of it than there is. */
  async lower(name: string): Promise<void> {
    const open = this.#open.get(name)
    if (open !== undefined) await this.#checkpoint.lower(name, this.#of(open), () => this.#offsets())
  }

  /** One that is made anew had the name of another: resolves when the disk says nothing of that. */
  async clear(name: string): Promise<void> {
    this.forget(name)
    await this.#checkpoint.lower(name, undefined, () => this.#offsets())
  }

  /** The log is open, or gone. */
  forget(name: string): void {
    this.#loaded.delete(name)
  }

  write(): Promise<void> {
    return this.#checkpoint.write(() => this.#offsets())
  }

  #offsets(): ReadonlyMap<string, Offset> {
    const offsets = new Map(this.#loaded)
    for (const [name, open] of this.#open) {
      const offset = this.#of(open)
      // 0 is what a missing line means.
      if (offset > 0) offsets.set(name, offset)
    }
    return offsets
  }
}
