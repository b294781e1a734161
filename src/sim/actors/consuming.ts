import type { SeededRandom } from '#base/random.ts'
import type { Offset } from '#base/units.ts'
import { Consumer, type TopicPartition } from '#client/consumer.ts'
import { ClientError } from '#client/errors.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { keyOf } from '../checkers/node-ledger.ts'
import { holds, Violation } from '../checkers/partition-log.ts'
import { dial, type Scene } from './scene.ts'

/** A member of a group, which polls and commits, leaves or dies, and comes again. */
export class Consuming {
  readonly #scene: Scene
  readonly #node: FakeNode
  readonly #group: string
  readonly #random: SeededRandom

  constructor(scene: Scene, node: FakeNode, group: string, random: SeededRandom) {
    this.#scene = scene
    this.#node = node
    this.#group = group
    this.#random = random
  }

  async run(): Promise<void> {
    const { simulation } = this.#scene
    while (!this.#scene.over) {
      const living = this.#live()
      if (!this.#scene.calm && this.#random.chance(0.3)) {
        const dies = simulation.wait(this.#random.between(10, 20_000) * this.#scene.pace).then(() => true)
        if ((await Promise.race([living.then(() => false), dies])) && !this.#scene.over) {
          if (this.#random.chance(0.5)) this.#node.crash()
          else this.#node.powerCut()
          await simulation.wait(this.#random.between(1, 3000))
          continue
        }
      }
      await living
    }
  }

  async #live(): Promise<void> {
    const { simulation, ledger, topics } = this.#scene
    const { pace, calm: inHaste } = this.#scene
    const random = this.#random
    const client = await dial(this.#scene, this.#node, random)
    const automatic = random.chance(0.3)
    const next = new Map<string, { readonly offset: Offset; readonly deaths: number }>()
    const consumer = new Consumer(client, {
      group: this.#group,
      offsetReset: 'earliest',
      assignors: random.pick([['range'], ['range', 'cooperative-sticky']]),
      sessionTimeoutMs: 6000,
      heartbeatIntervalMs: 1500,
      pollIntervalMs: 15_000 * pace,
      pollRecordsMax: random.pick(inHaste ? [500] : [1, 10, 500]),
      autoCommitIntervalMs: automatic ? random.between(50, 1000) : 0,
      maxWaitMs: random.pick(pace > 1 ? [500, 5000] : [10, 100, 500]),
      fetchBytesMax: random.pick(inHaste ? [1_000_000] : [100, 10_000, 1_000_000]),
      // It begins again where the group was.
      onAssigned: () => next.clear(),
    })
    consumer.subscribe(topics.map(({ name }) => name))
    const { losses } = ledger
    const until = simulation.schedule.now / 1000 + random.between(100, 30_000) * pace
    try {
      // Whoever reads little at a time does not come to the end in any time: it begins again when all is calm.
      while (!this.#scene.over && (inHaste || (!this.#scene.calm && simulation.schedule.now / 1000 < until))) {
        const records = await consumer.poll(random.between(10, 500) * Math.min(pace, 10))
        // What it has read by now may be what a power cut took afterwards.
        if (losses !== ledger.losses) break
        const { membership, assignment } = consumer
        if (membership !== undefined) {
          ledger.owned(this.#group, membership.generationId, membership.memberId, assignment)
        }
        const owned = new Set(assignment.map(keyOf))
        for (const key of [...next.keys()]) if (!owned.has(key)) next.delete(key)
        for (const record of records) {
          ledger.read(record)
          const key = keyOf(record)
          const expected = next.get(key)
          holds(
            expected === undefined || this.#follows(record, expected.offset, expected.deaths),
            `a consumer of ${this.#group} was given ${record.offset} of ${key} where ${expected?.offset} comes`,
          )
          if (owned.has(key)) next.set(key, { offset: record.offset + 1, deaths: ledger.deaths })
        }
        if (!automatic && (this.#scene.calm || random.chance(0.3))) await this.#commit(consumer, losses)
        if (!inHaste && random.chance(0.3)) await simulation.wait(random.fraction() * 200 * this.#scene.pace)
      }
      await consumer.close()
    } catch (error) {
      if (!(error instanceof ClientError)) throw error
      if (!error.retriable) throw new Violation(`a consumer of ${this.#group} failed: ${error.code}, ${error.message}`)
      await consumer.close()
    } finally {
      client.close()
    }
  }

  /**
   * Whether a record may come where one of another offset is due. Behind a deletion reading goes on at the start. When
   * the position was out of range for that, and the node then died before it had written the deletion down, the start
   * that the reset finds is an old one, before the position: (1) deleted to 111, (2) a fetch at 7 is out of range,
   * (3) the node dies and rises with all from 0, (4) `earliest` is 0.
   */
  #follows(record: TopicPartition & { readonly offset: Offset }, due: Offset, deaths: number): boolean {
    const { ledger } = this.#scene
    const { offset } = record
    if (offset === due) return true
    if (offset > due) return offset <= ledger.deletedTo(record)
    return due < ledger.deletedTo(record) && ledger.deaths > deaths
  }

  async #commit(consumer: Consumer, losses: number): Promise<void> {
    const { ledger } = this.#scene
    const positions = consumer.assignment.map(of => ({ of, offset: consumer.position(of) }))
    try {
      await consumer.commit()
    } catch (error) {
      // Who was put out of the group, or out of time, reads again what was not committed.
      if (!(error instanceof ClientError)) throw error
      return
    }
    if (losses !== ledger.losses) return
    for (const { of, offset } of positions) if (offset !== undefined) ledger.committed(this.#group, of, offset)
  }
}
