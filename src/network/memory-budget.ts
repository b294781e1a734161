import { MiB, type Millis } from '#base/units.ts'
import type { Clock } from '#world/world.ts'

/** Where `queued.max.request.bytes` is -1. */
export const BUDGET_BYTES_DEFAULT = 512 * MiB
/** Readers that go on in one turn, so that what they bring is counted before more of them do. */
const RESUMED_AT_ONCE = 8
/** A client that does nothing for so long while others wait for the memory it takes up loses its connection. */
const STALLED_MS: Millis = 10_000

/** Somebody whose bytes are counted: a connection. */
export interface Reader {
  /** Whether a frame has begun to arrive and not ended. */
  readonly partial: boolean
  /** It may ask `mustWait` again. */
  goOn(): void
  /** Bytes that wait for its client to read them; 0 where they take up no memory. */
  readonly unread: number
  /** When bytes last came from its client. */
  readonly lastActive: Millis
  /** Its client lets the others wait; `what` it does, for the log. */
  closeStalled(what: string): void
}

/**
 * The memory that the connections of a node may take up together: requests from their first byte on until nobody uses
 * them, and answers that are not read. When it is used up, all reading pauses.
 *
 * Requests that are half there would then hold the memory for ever, so one of them at a time, who waits the longest first,
 * is read to its end, unless there is enough that is whole or answered, a quarter of the limit, whose end can be waited for.
 * All else goes on in the order in which it had to wait. The most that is ever used is the limit and one read of each
 * connection, and by those who are read to their end a quarter of the limit and one frame.
 */
export class MemoryBudget {
  readonly #bytesMax: number
  readonly #clock: Clock
  #bytes = 0
  /** Those of them that belong to requests which are not there yet as a whole. */
  #arrivingBytes = 0
  readonly #readers = new Set<Reader>()
  readonly #waiting = new Set<Reader>()
  #finishing: Reader | undefined
  #finishingSince: Millis = 0
  #resumesSoon = false
  #watched = false

  /** `bytesMax` as `queued.max.request.bytes` has it: what is not positive stands for the default. */
  constructor(bytesMax: number, clock: Clock) {
    this.#bytesMax = bytesMax > 0 ? bytesMax : BUDGET_BYTES_DEFAULT
    this.#clock = clock
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Bytes of a request; they are taken away by `remove` after `whole`. */
  arrived(bytes: number): void {
    this.#bytes += bytes
    this.#arrivingBytes += bytes
  }

  /** So many bytes that arrived are a whole request, or will never be. If the reader was to finish one, it is another's turn. */
  whole(reader: Reader, bytes: number): void {
    this.#arrivingBytes -= bytes
    if (reader === this.#finishing) this.leave(reader)
  }

  add(bytes: number): void {
    this.#bytes += bytes
  }

  remove(bytes: number): void {
    this.#bytes -= bytes
    if (this.#waiting.size > 0) this.#look()
  }

  join(reader: Reader): void {
    this.#readers.add(reader)
  }

  /** The reader is gone; what it counted it takes away itself. */
  part(reader: Reader): void {
    this.#readers.delete(reader)
    this.leave(reader)
  }

  /** Whether the reader must not read now; then it is told by `goOn` when it may. */
  mustWait(reader: Reader): boolean {
    if (this.#bytes < this.#bytesMax) {
      if (this.#waiting.size > 0) this.#waiting.delete(reader)
      return false
    }
    if (reader === this.#finishing) return false
    this.#waiting.add(reader)
    this.#watch()
    this.#look()
    return reader !== this.#finishing
  }

  /** The reader waits for something else. */
  leave(reader: Reader): void {
    this.#waiting.delete(reader)
    if (reader !== this.#finishing) return
    this.#finishing = undefined
    this.#look()
  }

  #look(): void {
    if (this.#bytes < this.#bytesMax) this.#resumeSoon()
    else if (this.#finishing === undefined && this.#bytes - this.#arrivingBytes < this.#bytesMax / 4) this.#finishOne()
  }

  #finishOne(): void {
    for (const reader of this.#waiting) {
      if (!reader.partial) continue
      this.#waiting.delete(reader)
      this.#finishing = reader
      this.#finishingSince = this.#clock.monotonic()
      reader.goOn()
      return
    }
  }

  #resumeSoon(): void {
    if (this.#resumesSoon || this.#waiting.size === 0) return
    this.#resumesSoon = true
    this.#clock.soon(() => {
      this.#resumesSoon = false
      let resumed = 0
      for (const reader of this.#waiting) {
        if (this.#bytes >= this.#bytesMax || resumed++ === RESUMED_AT_ONCE) break
        this.#waiting.delete(reader)
        reader.goOn()
      }
      this.#look()
    })
  }

  /** While somebody waits, looks for those whose clients let him: who do not read, or, being the one, do not send. */
  #watch(): void {
    if (this.#watched) return
    this.#watched = true
    const unread = new Map<Reader, number>()
    for (const reader of this.#readers) if (reader.unread > 0) unread.set(reader, reader.unread)
    this.#clock.after(STALLED_MS, () => {
      this.#watched = false
      if (this.#waiting.size === 0 || this.#bytes < this.#bytesMax) return
      for (const [reader, before] of unread) {
        if (this.#readers.has(reader) && reader.unread >= before) reader.closeStalled('reads no answers')
      }
      const finishing = this.#finishing
      const silentSince = this.#clock.monotonic() - STALLED_MS
      if (finishing !== undefined && Math.max(finishing.lastActive, this.#finishingSince) <= silentSince) {
        finishing.closeStalled('sends no more of its request')
      }
      this.#watch()
    })
  }
}
