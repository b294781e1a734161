/** Three real nodes with thousands of partitions: how soon all of them take records again when one node is killed. */
import { setTimeout as delay } from 'node:timers/promises'
import { API } from '#protocol/apis.ts'
import { BatchBuilder } from '#records/builder.ts'
import { askAny, Connection } from './connection.ts'
import { type From, freeBase, Server } from './server.ts'
import type { NewTopic } from './topics.ts'

const NODES = 3
const PARTITIONS_PER_TOPIC = 10
const LIMIT_MS = 120_000
const RECOVERED_LIMIT_MS = 3_000
const SETTLE_MS = 5_000
const SETTINGS = {
  'offsets.topic.replication.factor': '3',
  'default.replication.factor': '3',
  'min.insync.replicas': '2',
}

export interface ManyPartitions {
  readonly from: From
  readonly partitions: number
  readonly idleSeconds: number
  track(server: Server): Server
  say(text: string): void
}

interface Known {
  readonly name: string
  readonly leaders: readonly number[]
  readonly isr: readonly (readonly number[])[]
}

/** @returns whether every partition took a record again in time, after each death. */
export async function manyPartitions(run: ManyPartitions): Promise<boolean> {
  const base = await freeBase(NODES)
  const servers = new Map<number, Server>()
  for (let id = 1; id <= NODES; id++) {
    const member = { id, count: NODES, base }
    servers.set(id, run.track(await Server.create({ kind: 'tidemark', from: run.from, settings: SETTINGS, member })))
  }
  const nodes = new Nodes(servers)
  const note = (what: string, value: string) => run.say(`  ${what}: ${value}`)
  try {
    await Promise.all([...servers.values()].map(server => server.start()))
    await nodes.until('all brokers are there', async () => (await nodes.brokers()).length === NODES)
    note('resident memory, no topics', nodes.memory())

    const topics: NewTopic[] = Array.from({ length: run.partitions / PARTITIONS_PER_TOPIC }, (_, index) => ({
      name: `many-${index}`,
      partitions: PARTITIONS_PER_TOPIC,
      replicationFactor: NODES,
    }))
    const creating = await nodes.measured(async () => {
      await createTopicsAnywhere(nodes, topics)
      await nodes.until('all replicas are in sync', async () => isWhole(await nodes.topics(), run.partitions))
    })
    note(`${run.partitions} partitions made, with 3 replicas in sync`, creating)
    note('every partition takes a record, acks=all', await nodes.measured(() => nodes.produceToAll(topics)))
    await delay(SETTLE_MS)
    note('resident memory', nodes.memory())
    note(`CPU, at rest for ${run.idleSeconds} s`, await nodes.idle(run.idleSeconds))

    let kept = true
    const active = await nodes.activeController()
    const other = [1, 2, 3].find(id => id !== active) as number
    for (const [dead, what] of [
      [other, 'kill -9 of a node'],
      [active, 'kill -9 of the active controller'],
    ] as const) {
      const led = (await nodes.topics()).flatMap(({ leaders }) => leaders).filter(leader => leader === dead).length
      const began = performance.now()
      await nodes.node(dead).kill()
      await nodes.until('all partitions have leaders', async () => isLed(await nodes.topics(), run.partitions, dead), 5)
      const ledMs = performance.now() - began
      await nodes.produceToAll(topics)
      const tookMs = performance.now() - began
      kept &&= tookMs < RECOVERED_LIMIT_MS
      note(
        `${what}, which led ${led}`,
        `all have leaders after ${ledMs.toFixed(0)} ms, all have taken a record with acks=all after ${tookMs.toFixed(0)} ms ` +
          `(< ${RECOVERED_LIMIT_MS} ms: ${tookMs < RECOVERED_LIMIT_MS ? 'ok' : 'missed'})`,
      )
      await delay(2000)
      const back = performance.now()
      const answersMs = await nodes.node(dead).start()
      await nodes.until('all replicas are in sync', async () => isWhole(await nodes.topics(), run.partitions))
      note(
        '  started again',
        `answers after ${answersMs.toFixed(0)} ms, all replicas in sync after ${(performance.now() - back).toFixed(0)} ms`,
      )
      await nodes.electPreferred()
      await delay(SETTLE_MS)
    }
    note('resident memory', nodes.memory())
    note(`CPU, at rest for ${run.idleSeconds} s`, await nodes.idle(run.idleSeconds))
    return kept
  } finally {
    await Promise.all([...servers.values()].map(server => server.remove()))
  }
}

function isWhole(topics: readonly Known[], partitions: number): boolean {
  const isr = topics.flatMap(topic => topic.isr)
  return isr.length === partitions && isr.every(({ length }) => length === NODES)
}

function isLed(topics: readonly Known[], partitions: number, dead: number): boolean {
  const leaders = topics.flatMap(topic => topic.leaders)
  return leaders.length === partitions && leaders.every(leader => leader >= 0 && leader !== dead)
}

/** By whatever node; a topic counts when its leaders serve it, and those are elsewhere too. */
async function createTopicsAnywhere(nodes: Nodes, topics: readonly NewTopic[]): Promise<void> {
  const connection = await Connection.open(nodes.node(1).port)
  try {
    for (let at = 0; at < topics.length; at += 100) {
      const answer = await connection.ask(API.CreateTopics, 7, {
        topics: topics.slice(at, at + 100).map(({ name, partitions, replicationFactor = 1 }) => ({
          name,
          numPartitions: partitions,
          replicationFactor,
        })),
        timeoutMs: 60_000,
      })
      const refused = answer.topics.find(({ errorCode }) => errorCode !== 0)
      if (refused !== undefined) throw new Error(`${refused.name}: error ${refused.errorCode} ${refused.errorMessage}`)
    }
  } finally {
    connection.close()
  }
}

class Nodes {
  readonly #servers: ReadonlyMap<number, Server>

  constructor(servers: ReadonlyMap<number, Server>) {
    this.#servers = servers
  }

  node(id: number): Server {
    const server = this.#servers.get(id)
    if (server === undefined) throw new Error(`there is no node ${id}`)
    return server
  }

  memory(): string {
    return `${[...this.#servers.values()].map(server => server.residentMiB().toFixed(0)).join(', ')} MiB`
  }

  async idle(seconds: number): Promise<string> {
    const servers = [...this.#servers.values()]
    const before = servers.map(server => server.cpuSeconds())
    const began = performance.now()
    await delay(seconds * 1000)
    const passed = (performance.now() - began) / 1000
    const shares = servers.map((server, index) => (server.cpuSeconds() - (before[index] ?? 0)) / passed)
    return `${shares.map(share => `${(share * 100).toFixed(2)} %`).join(', ')} of a core`
  }

  /** Time on the clock, and of processors of all nodes. */
  async measured(work: () => Promise<void>): Promise<string> {
    const cpu = () => [...this.#servers.values()].reduce((sum, server) => sum + server.cpuSeconds(), 0)
    const before = cpu()
    const began = performance.now()
    await work()
    return `${((performance.now() - began) / 1000).toFixed(2)} s, ${(cpu() - before).toFixed(2)} s CPU of all nodes`
  }

  async until(what: string, holds: () => Promise<boolean>, everyMs = 20): Promise<void> {
    const until = performance.now() + LIMIT_MS
    while (!(await holds())) {
      if (performance.now() > until) throw new Error(`not in time: ${what}`)
      await delay(everyMs)
    }
  }

  async brokers() {
    return (await this.#ask(API.Metadata, 12, { topics: [] })).brokers
  }

  async topics(): Promise<Known[]> {
    const { topics } = await this.#ask(API.Metadata, 12, { topics: null })
    return topics
      .filter(({ isInternal }) => !isInternal)
      .map(({ name, partitions }) => {
        const ordered = [...partitions].sort((a, b) => a.partitionIndex - b.partitionIndex)
        return {
          name: name ?? '',
          leaders: ordered.map(({ leaderId }) => leaderId),
          isr: ordered.map(({ isrNodes }) => isrNodes),
        }
      })
  }

  async activeController(): Promise<number> {
    const { topics } = await this.#ask(API.DescribeQuorum, 1, {
      topics: [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }],
    })
    return topics[0]?.partitions[0]?.leaderId ?? -1
  }

  async electPreferred(): Promise<void> {
    await this.#ask(API.ElectLeaders, 2, { electionType: 0, topicPartitions: null, timeoutMs: 30_000 })
  }

  /** One record to each partition with acks=all, again where it is refused, until each is acknowledged. */
  async produceToAll(topics: readonly NewTopic[]): Promise<void> {
    const until = performance.now() + LIMIT_MS
    let missing = topics.flatMap(({ name, partitions }) =>
      Array.from({ length: partitions }, (_, index) => ({ name, index })),
    )
    while (missing.length > 0) {
      if (performance.now() > until) throw new Error(`${missing.length} partitions take no record`)
      const leaders = new Map((await this.topics()).map(topic => [topic.name, topic.leaders]))
      const byLeader = Map.groupBy(missing, ({ name, index }) => leaders.get(name)?.[index] ?? -1)
      const refused = await Promise.all(
        [...byLeader].map(([leader, some]) => (leader < 0 ? some : this.#produce(leader, some).catch(() => some))),
      )
      missing = refused.flat()
      if (missing.length > 0) await delay(5)
    }
  }

  /** @returns what was refused. */
  async #produce(leader: number, partitions: readonly { readonly name: string; readonly index: number }[]) {
    const builder = new BatchBuilder()
    builder.append(Date.now(), null, Buffer.from('one record'))
    const records = builder.build()
    const byName = Map.groupBy(partitions, ({ name }) => name)
    const connection = await Connection.open(this.node(leader).port)
    try {
      const answer = await connection.ask(
        API.Produce,
        9,
        {
          acks: -1,
          timeoutMs: 10_000,
          topicData: [...byName].map(([name, some]) => ({
            name,
            partitionData: some.map(({ index }) => ({ index, records })),
          })),
        },
        15_000,
      )
      return answer.responses.flatMap(({ name, partitionResponses }) =>
        partitionResponses.filter(({ errorCode }) => errorCode !== 0).map(({ index }) => ({ name, index })),
      )
    } finally {
      connection.close()
    }
  }

  #ask: Connection['ask'] = (api, version, message) => {
    const ports = [...this.#servers.values()].map(({ port }) => port)
    return askAny(ports, api, version, message, 30_000)
  }
}
