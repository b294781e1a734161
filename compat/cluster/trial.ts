/** One topic under load from its creation to the verdict over it. */
import assert from 'node:assert/strict'
import { listOffsets } from '../../src/client/admin/offsets.ts'
import { describeTopic } from '../../src/client/admin/topics.ts'
import type { Client } from '../../src/client/client.ts'
import { throwIfError } from '../../src/client/errors.ts'
import { API } from '../../src/protocol/apis.ts'
import { check, longestGap, unseen, type Verdict } from './checker.ts'
import type { Reader, Writer } from './load.ts'
import { Committer, javaReader, javaWriter, librdkafkaReader, librdkafkaWriter, OwnReader, OwnWriter } from './load.ts'
import type { MixedCluster } from './members.ts'
import { eventually } from './nodes.ts'

export type ClientName = 'tidemark' | 'java' | 'librdkafka'

export interface TrialOptions {
  readonly topic: string
  /** Of each partition its replicas, the preferred leader first. */
  readonly placement: readonly (readonly number[])[]
  readonly minIsr: number
  /** One of each; the same client may be named again. */
  readonly writers: readonly ClientName[]
  /** A group each. */
  readonly readers: readonly ClientName[]
  /** Of each writer. */
  readonly perSecond: number
  /** The command that has librdkafka. */
  readonly python?: string | undefined
}

/** Writers have begun when each of them was told of its first records. */
const BEGIN_LIMIT_MS = 60_000
const SETTLE_LIMIT_MS = 120_000

export class Trial {
  readonly client: Client
  readonly options: TrialOptions
  readonly writers: Writer[] = []
  readonly readers: Reader[] = []
  readonly #cluster: MixedCluster
  #committer: Committer | undefined

  private constructor(cluster: MixedCluster, client: Client, options: TrialOptions) {
    this.#cluster = cluster
    this.client = client
    this.options = options
  }

  /** Makes the topic and lets the load begin; resolves when all writers are told of records. */
  static async begin(cluster: MixedCluster, options: TrialOptions): Promise<Trial> {
    const trial = new Trial(cluster, await cluster.client(), options)
    try {
      await cluster.during(trial.#begin())
    } catch (error) {
      await trial.abandon()
      throw error
    }
    return trial
  }

  async #begin(): Promise<void> {
    const { topic, placement, minIsr, writers, readers, perSecond, python = 'python3' } = this.options
    await makeTopic(this.client, topic, placement, { 'min.insync.replicas': String(minIsr) })
    const { bootstrap } = this.#cluster
    const load = { bootstrap, topic, perSecond }
    for (const [index, name] of writers.entries()) {
      const stream = index + 1
      if (name === 'java') this.writers.push(javaWriter(stream, load))
      else if (name === 'librdkafka') this.writers.push(librdkafkaWriter(python, stream, load))
      else this.writers.push(await OwnWriter.start(stream, load))
    }
    for (const name of readers) {
      const group = `group-${name}`
      if (name === 'java') this.readers.push(javaReader(group, load))
      else if (name === 'librdkafka') this.readers.push(librdkafkaReader(python, group, load))
      else this.readers.push(await OwnReader.start(group, load))
    }
    this.#committer = await Committer.start('committed', topic, bootstrap)
    await this.untilWritten(1, BEGIN_LIMIT_MS)
  }

  /** Until every writer was told of so many more records of every partition. */
  async untilWritten(more: number, limitMs = SETTLE_LIMIT_MS): Promise<void> {
    const before = this.writers.map(writer => this.#counts(writer))
    await this.#cluster.during(
      eventually(
        `${more} more records of every writer in every partition`,
        async () => {
          const behind = this.writers.filter((writer, index) => {
            const now = this.#counts(writer)
            return now.some((count, partition) => count < (before[index]?.[partition] ?? 0) + more)
          })
          if (behind.length === 0) return true
          const what = behind.map(each => `${each.name} ${this.#counts(each)}, ${each.refused} refused`)
          throw new Error(`${what.join('; ')}; ${behind.map(each => each.lastRefusal ?? '').join('; ')}`)
        },
        limitMs,
      ),
    )
  }

  /** By partition. */
  #counts({ acknowledged }: Writer): number[] {
    const counts = this.options.placement.map(() => 0)
    for (const { partition } of acknowledged) counts[partition] = (counts[partition] ?? 0) + 1
    return counts
  }

  /** Until all replicas are in sync, led by the first of each where that is asked for. */
  async untilInSync(preferred = false): Promise<void> {
    const { topic, placement } = this.options
    await this.#cluster.during(
      eventually(
        `all replicas of ${topic} are in sync`,
        async () => {
          const { partitions } = await describeTopic(this.client, topic)
          const missing = partitions.filter(
            ({ isr, replicas, leader, partition }) =>
              isr.length < replicas.length || leader < 0 || (preferred && leader !== placement[partition]?.[0]),
          )
          if (missing.length === 0) return true
          throw new Error(JSON.stringify(missing))
        },
        SETTLE_LIMIT_MS,
      ),
    )
  }

  async leaders(): Promise<number[]> {
    const { partitions } = await describeTopic(this.client, this.options.topic)
    return partitions.map(({ leader }) => leader)
  }

  /** By writer, the longest time in which one partition had no acknowledgement since then (wall clock, ms). */
  gaps(from: number, until = Date.now()): Record<string, number> {
    return Object.fromEntries(
      this.writers.map(({ name, acknowledged }) => [name, longestGap(acknowledged, from, until)]),
    )
  }

  /** Ends the load, lets the readers come to the end, and judges. */
  async verdict(): Promise<WholeVerdict> {
    const { topic, placement } = this.options
    return await this.#cluster.during(
      (async () => {
        await Promise.all(this.writers.map(writer => writer.stop()))
        await this.#committer?.stop()
        const asked = placement.map((_, partition) => ({ topic, partition, spec: 'latest' as const }))
        const ends = new Map(
          (await listOffsets(this.client, asked)).map(({ partition, offset }) => [partition, offset]),
        )
        const missing = () => this.readers.flatMap(reader => unseen([reader], ends))
        await eventually('the groups have read all', async () => missing().length === 0, SETTLE_LIMIT_MS).catch(
          () => {},
        )
        const notSeen = missing()
        await Promise.all(this.readers.map(reader => reader.stop()))
        const verdict = await check(this.client, topic, placement.length, this.writers)
        const losses = this.#committer?.losses ?? []
        const troubles = [
          ...(this.#committer?.troubles ?? []),
          ...this.readers.flatMap(reader => (reader instanceof OwnReader ? reader.troubles : [])),
        ]
        this.client.close()
        const commits = this.#committer?.committed ?? 0
        const read = this.readers.map(
          ({ name, spans }) => `${name}: its group was handed ${handed([...spans.values()].flat())} records`,
        )
        return { ...verdict, read, wrong: [...verdict.wrong, ...notSeen, ...losses.slice(0, 5)], commits, troubles }
      })(),
    )
  }

  async abandon(): Promise<void> {
    this.client.close()
    await Promise.allSettled([...this.writers, ...this.readers].map(each => each.stop()))
    await this.#committer?.stop().catch(() => {})
  }
}

export interface WholeVerdict extends Verdict {
  readonly commits: number
  /** What clients were told meanwhile and went on from. */
  readonly troubles: readonly string[]
  /** What each group read, in words. */
  readonly read: readonly string[]
}

function handed(spans: readonly (readonly [number, number])[]): number {
  return spans.reduce((sum, [first, last]) => sum + last - first + 1, 0)
}

/** Throws where anything is wrong; @returns the counts in one line. */
export function passed(verdict: WholeVerdict): string {
  assert.deepEqual(verdict.wrong, [])
  const writers = verdict.writers.map(
    ({ name, acknowledged, refused, unconfirmed }) =>
      `${name} ${acknowledged} acknowledged, ${refused} given up, ${unconfirmed} there without an answer`,
  )
  return `${verdict.records} records: ${writers.join('; ')}; ${verdict.commits} commits, all kept`
}

export async function makeTopic(
  client: Client,
  name: string,
  placement: readonly (readonly number[])[],
  configs: Readonly<Record<string, string>> = {},
): Promise<void> {
  const assignments = placement.map((brokerIds, partitionIndex) => ({ partitionIndex, brokerIds: [...brokerIds] }))
  const settings = Object.entries(configs).map(([key, value]) => ({ name: key, value }))
  const topic = { name, numPartitions: -1, replicationFactor: -1, assignments, configs: settings }
  await client.ask(
    'any',
    API.CreateTopics,
    { topics: [topic], timeoutMs: 30_000, validateOnly: false },
    {
      check: ({ topics }) => throwIfError(topics[0]?.errorCode ?? -1, `topic ${name}: ${topics[0]?.errorMessage}`),
    },
  )
}
