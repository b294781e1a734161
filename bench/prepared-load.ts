/** Produce requests that were made before they are sent, so that who sends them takes next to nothing of the cores. */
import { connect, type Socket } from 'node:net'
import { ByteReader } from '#base/bytes.ts'
import { API } from '#protocol/apis.ts'
import { decode } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { decodeResponseHeader, encodeRequestFrame } from '#protocol/frames.ts'
import { BatchBuilder } from '#records/builder.ts'
import { Connection } from './connection.ts'

/** Who leads since a moment ago may not know it yet: sent again, as clients do. */
const AGAIN_AFTER_MS = 20
const AGAIN_MAX = 100

/** The last version of Produce that names topics by name. */
const VERSION = 12
const ACKS_ALL = -1
const TIMEOUT_MS = 30_000

export interface PreparedLoad {
  readonly records: number
  readonly recordBytes: number
  /** As many records as fit into so much are one batch, and one request. */
  readonly batchBytes: number
  /** Requests under way of each partition, which has a connection of its own: Kafka takes one of a connection at a time. */
  readonly inFlight: number
}

/** @returns records per second, from the first request to the last answer, with acks=all. */
export async function producePrepared(port: number, topic: string, load: PreparedLoad): Promise<number> {
  const { recordBytes, batchBytes, inFlight } = load
  const builder = new BatchBuilder()
  const record = Buffer.alloc(recordBytes)
  do builder.append(Date.now(), null, record)
  while (builder.sizeEstimate + recordBytes <= batchBytes)
  const batch = builder.build()
  const lanes = await Promise.all(
    (await leadersOf(port, topic)).map(({ index, host, port }) =>
      Lane.open(host, port, requestFor(topic, index, batch)),
    ),
  )
  try {
    const requests = Math.ceil(load.records / builder.recordsCount)
    let left = requests
    const take = (): boolean => left-- > 0
    const began = performance.now()
    await Promise.all(lanes.map(lane => lane.send(inFlight, take)))
    return (requests * builder.recordsCount * 1000) / (performance.now() - began)
  } finally {
    for (const lane of lanes) lane.close()
  }
}

async function leadersOf(port: number, topic: string) {
  const connection = await Connection.open(port)
  try {
    const { brokers, topics } = await connection.ask(API.Metadata, VERSION, { topics: [{ name: topic }] })
    return (topics[0]?.partitions ?? []).map(({ partitionIndex: index, leaderId }) => {
      const leader = brokers.find(({ nodeId }) => nodeId === leaderId)
      if (leader === undefined) throw new Error(`partition ${index} of ${topic} has no leader`)
      return { index, host: leader.host, port: leader.port }
    })
  } finally {
    connection.close()
  }
}

function requestFor(topic: string, index: number, records: Buffer): Buffer {
  const message = {
    transactionalId: null,
    acks: ACKS_ALL,
    timeoutMs: TIMEOUT_MS,
    topicData: [{ name: topic, partitionData: [{ index, records }] }],
  }
  const parts = encodeRequestFrame(API.Produce, VERSION, { correlationId: 0, clientId: 'bench' }, message)
  return Buffer.concat(parts as Buffer[])
}

/** One connection that sends one request again and again. */
class Lane {
  readonly #socket: Socket
  readonly #request: Buffer
  #rest: Buffer = Buffer.alloc(0)
  #inFlight = 0
  #again = 0
  #take: () => boolean = () => false
  #end: { resolve(): void; reject(error: Error): void } | undefined

  private constructor(socket: Socket, request: Buffer) {
    this.#socket = socket
    this.#request = request
    socket.setNoDelay(true)
    socket.on('data', bytes => this.#received(bytes as Buffer))
    socket.on('error', error => this.#end?.reject(error))
    socket.on('close', () => this.#end?.reject(new Error('the server closed the connection')))
  }

  static open(host: string, port: number, request: Buffer): Promise<Lane> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, host, () => {
        socket.off('error', reject)
        resolve(new Lane(socket, request))
      })
      socket.once('error', reject)
    })
  }

  /** Keeps so many under way as long as there is one to take; resolves with the last answer. */
  send(inFlight: number, take: () => boolean): Promise<void> {
    this.#take = take
    return new Promise((resolve, reject) => {
      this.#end = { resolve, reject }
      for (let i = 0; i < inFlight; i++) this.#next()
      if (this.#inFlight === 0) resolve()
    })
  }

  close(): void {
    this.#end = undefined
    this.#socket.destroy()
  }

  #next(): void {
    if (!this.#take()) return
    this.#inFlight++
    this.#socket.write(this.#request)
  }

  #received(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    while (this.#rest.length >= 4) {
      const end = 4 + this.#rest.readInt32BE(0)
      if (this.#rest.length < end) return
      this.#answered(this.#rest.subarray(4, end))
      this.#rest = this.#rest.subarray(end)
    }
  }

  #answered(frame: Buffer): void {
    const reader = new ByteReader(frame)
    decodeResponseHeader(API.Produce.key, VERSION, reader)
    const { responses } = decode(API.Produce.response, VERSION, reader)
    const errorCode = responses[0]?.partitionResponses[0]?.errorCode
    if (errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER && this.#again++ < AGAIN_MAX) {
      setTimeout(() => this.#socket.write(this.#request), AGAIN_AFTER_MS)
      return
    }
    if (errorCode !== ErrorCode.NONE) this.#end?.reject(new Error(`a batch was refused with error ${errorCode}`))
    this.#inFlight--
    this.#next()
    if (this.#inFlight === 0) this.#end?.resolve()
  }
}
