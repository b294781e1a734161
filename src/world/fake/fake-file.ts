import { sizeOf } from '#base/bytes.ts'
import { type File, WorldError } from '../world.ts'
import type { DiskFaults, FakeDisk } from './fake-disk.ts'
import type { Inode } from './inode.ts'

/** An open file of a {@link FakeDisk}. */
export class FakeFile implements File {
  readonly #disk: FakeDisk
  readonly #inode: Inode
  readonly #path: string
  readonly #writable: boolean
  readonly #life: number
  #open = true
  #holds = 0
  #closing: (() => void) | undefined

  constructor(disk: FakeDisk, inode: Inode, path: string, writable: boolean) {
    this.#disk = disk
    this.#inode = inode
    this.#path = path
    this.#writable = writable
    this.#life = disk.life
  }

  size(): Promise<number> {
    return this.#perform('size', 0, 0, () => this.#inode.content.size)
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return this.#perform('read', into.length, this.#faults.readFails, () => {
      const { bytes } = this.#inode.content
      const end = Math.min(bytes.length, position + into.length)
      if (end <= position) return 0
      into.set(bytes.subarray(position, end))
      return end - position
    })
  }

  write(parts: readonly Uint8Array[], position: number): Promise<void> {
    const size = sizeOf(parts)
    if (size === 0) return Promise.resolve()
    return this.#perform(
      'write',
      size,
      this.#faults.writeFails,
      () => this.#put(parts, size, position),
      () => this.#putSome(parts, this.#disk.random.below(size + 1), position),
      part => this.#putSome(parts, Math.min(Math.floor(part * size), size - this.#lacking(size, position)), position),
    )
  }

  writeNow(parts: readonly Uint8Array[], position: number): boolean {
    if (!this.#usable || !this.#open) return false
    const size = sizeOf(parts)
    return this.#disk.performNow(
      { event: 'writeNow', path: this.#path, size },
      () => this.#put(parts, size, position),
      () => this.#putSome(parts, this.#disk.random.below(size + 1), position),
    )
  }

  #put(parts: readonly Uint8Array[], size: number, position: number): void {
    if (!this.#writable) throw new WorldError('EBADF', `write ${this.#path}: not opened for writing`)
    const lacking = this.#lacking(size, position)
    this.#putSome(parts, size - lacking, position)
    if (lacking > 0)
      throw new WorldError('ENOSPC', `write ${size} bytes at ${position} of ${this.#path}: no space left`)
  }

  #putSome(parts: readonly Uint8Array[], limit: number, position: number): void {
    if (!this.#usable || limit <= 0) return
    // Together, so that a tear may fall on any sector of it.
    const bytes = Buffer.concat(parts)
    this.#inode.write(bytes.subarray(0, Math.min(limit, bytes.length)), position)
  }

  /** Bytes of a write for which there is no room. */
  #lacking(size: number, position: number): number {
    const grows = Math.max(0, position + size - this.#inode.content.size)
    return grows > 0 ? Math.max(0, grows - this.#disk.roomAt(this.#path)) : 0
  }

  truncate(size: number): Promise<void> {
    const cut = (): void => this.#inode.truncate(size)
    return this.#perform('truncate', size, this.#faults.writeFails, cut, undefined, part => {
      if (part === 1) cut()
    })
  }

  sync(): Promise<void> {
    // What returned before the sync began; the rest may or may not be part of it.
    const changes = this.#inode.changeCount
    return this.#perform(
      'sync',
      changes,
      this.#faults.syncFails,
      () => {
        if (!this.#disk.faults.syncLies) this.#inode.sync(changes)
      },
      () => this.#inode.failSync(this.#disk.random),
    )
  }

  /** Makes durable what was changed before the call. */
  whatASyncWrites(): () => void {
    const changes = this.#inode.changeCount
    return () => this.#inode.sync(changes)
  }

  close(): Promise<void> {
    if (!this.#open) return Promise.resolve()
    this.#open = false
    return new Promise(resolve => {
      const close = (): void => {
        this.#inode.opened--
        resolve()
      }
      if (this.#holds === 0) close()
      else this.#closing = close
    })
  }

  hold(): void {
    this.#holds++
  }

  release(): void {
    if (--this.#holds === 0) this.#closing?.()
  }

  get #faults(): DiskFaults {
    return this.#disk.faultsOf(this.#path)
  }

  get #usable(): boolean {
    return this.#life === this.#disk.life
  }

  #perform<T>(
    event: string,
    size: number,
    fails: number,
    run: () => T,
    failed?: () => void,
    interrupted?: (part: number) => void,
  ): Promise<T> {
    if (!this.#usable) return new Promise(() => {})
    if (!this.#open && this.#holds === 0) {
      return Promise.reject(new WorldError('EBADF', `${event} ${this.#path}: the file is closed`))
    }
    const operation = { event, path: this.#path, size }
    return this.#disk.perform(interrupted === undefined ? operation : { ...operation, interrupted }, fails, run, failed)
  }
}
