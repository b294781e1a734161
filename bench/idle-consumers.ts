// A process of its own: COUNT consumers with nothing to read, each on a connection with a fetch session, as clients hold
// them. Arguments: port, count, max wait in milliseconds, seconds, topic and partitions of each topic as JSON.
import { setTimeout as delay } from 'node:timers/promises'
import { API } from '#protocol/apis.ts'
import { Connection } from './connection.ts'
import type { NewTopic } from './topics.ts'

const [port, count, maxWaitMs] = process.argv.slice(2, 5).map(Number) as [number, number, number]
const topics = JSON.parse(process.argv[5] ?? '[]') as NewTopic[]

/** Connections are made a few at a time: that many at once overflow the backlog of any listener. */
const OPENED_AT_ONCE = 50

const ids = await topicIds()
const assignments = assigned()
let fetches = 0
let withoutSession = 0

for (let i = 0; i < count; i += OPENED_AT_ONCE) {
  const some = Array.from({ length: Math.min(OPENED_AT_ONCE, count - i) }, (_, n) => consumer(i + n))
  await Promise.all(some)
}
process.send?.({ ready: count })
setInterval(() => process.send?.({ fetches, withoutSession }), 250)
process.on('disconnect', () => process.exit(0))

async function topicIds(): Promise<Map<string, string>> {
  const connection = await Connection.open(port)
  const answer = await connection.ask(API.Metadata, 12, { topics: topics.map(({ name }) => ({ name })) })
  connection.close()
  return new Map(answer.topics.map(({ name, topicId }) => [name ?? '', topicId]))
}

interface Assigned {
  readonly topicId: string
  readonly partition: number
}

/** Every partition has one consumer, and every consumer as many partitions of one topic as there are for it. */
function assigned(): Assigned[][] {
  const all = topics.flatMap(({ name, partitions }) =>
    Array.from({ length: partitions }, (_, partition) => ({ topicId: ids.get(name) ?? '', partition })),
  )
  const each = Math.max(1, Math.floor(all.length / count))
  return Array.from({ length: count }, (_, i) => all.slice((i * each) % all.length, ((i * each) % all.length) + each))
}

/** Resolves when the first fetch is under way; the loop goes on by itself. */
async function consumer(index: number): Promise<void> {
  const connection = await Connection.open(port)
  void poll(connection, assignments[index] ?? []).catch((error: Error) => {
    process.send?.({ failed: error.message })
    process.exit(1)
  })
}

async function poll(connection: Connection, partitions: readonly Assigned[]): Promise<void> {
  const byTopic = Map.groupBy(partitions, ({ topicId }) => topicId)
  const everything = [...byTopic].map(([topicId, some]) => ({
    topicId,
    partitions: some.map(({ partition }) => ({ partition, fetchOffset: 0, partitionMaxBytes: 1 << 20 })),
  }))
  let sessionId = 0
  let sessionEpoch = 0
  for (;;) {
    const answer = await connection.ask(API.Fetch, 17, {
      maxWaitMs,
      minBytes: 1,
      maxBytes: 50 << 20,
      sessionId,
      sessionEpoch,
      topics: sessionEpoch === 0 ? everything : [],
    })
    const wrong =
      answer.errorCode || answer.responses.flatMap(topic => topic.partitions).find(p => p.errorCode)?.errorCode
    if (wrong) throw new Error(`a fetch was answered with error ${wrong}`)
    fetches++
    if (answer.sessionId === 0) withoutSession++
    sessionId = answer.sessionId
    sessionEpoch = sessionId === 0 ? 0 : sessionEpoch + 1
    // An answer without a session and before its time would make this a busy loop.
    if (answer.sessionId === 0) await delay(1)
  }
}
