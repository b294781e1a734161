/** One connection that carries bytes as they are, also wrong ones: a request is a frame, what follows is an outcome. */
import { connect, type Socket } from 'node:net'

/** An answer without its size field; or the connection was closed; or nothing came in time. */
export type Outcome = Buffer | 'closed' | 'silent'

interface Waiting {
  readonly timer: NodeJS.Timeout
  settle(outcome: Outcome): void
}

export class Wire {
  readonly #port: number
  #socket: Socket | undefined
  #received: Buffer = Buffer.alloc(0)
  readonly #waiting: Waiting[] = []

  constructor(port: number) {
    this.#port = port
  }

  /** Sends and waits for the next answer on this connection; opens it anew where it was closed. */
  async request(bytes: Uint8Array, limitMs: number): Promise<Outcome> {
    const socket = this.#open()
    return new Promise(resolve => {
      const timer = setTimeout(() => this.#end('silent'), limitMs)
      this.#waiting.push({
        timer,
        settle(outcome) {
          clearTimeout(timer)
          resolve(outcome)
        },
      })
      socket.write(bytes)
    })
  }

  /** Sends what is never answered: a produce with acks 0. */
  send(bytes: Uint8Array): void {
    this.#open().write(bytes)
  }

  close(): void {
    this.#end('closed')
  }

  #open(): Socket {
    if (this.#socket !== undefined) return this.#socket
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    this.#received = Buffer.alloc(0)
    const ended = (): void => {
      if (this.#socket === socket) this.#end('closed')
    }
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('error', ended)
    socket.on('close', ended)
    return socket
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    while (this.#received.length >= 4) {
      const size = this.#received.readInt32BE(0)
      if (this.#received.length < 4 + size) return
      const frame = this.#received.subarray(4, 4 + size)
      this.#received = this.#received.subarray(4 + size)
      this.#waiting.shift()?.settle(frame)
    }
  }

  #end(outcome: 'closed' | 'silent'): void {
    this.#socket?.destroy()
    this.#socket = undefined
    for (const { settle } of this.#waiting.splice(0)) settle(outcome)
  }
}
