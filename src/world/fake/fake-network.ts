import type { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import { type Address, type Listener, type Network, type Socket, WorldError } from '../world.ts'
import type { FakeNode } from './fake-node.ts'
import { FakeSocket } from './fake-socket.ts'
import type { Micros } from './schedule.ts'
import type { Simulation } from './simulation.ts'

export interface NetworkFaults {
  /** How long a piece is under way, from and to. */
  latencyUs: readonly [Micros, Micros]
  /** Bytes that one direction of a connection carries per second. */
  bytesPerSecond: number
  /** Bytes that are under way or wait for a reader, per direction, before the sender's queue grows. */
  windowBytes: number
  /** How likely a piece breaks the connection instead of arriving. */
  resets: number
}

export const NO_NETWORK_FAULTS: NetworkFaults = {
  latencyUs: [50, 1000],
  bytesPerSecond: 100_000_000,
  windowBytes: 256 * 1024,
  resets: 0,
}

/** How long a direction may be cut before an end that has sent something gives the connection up. */
const GIVE_UP_US = 15_000_000

interface Accepting {
  readonly node: FakeNode
  readonly host: string
  readonly port: number
  readonly accept: (socket: Socket) => void
}

/**
 * A network that may: delay, one direction more than others, and so reorder what goes over different connections, never within one; split what was
 * written at any byte; be slow; fill up; cut one direction between two hosts or both, or wall one in so
 * that nobody can dial it, for a while; break connections, with or without what was under way. A process that dies breaks its connections, a machine that loses power falls silent.
 * It never changes a byte, never delivers twice, never invents a connection.
 */
export class FakeNetwork {
  faults: NetworkFaults = { ...NO_NETWORK_FAULTS }
  readonly random: SeededRandom
  readonly simulation: Simulation
  readonly #listening = new Map<string, Accepting>()
  readonly #cut = new Set<string>()
  readonly #walled = new Set<FakeNode>()
  readonly #slow = new Map<string, Micros>()
  readonly #sockets = new Set<FakeSocket>()
  #connections = 0
  #ports = 32_768

  constructor(simulation: Simulation, random: SeededRandom) {
    this.simulation = simulation
    this.random = random
  }

  /** The network as seen from one machine, in the present life of its process. */
  of(node: FakeNode): Network {
    const { life } = node
    const here = <T>(operation: () => Promise<T>): Promise<T> =>
      life === node.life ? operation() : new Promise(() => {})
    return {
      listen: (address, accept) => here(() => this.#listen(node, address, accept)),
      connect: (address, timeoutMs) => here(() => this.#connect(node, address, timeoutMs)),
    }
  }

  /** Nothing that `from` sends arrives at `to` any more. */
  cut(from: FakeNode, to: FakeNode): void {
    from.trace('cut', 0, 0, to.name)
    this.#cut.add(`${from.host} ${to.host}`)
  }

  heal(from: FakeNode, to: FakeNode): void {
    from.trace('heal', 0, 0, to.name)
    if (!this.#cut.delete(`${from.host} ${to.host}`)) return
    for (const socket of this.#sockets) if (socket.node === from) socket.pump()
  }

  isCut(from: FakeNode, to: FakeNode): boolean {
    return this.#cut.size > 0 && this.#cut.has(`${from.host} ${to.host}`)
  }

  /** No connection that others have dialled to `node`, or dial, carries anything any more; those that it dials do. */
  wall(node: FakeNode): void {
    node.trace('wall', 0)
    this.#walled.add(node)
  }

  unwall(node: FakeNode): void {
    if (!this.#walled.delete(node)) return
    node.trace('unwall', 0)
    for (const socket of this.#sockets) if (socket.dialled === node) socket.pump()
  }

  /** Nothing that is sent by this end arrives. */
  isStuck(socket: FakeSocket): boolean {
    const { node, peer, dialled } = socket
    return this.isCut(node, peer.node) || (this.#walled.size > 0 && node !== peer.node && this.#walled.has(dialled))
  }

  /** What `from` sends to `to` takes so much longer; 0 heals. */
  slow(from: FakeNode, to: FakeNode, extraUs: Micros): void {
    from.trace('slow', extraUs, 0, to.name)
    if (extraUs > 0) this.#slow.set(`${from.host} ${to.host}`, extraUs)
    else this.#slow.delete(`${from.host} ${to.host}`)
  }

  /** Breaks the connections between two machines. */
  reset(a: FakeNode, b: FakeNode): void {
    for (const socket of [...this.#sockets]) {
      if (socket.node === a && socket.peer.node === b) socket.breakBoth('ECONNRESET')
    }
  }

  /** How long something takes from one machine to another. */
  latencyUs(from: FakeNode, to: FakeNode): Micros {
    const [least, most] = this.faults.latencyUs
    const extra = this.#slow.size === 0 ? 0 : (this.#slow.get(`${from.host} ${to.host}`) ?? 0)
    return this.random.between(least, most) + extra
  }

  get giveUpUs(): Micros {
    return GIVE_UP_US
  }

  forget(socket: FakeSocket): void {
    this.#sockets.delete(socket)
  }

  processDies(node: FakeNode, silent: boolean): void {
    for (const [key, accepting] of this.#listening) if (accepting.node === node) this.#listening.delete(key)
    for (const socket of [...this.#sockets]) {
      if (socket.node !== node) continue
      this.#sockets.delete(socket)
      socket.die(silent)
    }
  }

  async #listen(node: FakeNode, { host, port }: Address, accept: (socket: Socket) => void): Promise<Listener> {
    const at = host === '' ? node.host : this.#resolve(node, host)?.host
    if (at !== node.host)
      throw new WorldError('EADDRNOTAVAIL', `listen on ${host}:${port}: not an address of ${node.name}`)
    const bound = port === 0 ? this.#ports++ : port
    const key = `${at}:${bound}`
    if (this.#listening.has(key)) throw new WorldError('EADDRINUSE', `listen on ${host}:${bound}: it is in use`)
    const accepting = { node, host, port: bound, accept }
    this.#listening.set(key, accepting)
    node.trace('listen', bound)
    return {
      address: { host, port: bound },
      close: () => {
        if (this.#listening.get(key) === accepting) this.#listening.delete(key)
        return Promise.resolve()
      },
    }
  }

  /** Machines are known by their address and by their name. */
  #resolve(from: FakeNode, host: string): FakeNode | undefined {
    if (host === 'localhost' || host === '127.0.0.1') return from
    return this.simulation.nodes.find(node => node.host === host || node.name === host)
  }

  #connect(from: FakeNode, address: Address, timeoutMs: Millis): Promise<Socket> {
    const { host, port } = address
    const what = `connect to ${host}:${port}`
    from.trace('connect', port, 0, host)
    return new Promise((resolve, reject) => {
      let over = false
      const fail = (code: string, why: string): void => {
        if (over) return
        over = true
        reject(new WorldError(code, `${what}: ${why}`))
      }
      const timer = from.after(timeoutMs * 1000, () => fail('ETIMEDOUT', `no answer in ${timeoutMs} ms`))
      const to = this.#resolve(from, host)
      if (to === undefined) {
        from.after(this.latencyUs(from, from), () => fail('ENOTFOUND', 'no such host'))
        return
      }
      this.simulation.schedule.after(this.latencyUs(from, to), () => {
        if (this.isCut(from, to) || this.isCut(to, from) || !to.powered) return
        if (from !== to && this.#walled.has(to)) return
        const accepting = this.#listening.get(`${to.host}:${port}`)
        from.after(this.latencyUs(to, from), () => {
          if (over) return
          if (accepting === undefined) {
            fail('ECONNREFUSED', 'nobody listens')
            return
          }
          // The other end is made when this one is: there is no connection that only one side knows.
          if (this.#listening.get(`${to.host}:${port}`) !== accepting) {
            fail('ECONNRESET', 'the listener went away')
            return
          }
          over = true
          this.simulation.schedule.cancel(timer)
          const id = ++this.#connections
          const here = { host: from.host, port: this.#ports++ }
          const there = { host: to === from ? host : to.host, port }
          const dialled = new FakeSocket(this, from, to, id, here, there)
          const accepted = new FakeSocket(this, to, to, id, there, here)
          dialled.join(accepted)
          this.#sockets.add(dialled)
          this.#sockets.add(accepted)
          to.after(0, () => {
            to.trace('accept', id, port)
            accepting.accept(accepted)
          })
          resolve(dialled)
        })
      })
    })
  }
}
