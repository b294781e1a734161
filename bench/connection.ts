/** One bare connection to a server: a request, its answer, nothing on top. */
import { connect, type Socket } from 'node:net'
import { ByteReader } from '#base/bytes.ts'
import type { Api } from '#protocol/apis.ts'
import { decode } from '#protocol/codec.ts'
import { decodeResponseHeader, encodeRequestFrame } from '#protocol/frames.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'

/** An answer may take this long, in milliseconds. */
const ANSWER_LIMIT_MS = 60_000

interface Waiting {
  resolve(frame: Buffer): void
  reject(error: Error): void
}

export class Connection {
  readonly #socket: Socket
  readonly #waiting: Waiting[] = []
  #rest: Buffer = Buffer.alloc(0)
  #correlationId = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => this.#received(bytes))
    socket.on('error', error => this.#ended(error))
    socket.on('close', () => this.#ended(new Error('the server closed the connection')))
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.off('error', reject)
        resolve(new Connection(socket))
      })
      socket.once('error', reject)
    })
  }

  /** Answers come in the order of the requests, whatever `ask` waits for. Rejects when the connection ends. */
  async ask<Q extends Schema, R extends Schema>(
    api: Api<Q, R>,
    version: number,
    message: InputOf<Q>,
    limitMs = ANSWER_LIMIT_MS,
  ): Promise<MessageOf<R>> {
    const header = { correlationId: this.#correlationId++, clientId: 'bench' }
    const parts = encodeRequestFrame(api, version, header, message) as Buffer[]
    const frame = await new Promise<Buffer>((resolve, reject) => {
      const limit = setTimeout(() => this.#socket.destroy(new Error(`no answer to ${api.name}`)), limitMs)
      this.#waiting.push({
        resolve(answer) {
          clearTimeout(limit)
          resolve(answer)
        },
        reject(error) {
          clearTimeout(limit)
          reject(error)
        },
      })
      this.#socket.write(Buffer.concat(parts))
    })
    const reader = new ByteReader(frame)
    decodeResponseHeader(api.key, version, reader)
    return decode(api.response, version, reader)
  }

  close(): void {
    this.#socket.destroy()
  }

  #received(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    while (this.#rest.length >= 4) {
      const end = 4 + this.#rest.readInt32BE(0)
      if (this.#rest.length < end) return
      const frame = this.#rest.subarray(4, end)
      this.#rest = this.#rest.subarray(end)
      this.#waiting.shift()?.resolve(frame)
    }
  }

  #ended(error: Error): void {
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error)
  }
}

/** Asks whoever of a cluster answers: of servers that do not, the next. */
export async function askAny<Q extends Schema, R extends Schema>(
  ports: Iterable<number>,
  api: Api<Q, R>,
  version: number,
  message: InputOf<Q>,
  limitMs: number,
): Promise<MessageOf<R>> {
  let last: unknown
  for (const port of ports) {
    let connection: Connection | undefined
    try {
      connection = await Connection.open(port)
      return await connection.ask(api, version, message, limitMs)
    } catch (error) {
      last = error
    } finally {
      connection?.close()
    }
  }
  throw last
}
