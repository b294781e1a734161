/** An idempotent producer of single batches that does exactly what it is told, also what a real one would never do. */
import type { Channel } from '../../src/network/channel.ts'
import { API } from '../../src/protocol/apis.ts'
import { BatchBuilder } from '../../src/records/builder.ts'

export interface Answered {
  readonly errorCode: number
  readonly baseOffset: number
}

/** The last version that names topics by name. */
const BY_NAME = 12

export class RawProducer {
  readonly id: number
  readonly epoch: number

  constructor(id: number, epoch: number) {
    this.id = id
    this.epoch = epoch
  }

  static async create(channel: Channel): Promise<RawProducer> {
    const answer = await channel.ask(API.InitProducerId, { transactionalId: null, transactionTimeoutMs: 0 })
    if (answer.errorCode !== 0) throw new Error(`no producer id: error ${answer.errorCode}`)
    return new RawProducer(answer.producerId, answer.producerEpoch)
  }

  batch(values: readonly string[], baseSequence: number): Buffer {
    const builder = new BatchBuilder({ producerId: this.id, producerEpoch: this.epoch, baseSequence })
    for (const value of values) builder.append(Date.now(), null, Buffer.from(value))
    return builder.build()
  }

  /** Sends a batch as often as one likes. Rejects when the connection ends. */
  async send(channel: Channel, topic: string, partition: number, batch: Buffer, timeoutMs = 10_000): Promise<Answered> {
    const answer = await channel.ask(API.Produce, produceBody(topic, partition, batch), {
      versionMax: BY_NAME,
      timeoutMs,
    })
    const { errorCode = -1, baseOffset = -1 } = answer.responses[0]?.partitionResponses[0] ?? {}
    return { errorCode, baseOffset }
  }
}

export function produceBody(topic: string, index: number, records: Buffer) {
  return { acks: -1, timeoutMs: 30_000, topicData: [{ name: topic, partitionData: [{ index, records }] }] }
}
