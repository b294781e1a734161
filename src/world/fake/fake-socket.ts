import { assert } from '#base/assert.ts'
import { type Address, type File, type Sink, type Socket, WorldError } from '../world.ts'
import { FakeFile } from './fake-file.ts'
import type { FakeNetwork } from './fake-network.ts'
import type { FakeNode } from './fake-node.ts'
import type { Micros } from './schedule.ts'

/** What a file is read in, on its way to a socket. */
const FILE_PIECE_BYTES = 64 * 1024

interface Range {
  readonly file: FakeFile
  position: number
  left: number
}

type Queued = Uint8Array | Range

/** One end of a connection on the {@link FakeNetwork}. */
export class FakeSocket implements Socket {
  readonly node: FakeNode
  /** Of the two machines the one that took the connection. */
  readonly dialled: FakeNode
  readonly local: Address
  readonly remote: Address
  readonly #network: FakeNetwork
  readonly #id: number
  #peer: FakeSocket | undefined
  #sink: Sink | undefined
  readonly #queue: Queued[] = []
  #queuedBytes = 0
  /** Sent and not yet read by the other side's process. */
  #unread = 0
  /** Arrived here and not yet given to the sink. */
  readonly #inbox: Uint8Array[] = []
  #arrived: 'open' | 'ended' | 'broken' = 'open'
  #arrivalError: WorldError | undefined
  #lastArrival: Micros = 0
  #paused = false
  #ending = false
  #closed = false
  #dead = false
  #reading = false
  #giving = false
  #owesDrained = false
  #givesUp = false

  constructor(network: FakeNetwork, node: FakeNode, dialled: FakeNode, id: number, local: Address, remote: Address) {
    this.#network = network
    this.node = node
    this.dialled = dialled
    this.#id = id
    this.local = local
    this.remote = remote
  }

  /** Makes two ends one connection. */
  join(peer: FakeSocket): void {
    this.#peer = peer
    peer.#peer = this
  }

  get peer(): FakeSocket {
    assert(this.#peer !== undefined, 'a socket has two ends')
    return this.#peer
  }

  attach(sink: Sink): void {
    assert(this.#sink === undefined, 'a socket is attached once')
    this.#sink = sink
    this.#giveSoon()
  }

  write(parts: readonly Uint8Array[]): void {
    if (this.#closed || this.#ending) return
    for (const part of parts) {
      if (part.length === 0) continue
      this.#queue.push(part)
      this.#queuedBytes += part.length
    }
    this.pump()
    if (this.#queuedBytes > 0) this.#owesDrained = true
  }

  sendFile(file: File, position: number, size: number): void {
    if (this.#closed || this.#ending || size === 0) return
    assert(file instanceof FakeFile, 'a socket of the simulation sends files of the simulation')
    file.hold()
    this.#queue.push({ file, position, left: size })
    this.#queuedBytes += size
    this.pump()
    if (this.#queuedBytes > 0) this.#owesDrained = true
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#giveSoon()
  }

  end(): void {
    if (this.#ending || this.#closed) return
    this.#ending = true
    this.pump()
  }

  destroy(): void {
    if (this.#closed || this.#dead) return
    this.#ending = true
    this.#drop()
    // What is unread here makes the system break the connection instead of ending it.
    const broken = this.#inbox.length > 0
    this.#tellPeer(broken ? 'broken' : 'ended', broken ? this.#broken('ECONNRESET') : undefined)
    this.#closeSoon(undefined)
  }

  /** Both ends learn that the connection is gone. */
  breakBoth(code: string): void {
    this.#fail(code)
    this.peer.#fail(code)
  }

  /** The process of this end died: the system breaks the connection, or, without power, says nothing. */
  die(silent: boolean): void {
    this.#drop()
    this.#dead = true
    if (!silent) this.#tellPeer('broken', this.#broken('ECONNRESET'))
  }

  /** Sends what the window and the network let through. */
  pump(): void {
    const { random, faults } = this.#network
    while (!this.#closed && !this.#dead) {
      const next = this.#queue[0]
      if (next === undefined) {
        if (this.#ending) {
          this.#tellPeer('ended', undefined)
          this.#closeSoon(undefined)
        }
        return
      }
      if (this.#network.isStuck(this) || this.peer.#dead) {
        this.#giveUpLater()
        return
      }
      const room = faults.windowBytes - this.#unread
      if (room <= 0) return
      if (!(next instanceof Uint8Array)) {
        this.#readRange(next)
        return
      }
      const limit = this.#queuedInMemory(room)
      // The system has a copy from here on: the writer may change its buffer.
      this.#deliver(this.#dequeue(random.chance(0.3) ? random.between(1, limit) : limit))
      if (this.#queuedBytes === 0 && this.#owesDrained) this.node.after(0, () => this.#tellDrained())
    }
  }

  /** Bytes at the head of the queue that need not be read from a file, at most so many. */
  #queuedInMemory(most: number): number {
    let size = 0
    for (const queued of this.#queue) {
      if (!(queued instanceof Uint8Array) || size >= most) break
      size += queued.length
    }
    return Math.min(size, most)
  }

  /** Takes bytes out of the queue, as one piece whatever they were written in. */
  #dequeue(size: number): Uint8Array {
    const piece = new Uint8Array(size)
    for (let at = 0; at < size; ) {
      const part = this.#queue[0] as Uint8Array
      const some = Math.min(part.length, size - at)
      piece.set(some === part.length ? part : part.subarray(0, some), at)
      if (some === part.length) this.#queue.shift()
      else this.#queue[0] = part.subarray(some)
      at += some
    }
    this.#queuedBytes -= size
    this.#unread += size
    return piece
  }

  #tellDrained(): void {
    if (!this.#owesDrained || this.#queuedBytes > 0 || this.#closed) return
    this.#owesDrained = false
    this.#sink?.drained()
  }

  #deliver(bytes: Uint8Array): void {
    const { random, faults } = this.#network
    const peer = this.peer
    const breaks = faults.resets > 0 && random.chance(faults.resets)
    this.#later((bytes.length / faults.bytesPerSecond) * 1_000_000, () => {
      if (breaks) {
        this.breakBoth('ECONNRESET')
        return
      }
      if (peer.#arrived !== 'open' || peer.#closed || peer.#dead) return
      peer.node.trace('arrive', this.#id, bytes.length)
      peer.#inbox.push(bytes)
      peer.#give()
    })
  }

  #tellPeer(how: 'ended' | 'broken', error: WorldError | undefined): void {
    const peer = this.peer
    this.#later(0, () => {
      if (peer.#arrived !== 'open' || peer.#closed) return
      peer.#arrived = how
      peer.#arrivalError = error
      // A broken connection takes what was not read with it.
      if (how === 'broken' && this.#network.random.chance(0.5)) peer.#inbox.length = 0
      peer.#give()
    })
  }

  /** On the way to the other side, behind everything that went there before. */
  #later(extra: Micros, run: () => void): void {
    const { schedule } = this.#network.simulation
    this.#lastArrival =
      Math.max(this.#lastArrival, schedule.now + this.#network.latencyUs(this.node, this.peer.node)) + Math.ceil(extra)
    schedule.after(this.#lastArrival - schedule.now, () => {
      // Cut while under way: the system sends it again until it arrives or someone gives up. What comes behind it waits,
      // though the way be free again: within a connection nothing overtakes.
      if (this.#held.length > 0 || this.#network.isStuck(this)) this.#retry(run)
      else run()
    })
  }

  #retry(run: () => void): void {
    this.#giveUpLater()
    this.#held.push(run)
    if (this.#held.length > 1) return
    const again = (): void => {
      if (this.#network.isStuck(this)) {
        if (this.peer.#closed) this.#held.length = 0
        else this.#network.simulation.schedule.after(200_000, again)
      } else {
        for (const held of this.#held.splice(0)) held()
      }
    }
    this.#network.simulation.schedule.after(200_000, again)
  }

  readonly #held: (() => void)[] = []

  #giveUpLater(): void {
    if (this.#givesUp) return
    this.#givesUp = true
    const { giveUpUs } = this.#network
    this.node.after(giveUpUs, () => {
      this.#givesUp = false
      const stuck = this.#network.isStuck(this) || this.peer.#dead
      if (stuck && !this.#closed && (this.#queue.length > 0 || this.#unread > 0)) this.#fail('ETIMEDOUT')
    })
  }

  #giveSoon(): void {
    if (this.#giving) return
    this.#giving = true
    this.node.after(0, () => {
      this.#giving = false
      this.#give()
    })
  }

  /** Hands over what has arrived, in pieces as chance has it. */
  #give(): void {
    const sink = this.#sink
    if (sink === undefined || this.#dead) return
    if (this.node.paused) {
      // The system keeps it until the process goes on.
      this.#giveSoon()
      return
    }
    while (this.#inbox.length > 0 && !this.#paused && !this.#closed && !this.#ending) {
      const first = this.#inbox[0] as Uint8Array
      const space = sink.space()
      assert(space.length > 0, 'a sink has space for a byte')
      const size = Math.min(space.length, first.length)
      space.set(first.subarray(0, size))
      if (size === first.length) this.#inbox.shift()
      else this.#inbox[0] = first.subarray(size)
      this.peer.#read(size)
      sink.received(size)
    }
    if (this.#arrived === 'open' || (this.#inbox.length > 0 && !this.#ending)) return
    if (this.#paused && this.#arrived === 'ended') return
    this.#drop()
    this.#closeSoon(this.#arrivalError)
  }

  /** The other side's process took bytes: there is room in the window again, which is heard of a little later. */
  #read(size: number): void {
    this.#unread -= size
    // Where nothing waits for the room nobody need hear of it.
    if (this.#reading || this.#dead || this.#queue.length === 0) return
    this.#reading = true
    this.node.after(this.#network.latencyUs(this.peer.node, this.node), () => {
      this.#reading = false
      this.pump()
    })
  }

  #readRange(range: Range): void {
    if (this.#readingFile) return
    this.#readingFile = true
    const into = Buffer.alloc(Math.min(range.left, FILE_PIECE_BYTES))
    range.file.read(into, range.position).then(
      count => {
        this.#readingFile = false
        if (this.#queue[0] !== range) return
        if (count === 0) {
          this.breakBoth('EIO')
          return
        }
        range.position += count
        range.left -= count
        if (range.left === 0) {
          this.#queue.shift()
          range.file.release()
        }
        this.#queue.unshift(into.subarray(0, count))
        this.pump()
      },
      () => {
        this.#readingFile = false
        if (this.#queue[0] === range) this.breakBoth('EIO')
      },
    )
  }

  #readingFile = false

  #fail(code: string): void {
    if (this.#closed || this.#dead) return
    this.#drop()
    this.#closeSoon(this.#broken(code))
  }

  #broken(code: string): WorldError {
    return new WorldError(code, `connection with ${this.remote.host}:${this.remote.port}: ${code}`)
  }

  #drop(): void {
    for (const queued of this.#queue) if (!(queued instanceof Uint8Array)) queued.file.release()
    this.#queue.length = 0
    this.#queuedBytes = 0
  }

  #closeSoon(error: WorldError | undefined): void {
    if (this.#closed) return
    this.#closed = true
    this.#network.forget(this)
    this.node.after(0, () => {
      this.node.trace('closed', this.#id, 0, error?.code ?? '')
      this.#sink?.closed(error)
    })
  }
}
