/** Topics by the wire, without a client in between: made, checked to be served, deleted. */
import { setTimeout as delay } from 'node:timers/promises'
import { API } from '#protocol/apis.ts'
import { Connection } from './connection.ts'

export interface NewTopic {
  readonly name: string
  readonly partitions: number
  /** 1 where it is not said. */
  readonly replicationFactor?: number
  readonly configs?: Readonly<Record<string, string>>
}

/** Until every partition is served, in milliseconds. */
const SERVED_LIMIT_MS = 120_000
const TOPIC_ALREADY_EXISTS = 36
const LATEST = -1

/** Resolves when every partition answers where its log ends: until then it only stands in the metadata. */
export async function createTopics(
  port: number,
  topics: readonly NewTopic[],
  perRequest = topics.length,
): Promise<void> {
  await requestTopics(port, topics, perRequest)
  await served(port, topics)
}

/** Resolves when they stand in the metadata. */
export async function requestTopics(
  port: number,
  topics: readonly NewTopic[],
  perRequest = topics.length,
): Promise<void> {
  const connection = await Connection.open(port)
  try {
    for (let i = 0; i < topics.length; i += perRequest) {
      const some = topics.slice(i, i + perRequest)
      const answer = await connection.ask(API.CreateTopics, 7, {
        topics: some.map(({ name, partitions, replicationFactor = 1, configs = {} }) => ({
          name,
          numPartitions: partitions,
          replicationFactor,
          configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
        })),
        timeoutMs: 60_000,
      })
      const refused = answer.topics.find(({ errorCode }) => errorCode !== 0 && errorCode !== TOPIC_ALREADY_EXISTS)
      if (refused !== undefined) throw new Error(`${refused.name}: error ${refused.errorCode} ${refused.errorMessage}`)
    }
  } finally {
    connection.close()
  }
}

/** Resolves when every partition answers where its log ends. */
export async function served(port: number, topics: readonly NewTopic[]): Promise<void> {
  const until = performance.now() + SERVED_LIMIT_MS
  const connection = await Connection.open(port)
  try {
    let missing = topics
    while (missing.length > 0) {
      const answer = await connection.ask(API.ListOffsets, 7, {
        replicaId: -1,
        topics: missing.map(({ name, partitions }) => ({
          name,
          partitions: Array.from({ length: partitions }, (_, partitionIndex) => ({
            partitionIndex,
            timestamp: LATEST,
          })),
        })),
      })
      const unserved = answer.topics.filter(({ partitions }) => partitions.some(({ errorCode }) => errorCode !== 0))
      const names = new Set(unserved.map(({ name }) => name))
      missing = missing.filter(({ name }) => names.has(name))
      if (missing.length === 0) return
      const error = unserved[0]?.partitions.find(({ errorCode }) => errorCode !== 0)?.errorCode
      if (performance.now() > until) throw new Error(`${missing.length} topics are not served: error ${error}`)
      await delay(20)
    }
  } finally {
    connection.close()
  }
}

export async function deleteTopic(port: number, name: string): Promise<void> {
  const connection = await Connection.open(port)
  try {
    const answer = await connection.ask(API.DeleteTopics, 6, { topics: [{ name }], timeoutMs: 30_000 })
    const errorCode = answer.responses[0]?.errorCode
    if (errorCode !== 0) throw new Error(`${name} is not deleted: error ${errorCode}`)
  } finally {
    connection.close()
  }
}
