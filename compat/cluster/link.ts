/** A loopback proxy whose connections can be cut, held and delayed, as a network does it between two machines. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * How it treats bytes. open: passes them on. cut: resets all connections, and refuses new ones. held: connections stay and
 * are taken, but nothing arrives, in either direction: a half-open connection, whose other end has lost power.
 */
export type LinkState = 'open' | 'cut' | 'held'

const LOOK_MS = 20

interface Pair {
  readonly near: Socket
  readonly far: Socket
}

export class Link {
  readonly port: number
  readonly #target: number
  readonly #pairs = new Set<Pair>()
  #server: Server | undefined
  #state: LinkState = 'open'
  /** Counts its changes. */
  #changes = 0
  #delayMs = 0

  private constructor(port: number, target: number) {
    this.port = port
    this.#target = target
  }

  static async create(port: number, target: number): Promise<Link> {
    const link = new Link(port, target)
    await link.be('open')
    return link
  }

  /** Connections there are now, each counted once. */
  get connections(): number {
    return this.#pairs.size
  }

  /** How much later all bytes arrive, in milliseconds; of connections that are there, too. */
  delay(ms: number): void {
    this.#delayMs = ms
  }

  async be(state: LinkState): Promise<void> {
    const before = this.#state
    this.#state = state
    this.#changes++
    if (state === 'cut') {
      const refusing = this.refuse()
      this.reset()
      await refusing
      return
    }
    if (this.#server === undefined) {
      const server = createServer(socket => this.#joined(socket))
      await listen(server, this.port)
      this.#server = server
    }
    if (state === 'held') for (const { near, far } of this.#pairs) for (const socket of [near, far]) socket.pause()
    // What was held for long was given up by both ends; what they sent must not arrive after all.
    if (before === 'held' && state === 'open') this.reset()
  }

  /** Opens as soon as somebody listens at the target: until then a process that starts refuses, and its link must, too. */
  async openWithTarget(): Promise<void> {
    const changes = this.#changes
    while (this.#changes === changes && !(await isTaken(this.#target))) await delay(LOOK_MS)
    if (this.#changes === changes) await this.be('open')
  }

  /** New connections are refused; those that are there stay. */
  refuse(): Promise<void> {
    // What it resolves with is of no interest: it waits for all connections.
    this.#server?.close()
    this.#server = undefined
    // A listening socket is closed in the turn that follows.
    return new Promise(resolve => setImmediate(resolve))
  }

  /** Ends all connections; new ones are taken. */
  reset(): void {
    for (const { near, far } of this.#pairs) {
      reset(near)
      reset(far)
    }
    this.#pairs.clear()
  }

  async close(): Promise<void> {
    await this.be('cut')
  }

  #joined(near: Socket): void {
    const far = connect(this.#target, '127.0.0.1')
    const pair = { near, far }
    this.#pairs.add(pair)
    this.#join(pair, near, far)
    this.#join(pair, far, near)
    if (this.#state === 'held') for (const socket of [near, far]) socket.pause()
  }

  #join(pair: Pair, from: Socket, to: Socket): void {
    from.setNoDelay(true)
    // In order, whatever the delay was when each of them came.
    const underWay: Buffer[] = []
    const pass = (): void => {
      const bytes = underWay.shift()
      if (bytes === undefined || to.destroyed || to.write(bytes)) return
      from.pause()
      to.once('drain', () => {
        if (this.#state !== 'held') from.resume()
      })
    }
    from.on('data', (bytes: Buffer) => {
      underWay.push(bytes)
      if (this.#delayMs === 0 && underWay.length === 1) pass()
      else setTimeout(pass, this.#delayMs)
    })
    from.on('error', () => {})
    from.on('close', () => {
      this.#pairs.delete(pair)
      // A target that refuses is not there: whoever dialled hears a reset, the closest that a proxy comes to a refusal.
      if (to === pair.near && from === pair.far) reset(to)
      else to.destroy()
    })
  }
}

/** A reset while a shutdown is under way leaves Node with a handle that never closes: the process could not end. */
function reset(socket: Socket): void {
  if (socket.connecting || socket.writableEnded || socket.destroyed) socket.destroy()
  else socket.resetAndDestroy()
}

function isTaken(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
}
