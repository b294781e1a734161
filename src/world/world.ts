import type { Millis } from '#base/units.ts'

/**
 * The doors to everything that is not ours to decide: time, chance, network, disk. `real/` opens them onto Node and the
 * operating system, `fake/` onto a simulator in which one seed decides all of it. Nothing else in the product reads a
 * clock, draws a random number, opens a socket or a file.
 */
export interface World {
  readonly clock: Clock
  readonly random: Chance
  readonly network: Network
  readonly disk: Disk
  readonly log: Logger
}

export interface Clock {
  /** Wall time in whole milliseconds since 1970. May jump; for what is shown and stored. */
  now(): Millis
  /** Milliseconds on a clock that never goes back, from any start. For spans and deadlines. */
  monotonic(): Millis
  /** Runs once, after `delay`. One that is late runs as soon as it can. */
  after(delay: Millis, run: () => void): Timer
  /** Runs once, when the input that lies ready now was handled: what came in together can be done together. */
  soon(run: () => void): void
}

export interface Timer {
  cancel(): void
}

export interface Chance {
  /** A fraction in [0, 1). */
  fraction(): number
  /** Fills with random bytes, unguessable in the real world, and returns what it was given. */
  fill(into: Uint8Array): Uint8Array
}

export interface Address {
  readonly host: string
  readonly port: number
}

export interface Network {
  /** Listens on a host ('' is every interface) and port (0 is any free one). Rejects with a {@link WorldError}. */
  listen(address: Address, accept: (socket: Socket) => void): Promise<Listener>
  /** Rejects with a {@link WorldError}: ECONNREFUSED, ETIMEDOUT, ENOTFOUND and the like. */
  connect(address: Address, timeoutMs: Millis): Promise<Socket>
}

export interface Listener {
  readonly address: Address
  /** Accepts no more; sockets that are open stay. */
  close(): Promise<void>
}

/** One end of a connection: bytes in order, both ways. */
export interface Socket {
  /** The address that the other side dialled, as seen here. */
  readonly local: Address
  readonly remote: Address
  /** Starts reading. Called once, in the turn in which the socket was received. */
  attach(sink: Sink): void
  /** Queues bytes. They must not be changed until they have left. Never throws; a broken socket ends in `Sink.closed`. */
  write(parts: readonly Uint8Array[]): void
  /** Queues a range of a file behind what was queued before, without reading it into memory where the world can. */
  sendFile(file: File, position: number, size: number): void
  /** What is queued here and not yet taken by the system, in bytes. `Sink.drained` tells when it has come to 0. */
  readonly queuedBytes: number
  /** Stops reading, for back-pressure. Bytes that are under way already may still arrive. */
  pause(): void
  resume(): void
  /** Sends what is queued, then closes. */
  end(): void
  /** Closes now; what is queued is dropped. */
  destroy(): void
}

/** Who takes the bytes of a socket. The buffers are the sink's, so a large frame is read straight to where it stays. */
export interface Sink {
  /** Where the next bytes go; at least one byte. Asked again after every `received`. */
  space(): Uint8Array
  /** The first `count` bytes of the last `space()` were filled. */
  received(count: number): void
  /** Everything that was queued has been taken by the system. */
  drained(): void
  /** Nothing more comes or goes; called exactly once, also after `end` and `destroy`. */
  closed(error: WorldError | undefined): void
}

export interface Disk {
  /** Opens for reading and writing. `create` makes the file if it is missing; without it a missing file is ENOENT. */
  open(path: string, how: { readonly create: boolean; readonly write: boolean }): Promise<File>
  /** Names, without a path, in no order. ENOENT if there is no such folder. */
  list(folder: string): Promise<readonly Entry[]>
  /** With all that is above it; one that is there already is fine. */
  makeFolder(folder: string): Promise<void>
  /** Atomic; replaces a file that has the new name. Durable only after `syncFolder` of the folder. */
  rename(from: string, to: string): Promise<void>
  /** Removes a file, or a folder with all that is in it; one that is missing is fine. */
  remove(path: string): Promise<void>
  /** The whole content of a small file, or undefined if there is none. */
  readFile(path: string): Promise<Uint8Array | undefined>
  /** Makes names durable: what was created, renamed or removed in the folder. */
  syncFolder(folder: string): Promise<void>
  /**
   * Makes all of these durable at once, as if each had been synced: true. False where the world has no cheaper way than
   * one by one, or it failed; then nothing is known of any of them.
   */
  syncAll(files: readonly File[], folders: readonly string[]): Promise<boolean>
  /** Bytes free and in all on the file system that holds the folder. */
  space(folder: string): Promise<{ readonly free: number; readonly total: number }>
  /** Takes a lock that ends with the process. Rejects with EBUSY when another process has it. */
  lock(path: string): Promise<Lock>
  /** The same as long as all that was ever written is there, synced or not: since the machine was started. Undefined: unknown. */
  bootId(): Promise<string | undefined>
}

export interface Entry {
  readonly name: string
  readonly folder: boolean
}

export interface Lock {
  release(): Promise<void>
}

/** Operations on one file may be in any order on the disk unless one was awaited before the other began. */
export interface File {
  size(): Promise<number>
  /** Fills from `position`; returns how many bytes there were, fewer than asked only at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  /** Writes all parts one after another. When it rejects, any prefix may have been written. */
  write(parts: readonly Uint8Array[], position: number): Promise<void>
  /**
   * The same at once, where the system only takes the bytes into its memory. False where it might wait for the disk, or
   * took not all of them: they are to be written with `write`. Throws what `write` rejects with.
   */
  writeNow(parts: readonly Uint8Array[], position: number): boolean
  truncate(size: number): Promise<void>
  /** Data and size are durable when it returns. After a failure nothing written since the last success can be relied on. */
  sync(): Promise<void>
  /** Takes effect when nothing is being sent from it any more. */
  close(): Promise<void>
}

/** What the world does wrong, by the operating system's own name for it. */
export class WorldError extends Error {
  override readonly name = 'WorldError'
  /** ENOSPC, EIO, ENOENT, EACCES, EBUSY, ECONNREFUSED, ECONNRESET, EADDRINUSE, ETIMEDOUT, ... */
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Structured logs. The message says what happened, why, and what to do; fields carry the values. Never secrets. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  /** A logger that adds these fields to every line. */
  child(fields: object): Logger
}
