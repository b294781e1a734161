import type { Millis } from '#base/units.ts'
import { type File, WorldError } from '#world/world.ts'
import type { SegmentPlace } from './segment.ts'

/** One open file at most, opened when somebody needs it, that may be closed again while nobody does. */
export class SegmentFile {
  readonly #place: SegmentPlace
  readonly #segment: { readonly filePath: string }
  #file: File | undefined
  #isWritable = false
  #opening: Promise<File> | undefined
  #hasLeft = false
  /** It may not be closed behind somebody's back: it is being written. */
  busy = false
  usedAt: Millis = 0

  constructor(place: SegmentPlace, segment: { readonly filePath: string }) {
    this.#place = place
    this.#segment = segment
  }

  /** If it is open. Says that it is in use. */
  get current(): File | undefined {
    if (this.#file !== undefined) this.usedAt = this.#place.cache.now()
    return this.#file
  }

  get writable(): File | undefined {
    return this.#isWritable ? this.current : undefined
  }

  /** For readers; rejects when there is none. */
  open(): Promise<File> {
    return this.#opened(() => this.current, { create: false, write: false })
  }

  /** For the writer, who makes it when there is none. */
  openWritable(): Promise<File> {
    return this.#opened(() => this.writable, { create: true, write: true })
  }

  async #opened(
    there: () => File | undefined,
    how: { readonly create: boolean; readonly write: boolean },
  ): Promise<File> {
    let file = there()
    while (file === undefined && this.#opening !== undefined) {
      await this.#opening.catch(() => undefined)
      file = there()
    }
    if (file !== undefined) return file
    this.#opening = this.#openNow(how)
    try {
      return await this.#opening
    } finally {
      this.#opening = undefined
    }
  }

  async #openNow(how: { readonly create: boolean; readonly write: boolean }): Promise<File> {
    this.#refuseLeft()
    const file = await this.#place.disk.open(this.#segment.filePath, how)
    if (this.#hasLeft) file.close().catch(() => undefined)
    this.#refuseLeft()
    this.retire()
    this.#file = file
    this.#isWritable = how.write
    this.usedAt = this.#place.cache.now()
    this.#place.cache.opened(this)
    return file
  }

  /** Closed later: ranges that were handed out stay readable for their time. */
  retire(): void {
    const file = this.#taken()
    if (file !== undefined) this.#place.cache.retire(file)
  }

  /** Whoever sends from the file now goes on; others open it anew. */
  close(): void {
    this.#taken()
      ?.close()
      .catch(() => undefined)
  }

  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** The log is closed. What has its name from now on may be the file of another, of a topic that was made anew. */
  leave(): void {
    this.#hasLeft = true
    this.close()
  }

  #refuseLeft(): void {
    if (this.#hasLeft) throw new WorldError('ECANCELED', `open ${this.#segment.filePath}: the log was closed meanwhile`)
  }

  #taken(): File | undefined {
    const file = this.#file
    if (file === undefined) return undefined
    this.#file = undefined
    this.#place.cache.closed(this)
    return file
  }
}
