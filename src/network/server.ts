import { Complaints } from '#base/complaints.ts'
import { MiB, type Millis } from '#base/units.ts'
import type { Address, Clock, Listener, Logger, Network, Socket, Timer } from '#world/world.ts'
import { Connection, type ConnectionLimits } from './connection.ts'
import { ConnectionQuota } from './connection-quota.ts'
import { FramePool } from './frame-pool.ts'
import type { MemoryBudget } from './memory-budget.ts'
import type { Service } from './service.ts'
import { Turns } from './turns.ts'

export interface ServerOptions {
  /** The listener's name, such as PLAINTEXT or CONTROLLER. */
  readonly name: string
  readonly address: Address
  readonly service: Service
  readonly limits: ConnectionLimits
  /** What all connections of the node may take up together. */
  readonly budget: MemoryBudget
  /** Of the node, where several listeners share them. */
  readonly turns?: Turns
  /** connections.max.idle.ms */
  readonly idleMs: Millis
  /** Of the node, where several listeners share it. */
  readonly quota?: ConnectionQuota
  /** Of a listener with a quota of its own. */
  readonly connectionsMax?: number
  readonly connectionsPerHostMax?: number
}

/** Frames' memory that is kept for reuse by all connections of a listener. */
const POOL_BYTES_MAX = 16 * MiB

/** One listener and the connections that came in by it. */
export class Server {
  readonly name: string
  readonly #listener: Listener
  readonly #connections = new Set<Connection>()
  readonly #quota: ConnectionQuota
  readonly #options: ServerOptions
  readonly #clock: Clock
  readonly #log: Logger
  #sweep: Timer | undefined
  readonly #complaints: Complaints
  #nextId = 1
  readonly #turns: Turns
  readonly #pool = new FramePool(POOL_BYTES_MAX)

  private constructor(options: ServerOptions, clock: Clock, log: Logger, listen: (self: Server) => Listener) {
    this.name = options.name
    this.#options = options
    this.#clock = clock
    this.#quota = options.quota ?? ownQuota(options)
    this.#turns = options.turns ?? new Turns(clock)
    this.#log = log
    this.#complaints = new Complaints(clock, log)
    this.#listener = listen(this)
    this.#scheduleSweep()
  }

  /** Rejects with a WorldError when the address cannot be had. */
  static async listen(options: ServerOptions, network: Network, clock: Clock, log: Logger): Promise<Server> {
    let server: Server | undefined
    // Accepting begins in a later turn than listening, so the server is there when the first socket comes.
    const listener = await network.listen(options.address, socket => server?.accept(socket))
    server = new Server(options, clock, log, () => listener)
    return server
  }

  /** The address that is listened on, with the port that was given for port 0. */
  get address(): Address {
    return this.#listener.address
  }

  get connections(): number {
    return this.#connections.size
  }

  accept(socket: Socket): void {
    const host = socket.remote.host
    const limit = this.#quota.refuses(this.name, host)
    if (limit !== undefined) {
      this.#complaints.tell(
        'warn',
        limit,
        { listener: this.name, remote: host, connections: this.#quota.count },
        `refused a connection: ${limit} is reached. Look for a client that opens connections and does not close them, or raise it`,
      )
      socket.attach({ space: () => new Uint8Array(1), received: () => {}, drained: () => {}, closed: () => {} })
      socket.destroy()
      return
    }
    const connection = new Connection({
      id: this.#nextId++,
      socket,
      listener: this.name,
      service: this.#options.service,
      limits: this.#options.limits,
      pool: this.#pool,
      budget: this.#options.budget,
      turns: this.#turns,
      clock: this.#clock,
      log: this.#log,
      onClosed: closed => this.#forget(closed),
    })
    this.#connections.add(connection)
    this.#quota.join(connection)
    socket.attach(connection)
  }

  async close(): Promise<void> {
    this.#sweep?.cancel()
    const closed = this.#listener.close()
    for (const connection of [...this.#connections]) connection.close()
    await closed
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection)
    this.#quota.leave(connection)
  }

  /**
   * One timer for all connections: an idle one is closed at most a quarter of the limit late. What came while the node
   * stood still (it was stopped, or had no processor) is read after the timers: who looks idle is looked at once more then.
   */
  #scheduleSweep(): void {
    const { idleMs } = this.#options
    if (!Number.isFinite(idleMs) || idleMs <= 0) return
    const idleOf = (connections: Iterable<Connection>): Connection[] =>
      [...connections].filter(connection => connection.isIdle(idleMs))
    this.#sweep = this.#clock.after(Math.min(Math.max(idleMs / 4, 100), 60_000), () => {
      const idle = idleOf(this.#connections)
      this.#sweep = this.#clock.after(1, () => {
        for (const connection of idleOf(idle)) connection.close()
        this.#scheduleSweep()
      })
    })
  }
}

function ownQuota({ connectionsMax: all, connectionsPerHostMax: perHost }: ServerOptions): ConnectionQuota {
  return new ConnectionQuota({ ...(all !== undefined && { all }), ...(perHost !== undefined && { perHost }) })
}
