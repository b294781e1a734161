import fs from 'node:fs'
import { partsFrom, sizeOf } from '#base/bytes.ts'
import { type File, WorldError } from '../world.ts'
import type { DiskPace } from './disk-pace.ts'
import { worldError } from './errors.ts'
import { findKernel, READ_BYTES_MAX } from './kernel.ts'

/** A descriptor whose reads run on the thread pool, and so do writes, unless they are quick. */
export class RealFile implements File {
  readonly descriptor: number
  readonly path: string
  /** That of its disk, where it is open for writing. */
  readonly #pace: DiskPace | undefined
  /** Who reads from the descriptor or syncs it now, and must not find another file there. */
  #readers = 0
  #closing: (() => void) | undefined
  #closed = false

  constructor(descriptor: number, path: string, pace?: DiskPace) {
    this.descriptor = descriptor
    this.path = path
    this.#pace = pace
  }

  size(): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.fstat(this.descriptor, (error, stat) => {
        if (error) reject(worldError(error, `size of ${this.path}`))
        else resolve(stat.size)
      })
    })
  }

  get isClosed(): boolean {
    return this.#closed
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new WorldError('EBADF', `read at ${position} of ${this.path}: it is closed`))
        return
      }
      let filled = 0
      const next = (): void => {
        fs.read(this.descriptor, into, filled, into.length - filled, position + filled, (error, count) => {
          filled += count
          if (!error && count > 0 && filled < into.length) {
            next()
            return
          }
          this.release()
          if (error) reject(worldError(error, `read ${into.length} bytes at ${position} of ${this.path}`))
          else resolve(filled)
        })
      }
      this.hold()
      next()
    })
  }

  /** A copy of few bytes, when they are in memory. */
  readNow(position: number, size: number): Buffer | undefined {
    if (this.#closed || size > READ_BYTES_MAX) return undefined
    return findKernel()?.readNow(this.descriptor, position, size)
  }

  write(parts: readonly Uint8Array[], position: number): Promise<void> {
    const pace = this.#pace
    if (pace === undefined) return this.#write(parts, position)
    const trip = pace.tripBegins(performance.now())
    return this.#write(parts, position).finally(() => pace.tripEnds(trip, performance.now()))
  }

  #write(parts: readonly Uint8Array[], position: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const size = sizeOf(parts)
      const next = (rest: readonly Uint8Array[], at: number, left: number): void => {
        const done = (error: NodeJS.ErrnoException | null, count: number): void => {
          if (error) reject(worldError(error, `write ${size} bytes at ${position} of ${this.path}`))
          else if (count === left) resolve()
          // The system took only a part; nothing at all would go on for ever.
          else if (count === 0) reject(new WorldError('EIO', `write at ${at} of ${this.path}: nothing was taken`))
          else next(partsFrom(rest, count), at + count, left - count)
        }
        const only = rest.length === 1 ? rest[0] : undefined
        if (only === undefined) fs.writev(this.descriptor, rest, at, done)
        else fs.write(this.descriptor, only, 0, only.length, at, done)
      }
      if (size === 0) resolve()
      else next(parts, position, size)
    })
  }

  writeNow(parts: readonly Uint8Array[], position: number): boolean {
    const since = performance.now()
    if (this.#pace === undefined || !this.#pace.isBrisk(since)) return false
    const only = parts.length === 1 ? parts[0] : undefined
    let count: number
    try {
      if (only !== undefined) count = fs.writeSync(this.descriptor, only, 0, only.length, position)
      else count = fs.writevSync(this.descriptor, parts, position)
    } catch (error) {
      throw worldError(error, `write ${sizeOf(parts)} bytes at ${position} of ${this.path}`)
    }
    this.#pace.wroteOnLoop(since, performance.now())
    return count === (only?.length ?? sizeOf(parts))
  }

  truncate(size: number): Promise<void> {
    return new Promise((resolve, reject) => {
      fs.ftruncate(this.descriptor, size, error => {
        if (error) reject(worldError(error, `truncate ${this.path} to ${size} bytes`))
        else resolve()
      })
    })
  }

  sync(): Promise<void> {
    if (this.#closed) return Promise.reject(new WorldError('EBADF', `sync ${this.path}: it is closed`))
    const sync = this.#pace?.syncBegins(performance.now())
    // It may wait long for a thread, and would then speak of whatever has the descriptor by that time.
    this.hold()
    return new Promise((resolve, reject) => {
      fs.fdatasync(this.descriptor, error => {
        this.release()
        if (sync !== undefined) this.#pace?.syncEnds(sync)
        if (error) reject(worldError(error, `sync ${this.path}`))
        else resolve()
      })
    })
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve()
    this.#closed = true
    return new Promise((resolve, reject) => {
      const close = (): void => {
        fs.close(this.descriptor, error => {
          if (error) reject(worldError(error, `close ${this.path}`))
          else resolve()
        })
      }
      if (this.#readers === 0) close()
      else this.#closing = close
    })
  }

  /** Keeps the descriptor open until `release`, though `close` be called. */
  hold(): void {
    this.#readers++
  }

  release(): void {
    if (--this.#readers === 0) this.#closing?.()
  }
}
