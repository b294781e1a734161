import type { Server } from '#network/server.ts'
import { NO_ANSWER, type ServedApi, serve } from '#network/service.ts'
import { serving } from '#network/testing/serving.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'

export const TOPIC = 't'
export const TOPIC_ID = 'Z6qOWWaNR9qZx5b8TV406g'
const PORT = 9092

/** Who leads the only partition, as one broker believes. */
export interface Belief {
  leader: number
  leaderEpoch: number
}

/** A broker that says what the test has it say of one topic with one partition, and counts what it is asked. */
export class BrokerDouble {
  readonly id: number
  readonly machine: FakeNode
  readonly belief: Belief
  topicId = TOPIC_ID
  partitions = 1
  /** Whether it has heard of the topic. */
  knowsTopic = true
  /** Of the coordinator of every group. */
  coordinator = 1
  /** Brokers that it names beside itself. */
  readonly others: BrokerDouble[] = []
  readonly asked: string[] = []
  /** What it answers to Produce: an error, or never. */
  produces: ErrorName | 'nothing' = 'NONE'
  /** Whether it says who leads when it does not (KIP-951). */
  namesLeader = false
  /** Whether it asks clients to begin anew (KIP-1102). */
  isOfAnotherTime = false
  readonly more: ServedApi[] = []

  constructor(id: number, machine: FakeNode, belief: Belief) {
    this.id = id
    this.machine = machine
    this.belief = belief
  }

  count(api: string): number {
    return this.asked.filter(each => each === api).length
  }

  async listen(): Promise<Server> {
    return await serving({ machine: this.machine, name: 'PLAINTEXT', port: PORT }, [...this.#apis(), ...this.more])
  }

  #apis(): ServedApi[] {
    const metadata = serve({
      api: API.Metadata,
      handle: ({ topics }) => {
        this.asked.push('Metadata')
        const { leader, leaderEpoch } = this.belief
        const partition = (partitionIndex: number) => ({
          errorCode: 0,
          partitionIndex,
          leaderId: leader,
          leaderEpoch,
          replicaNodes: [1, 2, 3],
          isrNodes: [leader],
          offlineReplicas: [],
        })
        return {
          brokers: this.#endpoints(),
          topics: (topics ?? [{ name: TOPIC }]).map(({ name }) => ({
            errorCode: this.knowsTopic ? 0 : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            name,
            topicId: this.topicId,
            partitions: Array.from({ length: this.knowsTopic ? this.partitions : 0 }, (_, index) => partition(index)),
          })),
          errorCode: this.isOfAnotherTime ? ErrorCode.REBOOTSTRAP_REQUIRED : 0,
        }
      },
    })
    const identity = serve({
      api: API.InitProducerId,
      handle: () => ({ errorCode: 0, producerId: 7, producerEpoch: 0 }),
    })
    const produce = serve({
      api: API.Produce,
      handle: ({ acks, topicData }) => {
        this.asked.push('Produce')
        if (acks === 0) return NO_ANSWER
        if (this.produces === 'nothing') return new Promise<never>(() => {})
        const { leader: leaderId, leaderEpoch } = this.belief
        const errorCode = ErrorCode[this.produces]
        return {
          responses: topicData.map(({ name, topicId, partitionData }) => ({
            name,
            topicId,
            partitionResponses: partitionData.map(({ index }) => ({
              index,
              errorCode,
              baseOffset: 0,
              ...(this.namesLeader && { currentLeader: { leaderId, leaderEpoch } }),
            })),
          })),
          nodeEndpoints: this.namesLeader ? this.#endpoints() : [],
        }
      },
    })
    const coordinator = serve({
      api: API.FindCoordinator,
      handle: ({ coordinatorKeys }) => {
        this.asked.push('FindCoordinator')
        const found = this.#endpoints().find(({ nodeId }) => nodeId === this.coordinator)
        return { coordinators: coordinatorKeys.map(key => ({ key, errorCode: 0, ...found })) }
      },
    })
    return [metadata, identity, produce, coordinator]
  }

  #endpoints() {
    return [this, ...this.others].map(({ id, machine }) => ({ nodeId: id, host: machine.host, port: PORT, rack: null }))
  }
}
