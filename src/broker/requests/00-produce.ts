import { MiB, type Millis, type NodeId } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import type { Produced } from '#core/partition/leader.ts'
import { type Answer, type Call, HANG_UP, NO_ANSWER, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { ProduceRequest, ProduceResponse } from '#protocol/messages/produce.ts'
import type { InputOf } from '#protocol/schema.ts'
import { isTransactional, producerId, sizeInBytes, stampLogAppendTime } from '#records/batch.ts'
import { DecompressionAllowance } from '#records/decompression-allowance.ts'
import { type ProducedOptions, validateProduced } from '#records/produced.ts'
import { RecordsError } from '#records/records-error.ts'
import type { Broker } from '../broker.ts'
import type { Deadline } from '../deadlines.ts'
import type { Partition, ProduceToken } from '../partitions/partition.ts'
import { recompressed } from '../partitions/recompress.ts'
import type { Terms } from '../partitions/terms.ts'

/**
 * Produce (0), versions 3-13; advertised from 0, since clients infer features from that (KAFKA-18659).
 * - Each partition's records must be exactly one batch of magic 2; a refused one leaves nothing behind.
 * - acks=0 has no answer; on an error the connection is closed, so that the client looks for the reason.
 * - v8: errors of single records and a message. v10: the current leader. v13: topics by id.
 * - Left out until transactions come: batches with the transactional bit are refused.
 */
export function produce(broker: Broker): ServedApi {
  return serve({
    api: API.Produce,
    advertised: [0, 13],
    handle: (request, call) => new ProduceCall(broker, request, call).run(),
  })
}

/** The time-out is for replicas: the local write is waited for even by who has no patience. */
const WRITE_WAIT_MS = 1000

type TopicResponse = NonNullable<InputOf<typeof ProduceResponse>['responses']>[number]
type PartitionResponse = NonNullable<TopicResponse['partitionResponses']>[number]
type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** What the records of one request may take up after decompression, all together: it is done in one turn of the loop. */
const DECOMPRESSED_BYTES_MAX = 256 * MiB

/** One request on its way through all of its partitions. */
class ProduceCall {
  readonly #broker: Broker
  readonly #request: ProduceRequest
  readonly #call: Call
  readonly #responses: TopicResponse[] = []
  readonly #tokens: Token[] = []
  readonly #allowance = new DecompressionAllowance(DECOMPRESSED_BYTES_MAX)
  /** Who is named as the leader of a partition in place of this broker. */
  #leaders: NodeId[] | undefined
  #unsettled = 0
  #terms: Terms | undefined
  #options: ProducedOptions | undefined
  /** Some answer did not wait for the log, which may be writing the bytes for a long time to come. */
  #isStillWritten = false
  #resolve: ((answer: Answer<InputOf<typeof ProduceResponse>>) => void) | undefined
  #timeout: Deadline | undefined

  constructor(broker: Broker, request: ProduceRequest, call: Call) {
    this.#broker = broker
    this.#request = request
    this.#call = call
  }

  run(): Answer<InputOf<typeof ProduceResponse>> | Promise<Answer<InputOf<typeof ProduceResponse>>> {
    const acks = this.#request.acks
    // Partitions may settle in this very turn; the call must not be finished before all were asked.
    this.#unsettled = 1
    for (const { name, topicId, partitionData } of distinct(this.#request.topicData)) {
      const partitionResponses: PartitionResponse[] = []
      this.#responses.push({ name, topicId, partitionResponses })
      for (const [index, records] of partitionData) {
        const response: Mutable<PartitionResponse> = { index, errorCode: ErrorCode.NONE, baseOffset: -1 }
        partitionResponses.push(response)
        this.#produce(name, topicId, index, records, acks, response)
      }
    }
    this.#unsettled--
    if (this.#unsettled === 0) return this.#done()
    // Not in a closure over the promise's own: what such a one refers to outlives several young collections.
    const { promise, resolve } = Promise.withResolvers<Answer<InputOf<typeof ProduceResponse>>>()
    this.#resolve = resolve
    const { deadlines } = this.#broker
    this.#timeout = deadlines.after(Math.max(this.#request.timeoutMs, WRITE_WAIT_MS), () => this.#timedOut())
    return promise
  }

  /** A partition has its answer; `isStillWritten` when the log may not be done with the bytes. */
  settled(isStillWritten: boolean): void {
    if (isStillWritten) this.#isStillWritten = true
    this.#unsettled--
    if (this.#unsettled > 0) return
    const resolve = this.#resolve
    if (resolve === undefined) return
    this.#resolve = undefined
    this.#broker.deadlines.cancel(this.#timeout)
    resolve(this.#done())
  }

  #produce(
    name: string,
    topicId: Uuid,
    index: number,
    records: Buffer | null,
    acks: number,
    response: Mutable<PartitionResponse>,
  ): void {
    const found = this.#broker.partitions.find(this.#call.apiVersion >= 13 ? undefined : name, topicId, index)
    if (typeof found === 'string') {
      refuse(response, found, undefined)
      this.#nameLeader(name, topicId, index, response)
      return
    }
    if (this.#broker.isInternal(found.topic) && this.#call.clientId !== '__admin_client') {
      refuse(response, 'INVALID_TOPIC_EXCEPTION', `${found.topic} is written by the brokers alone`)
      return
    }
    if (records === null || records.length === 0) {
      refuse(response, 'INVALID_RECORD', 'a partition without records')
      return
    }
    if (acks !== -1 && acks !== 0 && acks !== 1) {
      refuse(response, 'INVALID_REQUIRED_ACKS', `acks must be -1, 0 or 1, not ${acks}`)
      return
    }
    const terms = this.#broker.partitions.terms(found)
    const problem = validateProduced(records, 0, records.length, this.#optionsOf(terms))
    if (problem !== undefined) {
      refuse(response, problem.code, problem.message)
      if (problem.recordErrors !== undefined) {
        response.recordErrors = problem.recordErrors.map(({ batchIndex, message }) => ({
          batchIndex,
          batchIndexErrorMessage: message,
        }))
      }
      return
    }
    if (isTransactional(records, 0) || (this.#request.transactionalId !== null && producerId(records, 0) >= 0)) {
      refuse(response, 'INVALID_TXN_STATE', 'transactions are not served yet')
      return
    }
    const batch = recompressedOrRefused(records, terms, this.#allowance, response)
    if (batch === undefined) return
    let appendTime: Millis = -1
    if (terms.produced.timestampType === 'LogAppendTime') {
      appendTime = this.#broker.world.clock.now()
      stampLogAppendTime(batch, 0, appendTime)
    }
    const token = new Token(this, found, response, appendTime)
    this.#tokens.push(token)
    this.#unsettled++
    this.#call.hold()
    found.produce(batch, 0, sizeInBytes(batch, 0), acks, token)
    token.given(found.written)
  }

  /** The log is done with the bytes of a partition. */
  written(): void {
    this.#call.letGo()
  }

  /** What batches are checked against; partitions of one topic share it. */
  #optionsOf(terms: Terms): ProducedOptions {
    if (this.#options === undefined || this.#terms !== terms) {
      this.#terms = terms
      this.#options = {
        ...terms.produced,
        // What is written anew in another codec is read anyway, and must be readable.
        ...(terms.compressionType !== 'producer' && { records: 'all' as const }),
        apiVersion: this.#call.apiVersion,
        now: this.#broker.world.clock.now(),
        allowance: this.#allowance,
      }
    }
    return this.#options
  }

  /** Every partition has its answer, and unless one was not waited for, the bytes have done their service. */
  #done(): Answer<InputOf<typeof ProduceResponse>> {
    if (this.#request.acks !== 0 && !this.#isStillWritten) this.#call.recycle()
    return this.#answer()
  }

  #answer(): Answer<InputOf<typeof ProduceResponse>> {
    if (this.#request.acks === 0) {
      const failed = this.#responses.some(topic => topic.partitionResponses?.some(each => each.errorCode !== 0))
      return failed ? HANG_UP : NO_ANSWER
    }
    for (const token of this.#tokens) {
      if (token.response.errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER) {
        this.#nameLeader(token.partition.topic, token.partition.topicId, token.partition.index, token.response)
      }
    }
    return {
      responses: this.#responses,
      nodeEndpoints: this.#leaders === undefined ? [] : this.#broker.leaderEndpoints(this.#leaders, this.#call.caller),
    }
  }

  #timedOut(): void {
    for (const token of this.#tokens) token.timedOut()
  }

  #nameLeader(name: string, topicId: Uuid, index: number, response: Mutable<PartitionResponse>): void {
    if (response.errorCode !== ErrorCode.NOT_LEADER_OR_FOLLOWER || this.#call.apiVersion < 10) return
    const image = this.#broker.metadata.image
    const topic = topicId === ZERO_UUID ? image.topicByName(name) : image.topic(topicId)
    const partition = topic?.partitions[index]
    if (partition !== undefined) {
      response.currentLeader = { leaderId: partition.leader, leaderEpoch: partition.leaderEpoch }
      this.#leaders ??= []
      this.#leaders.push(partition.leader)
    }
  }
}

interface TopicRecords {
  readonly name: string
  readonly topicId: Uuid
  readonly partitionData: Iterable<readonly [number, Buffer | null]>
}

/** Each partition once: of one that is named again, the last records count. A topic without partitions is not answered. */
function distinct(topicData: ProduceRequest['topicData']): Iterable<TopicRecords> {
  const only = topicData.length === 1 ? topicData[0] : undefined
  const batch = only?.partitionData.length === 1 ? only.partitionData[0] : undefined
  // Most requests hold one batch: it needs none of what follows.
  if (only !== undefined && batch !== undefined)
    return [{ name: only.name, topicId: only.topicId, partitionData: [[batch.index, batch.records]] }]
  const topics = new Map<string, TopicRecords & { readonly partitionData: Map<number, Buffer | null> }>()
  for (const { name, topicId, partitionData } of topicData) {
    if (partitionData.length === 0) continue
    const key = `${topicId}:${name}`
    const topic = topics.get(key) ?? { name, topicId, partitionData: new Map<number, Buffer | null>() }
    topics.set(key, topic)
    for (const { index, records } of partitionData) topic.partitionData.set(index, records)
  }
  return topics.values()
}

/** One partition of a call. */
class Token implements ProduceToken {
  readonly response: Mutable<PartitionResponse>
  readonly partition: Partition
  readonly #call: ProduceCall
  readonly #appendTime: Millis
  #settled = false
  /** Says that the log is done; undefined where it has nothing to be done with, or is. */
  #written: Promise<void> | undefined
  #isDone = false

  constructor(call: ProduceCall, partition: Partition, response: Mutable<PartitionResponse>, appendTime: Millis) {
    this.#call = call
    this.partition = partition
    this.response = response
    this.#appendTime = appendTime
  }

  /** The partition has the batch, and perhaps answered already. */
  given(written: Promise<void> | undefined): void {
    this.#written = written
    if (this.#settled || written === undefined) this.#doneWhenWritten()
  }

  settle(produced: Produced<ProduceToken>): void {
    // Who lost the leadership answers at once, and the log goes on writing; one that fails refuses with the write before
    // what may still be on its way to the disk. Without acks nobody waits for it at all.
    const isEarly = produced.error === 'NOT_LEADER_OR_FOLLOWER' || produced.error === 'KAFKA_STORAGE_ERROR'
    if (this.#written !== undefined) {
      if (isEarly) this.#doneWhenWritten()
      else this.#done()
    }
    if (this.#settled) return
    this.#settled = true
    if (produced.error !== undefined) {
      refuse(this.response, produced.error, produced.message)
    } else {
      this.response.baseOffset = produced.baseOffset
      this.response.logAppendTimeMs = this.#appendTime
      this.response.logStartOffset = this.partition.log.startOffset
    }
    this.#call.settled(isEarly)
  }

  /** The answer leaves without the log, which goes on; its own answer still comes. */
  timedOut(): void {
    if (this.#settled) return
    this.#settled = true
    refuse(this.response, 'REQUEST_TIMED_OUT', 'the replicas did not confirm in time; the records may still be written')
    this.#call.settled(true)
  }

  #doneWhenWritten(): void {
    if (this.#written === undefined) this.#done()
    else
      this.#written.then(
        () => this.#done(),
        () => this.#done(),
      )
  }

  #done(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#call.written()
  }
}

function recompressedOrRefused(
  records: Buffer,
  terms: Terms,
  allowance: DecompressionAllowance,
  response: Mutable<PartitionResponse>,
): Buffer | undefined {
  try {
    return recompressed(records, terms, allowance)
  } catch (error) {
    if (!(error instanceof RecordsError)) throw error
    refuse(response, error.code, error.message)
    return undefined
  }
}

function refuse(response: Mutable<PartitionResponse>, error: ErrorName, message: string | undefined): void {
  response.errorCode = ErrorCode[error]
  response.baseOffset = -1
  response.errorMessage = message ?? null
}
