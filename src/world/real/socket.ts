import fs from 'node:fs'
import net from 'node:net'
import { assert } from '#base/assert.ts'
import { partsFrom } from '#base/bytes.ts'
import { KiB } from '#base/units.ts'
import { type Address, type File, type Sink, type Socket, WorldError } from '../world.ts'
import { worldError } from './errors.ts'
import { RealFile } from './file.ts'
import { FileSend } from './file-send.ts'

/** Bytes that leave in order: ready ones, or a range of a file. */
type Queued = readonly Uint8Array[] | FileSend

/** What is read from files at once for a reader that has not taken it; what comes on top stays in the files until it leaves. */
const READ_BYTES_QUEUED_MAX = 64 * KiB
/** So many bytes in several parts are put together before they leave: one part is cheaper to write than several. */
const JOINED_BYTES_MAX = 16 * KiB
/** Linux takes 1024 parts in one writev. */
const PARTS_MAX = 1024
/** The size that makes `drain` come whenever all has left, and not only after a large backlog. */
export const HIGH_WATER_MARK = 1

/** The part of Node's socket that has no public name: the connection itself, which another socket can be built on. */
interface WithHandle {
  _handle: Handle | null
}

interface Handle {
  readonly fd?: number
}

const joined = new Uint8Array(JOINED_BYTES_MAX)

/** An IPv4 address in its own form, also when it came through an IPv6 socket. */
export function plainHost(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address
}

/**
 * A connection. Reads go straight into the sink's buffers: Node can do that only for a socket that was told so when it
 * was made, so the connection is moved out of the socket that accepted or dialled it into one of our own.
 */
export class RealSocket implements Socket {
  readonly local: Address
  readonly remote: Address
  #socket: net.Socket
  #sink: Sink | undefined
  #error: Error | undefined
  /** Whether the connection was moved into a socket of our own, whose handle has a descriptor. */
  #isOwn = false
  #closed = false
  #ending = false
  #paused = false
  /** What was written in this turn. */
  #outgoing: Uint8Array[] = []
  #outgoingBytes = 0
  /** Everything behind a range of a file that is being sent, and that range first. */
  readonly #queue: Queued[] = []
  #queueBytes = 0
  /** Whether the sink waits to be told that all has left. */
  #owesDrained = false

  constructor(socket: net.Socket) {
    this.#socket = socket
    this.local = { host: plainHost(socket.localAddress ?? ''), port: socket.localPort ?? 0 }
    this.remote = { host: plainHost(socket.remoteAddress ?? ''), port: socket.remotePort ?? 0 }
    // Between being made and being attached an error would have no listener and end the process.
    socket.on('error', this.#onError)
  }

  attach(sink: Sink): void {
    assert(this.#sink === undefined, 'a socket is attached once')
    this.#sink = sink
    const first = this.#socket
    const handle = (first as unknown as WithHandle)._handle
    if (handle === null || first.destroyed) {
      queueMicrotask(this.#onClose)
      return
    }
    const moved = socketAround(handle, () => sink.space(), this.#onRead)
    if (moved === undefined) {
      first.on('data', this.#onData)
    } else {
      ;(first as unknown as WithHandle)._handle = null
      first.destroy()
      this.#socket = moved
      this.#isOwn = true
      moved.on('error', this.#onError)
    }
    this.#socket.on('drain', this.#onDrain)
    this.#socket.on('close', this.#onClose)
    if (!this.#paused) this.#socket.resume()
  }

  write(parts: readonly Uint8Array[]): void {
    if (this.#closed || this.#ending) return
    if (this.#queue.length > 0) {
      this.#queue.push(parts)
      for (const part of parts) this.#queueBytes += part.length
    } else {
      this.#writeNow(parts)
    }
    if (this.queuedBytes > 0) this.#owesDrained = true
  }

  sendFile(file: File, position: number, size: number): void {
    if (this.#closed || this.#ending || size === 0) return
    assert(file instanceof RealFile, 'a socket of the system sends files of the system')
    if (file.isClosed) {
      // Its number may be another file's by now, and the answer is begun.
      this.#socket.destroy(new WorldError('EBADF', `send ${file.path} from ${position}: it was closed meanwhile`))
      return
    }
    // A few bytes leave in one piece with what goes before them: the other side wakes once.
    const isNext = this.#queue.length === 0 && this.queuedBytes + size <= READ_BYTES_QUEUED_MAX
    const bytes = isNext ? file.readNow(position, size) : undefined
    if (bytes !== undefined) {
      this.write([bytes])
      return
    }
    this.#queue.push(new FileSend(file, position, size))
    this.#queueBytes += size
    if (this.#queue.length === 1) this.#work()
    // Only now: a call that sent everything owes no news, and news never come from inside the call.
    if (this.queuedBytes > 0) this.#owesDrained = true
  }

  /** 0 already when the system took everything at once; `drained` follows only if it is not. */
  get queuedBytes(): number {
    return this.#queueBytes + this.#unsentBytes
  }

  /** What goes before all that is queued. */
  get #unsentBytes(): number {
    return this.#outgoingBytes + this.#socket.writableLength
  }

  pause(): void {
    this.#paused = true
    if (this.#sink !== undefined) this.#socket.pause()
  }

  resume(): void {
    this.#paused = false
    if (this.#sink !== undefined) this.#socket.resume()
  }

  end(): void {
    if (this.#ending || this.#closed) return
    this.#ending = true
    if (this.#queue.length === 0) this.#endNow()
  }

  destroy(): void {
    this.#ending = true
    this.#dropQueue()
    this.#dropOutgoing()
    this.#socket.destroy()
  }

  /** Sends, and closes without waiting for the other side's end: it may never come. */
  #endNow(): void {
    this.#send()
    this.#socket.destroySoon()
  }

  /**
   * Bytes leave when what runs now has ended: one write of a log answers several requests one upon another, and each call
   * of the system wakes the other side.
   */
  #writeNow(parts: readonly Uint8Array[]): void {
    if (this.#outgoing.length === 0) queueMicrotask(this.#onTurnEnds)
    for (const part of parts) {
      this.#outgoing.push(part)
      this.#outgoingBytes += part.length
    }
  }

  readonly #onTurnEnds = (): void => {
    this.#send()
    this.#onDrain()
  }

  #send(): void {
    const parts = this.#outgoing
    if (parts.length === 0) return
    const size = this.#outgoingBytes
    this.#outgoing = []
    this.#outgoingBytes = 0
    const taken = this.#sendNow(parts, size)
    if (taken < size) this.#sendBehind(partsFrom(parts, taken))
  }

  /**
   * To the system, past Node's stream, which takes more than the system does where only some bytes are sent.
   * @returns how many bytes it took: none where something went wrong, which the stream then meets, and tells.
   */
  #sendNow(parts: readonly Uint8Array[], size: number): number {
    const socket = this.#socket
    const descriptor = (socket as unknown as WithHandle)._handle?.fd
    if (!this.#isOwn || typeof descriptor !== 'number' || descriptor < 0) return 0
    if (socket.writableLength > 0 || !socket.writable || parts.length > PARTS_MAX) return 0
    try {
      if (parts.length === 1) return fs.writeSync(descriptor, parts[0] as Uint8Array)
      if (size > JOINED_BYTES_MAX) return fs.writevSync(descriptor, parts)
      let at = 0
      for (const part of parts) {
        joined.set(part, at)
        at += part.length
      }
      return fs.writeSync(descriptor, joined, 0, size)
    } catch {
      return 0
    }
  }

  #sendBehind(parts: readonly Uint8Array[]): void {
    const socket = this.#socket
    if (parts.length > 1) socket.cork()
    for (const part of parts) socket.write(part)
    if (parts.length > 1) socket.uncork()
  }

  /** Goes on with what waits: bytes at once, a range of a file only when nothing else is under way. */
  readonly #work = (): void => {
    while (!this.#closed) {
      const next = this.#queue[0]
      if (next === undefined) {
        if (this.#ending) this.#endNow()
        else if (this.#unsentBytes === 0) this.#tellDrained()
        return
      }
      if (!(next instanceof FileSend)) {
        for (const part of next) this.#queueBytes -= part.length
        this.#queue.shift()
        this.#writeNow(next)
        continue
      }
      // Bytes that must go first; the end of the turn, or `drain`, comes back here.
      if (this.#unsentBytes > 0 || next.busy) return
      const descriptor = (this.#socket as unknown as WithHandle)._handle?.fd ?? -1
      const before = next.left
      const step = next.step(descriptor, this.#onSendStep)
      this.#queueBytes -= before - next.left
      if (step === 'wait') return
      if (step === 'done') this.#queue.shift()
    }
    this.#dropQueue()
  }

  readonly #onSendStep = (outcome: { sent: number; chunk?: Uint8Array; error?: WorldError }): void => {
    if (this.#closed) {
      this.#dropQueue()
      return
    }
    if (outcome.error !== undefined) {
      // The answer is half sent and cannot be finished.
      this.#socket.destroy(outcome.error)
      return
    }
    this.#queueBytes -= outcome.sent
    if (outcome.chunk !== undefined) this.#sendBehind([outcome.chunk])
    const first = this.#queue[0]
    if (first instanceof FileSend && first.left === 0 && !first.busy) this.#queue.shift()
    this.#work()
  }

  readonly #onRead = (count: number): boolean => {
    if (!this.#closed) this.#sink?.received(count)
    return !this.#paused
  }

  /** The way without moved connections: Node's buffer, copied into the sink's. */
  readonly #onData = (bytes: Uint8Array): void => {
    const sink = this.#sink
    for (let at = 0; sink !== undefined && at < bytes.length && !this.#closed && !this.#socket.destroyed; ) {
      const space = sink.space()
      const count = Math.min(space.length, bytes.length - at)
      space.set(bytes.subarray(at, at + count))
      at += count
      sink.received(count)
    }
  }

  readonly #onDrain = (): void => {
    if (this.#queue.length > 0) this.#work()
    else if (this.#unsentBytes === 0) this.#tellDrained()
  }

  #tellDrained(): void {
    if (!this.#owesDrained || this.#closed) return
    this.#owesDrained = false
    this.#sink?.drained()
  }

  readonly #onError = (error: Error): void => {
    this.#error = error
  }

  readonly #onClose = (): void => {
    if (this.#closed) return
    this.#closed = true
    this.#dropQueue()
    this.#dropOutgoing()
    const error = this.#error
    this.#sink?.closed(
      error === undefined ? undefined : worldError(error, `connection with ${this.remote.host}:${this.remote.port}`),
    )
  }

  #dropOutgoing(): void {
    this.#outgoing = []
    this.#outgoingBytes = 0
  }

  #dropQueue(): void {
    for (const queued of this.#queue) if (queued instanceof FileSend) queued.drop()
    this.#queue.length = 0
    this.#queueBytes = 0
  }
}

function socketAround(
  handle: Handle,
  buffer: () => Uint8Array,
  callback: (count: number) => boolean,
): net.Socket | undefined {
  if (process.env.TIDEMARK_NO_NATIVE === '1' || typeof handle.fd !== 'number') return undefined
  const options = { handle, onread: { buffer, callback }, highWaterMark: HIGH_WATER_MARK }
  return new net.Socket(options as unknown as net.SocketConstructorOpts)
}
