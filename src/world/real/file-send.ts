import fs from 'node:fs'
import { KiB, MiB } from '#base/units.ts'
import { WorldError } from '../world.ts'
import type { RealFile } from './file.ts'
import { findKernel, type Kernel } from './kernel.ts'

/** What one turn of the loop sends at most, so that one reader does not keep the others waiting. */
const TURN_BYTES_MAX = MiB
/** What is read and written the plain way when the socket is full: writing it tells us when there is room again. */
const PROBE_BYTES_MAX = 16 * KiB
/** The same where there is no sendfile at all. */
const CHUNK_BYTES_MAX = 256 * KiB

export interface Outcome {
  /** Bytes of the range that are dealt with now. */
  readonly sent: number
  /** The bytes themselves, when they are to be written the plain way. */
  readonly chunk?: Uint8Array
  readonly error?: WorldError
}

/**
 * One range of a file on its way to a socket. What is in memory goes by sendfile on the loop, what must come from the
 * disk by sendfile on the thread pool, so a slow disk stops nobody else. A full socket cannot be waited for from here:
 * a small piece written through Node's own socket can, and while it waits nothing is burnt.
 */
export class FileSend {
  readonly #file: RealFile
  #position: number
  left: number
  /** Something is under way and `then` will be called. */
  busy = false
  #full = false
  #dropped = false
  #released = false

  constructor(file: RealFile, position: number, size: number) {
    this.#file = file
    this.#position = position
    this.left = size
    file.hold()
  }

  /**
   * Sends what can be sent now. `wait`: `then` is called later with what became of it; `done`: all of it has left.
   * Only when nothing else is under way on the socket.
   */
  step(socket: number, then: (outcome: Outcome) => void): 'done' | 'wait' {
    const kernel = socket < 0 ? undefined : findKernel()
    if (kernel === undefined) return this.#read(CHUNK_BYTES_MAX, then)
    if (this.#full) {
      this.#full = false
      return this.#read(PROBE_BYTES_MAX, then)
    }
    const size = Math.min(this.left, TURN_BYTES_MAX)
    const last = this.#position + size - 1
    if (!kernel.resident(this.#file.descriptor, this.#position) || !kernel.resident(this.#file.descriptor, last)) {
      return this.#sendInPool(kernel, socket, size, then)
    }
    const sent = kernel.sendFile(socket, this.#file.descriptor, this.#position, size)
    // A full socket, a shorter file than promised, a broken socket: the plain way says which.
    if (sent <= 0) return this.#read(PROBE_BYTES_MAX, then)
    this.#advance(sent)
    if (this.left === 0) {
      this.drop()
      return 'done'
    }
    if (sent < size) return this.#read(PROBE_BYTES_MAX, then)
    this.#soon(then)
    return 'wait'
  }

  /** Sends no more, and lets go of the file once nothing reads from it. */
  drop(): void {
    this.#dropped = true
    if (this.busy || this.#released) return
    this.#released = true
    this.#file.release()
  }

  #advance(count: number): void {
    this.#position += count
    this.left -= count
  }

  #soon(then: (outcome: Outcome) => void): void {
    this.busy = true
    setImmediate(() => this.#finish({ sent: 0 }, then))
  }

  #finish(outcome: Outcome, then: (outcome: Outcome) => void): void {
    this.busy = false
    this.#advance(outcome.sent)
    if (this.left === 0 || outcome.error !== undefined) this.drop()
    else if (this.#dropped) this.drop()
    then(outcome)
  }

  #sendInPool(kernel: Kernel, socket: number, size: number, then: (outcome: Outcome) => void): 'wait' {
    // Node may close the socket meanwhile and its number be given to another: the thread has its own.
    const own = kernel.duplicate(socket)
    if (own < 0) return this.#read(CHUNK_BYTES_MAX, then)
    this.busy = true
    kernel.sendFileInPool(own, this.#file.descriptor, this.#position, size).then(sent => {
      fs.close(own, () => {})
      this.#full = sent < size
      this.#finish({ sent: Math.max(sent, 0) }, then)
    })
    return 'wait'
  }

  #read(limit: number, then: (outcome: Outcome) => void): 'wait' {
    this.busy = true
    const size = Math.min(this.left, limit)
    const chunk = Buffer.allocUnsafe(size)
    const { descriptor, path } = this.#file
    fs.read(descriptor, chunk, 0, size, this.#position, (error, count) => {
      if (error || count === 0) {
        const code = error?.code ?? 'EIO'
        const why = error?.message ?? 'the file is shorter than what was to be sent'
        this.#finish({ sent: 0, error: new WorldError(code, `send ${path} from ${this.#position}: ${why}`) }, then)
      } else {
        this.#finish({ sent: count, chunk: count === size ? chunk : chunk.subarray(0, count) }, then)
      }
    })
    return 'wait'
  }
}
