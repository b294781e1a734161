import type { Offset } from '#base/units.ts'
import type { ConsumedRecord } from '#client/consumer.ts'
import type { TopicPartition } from '#client/per-leader.ts'
import { holds } from './partition-log.ts'

/** Who sent a record, and as its which one to the partition; the head of its value says so. */
export interface Sent extends TopicPartition {
  readonly producer: string
  readonly number: number
  readonly value: string
}

/** A producer from its making to its end. What one has sent may stand twice only when it is tainted. */
export interface Origin {
  readonly name: string
  /** A send has failed, or the log that it wrote to has lost what a power cut may take: then nobody knows any more. */
  tainted: boolean
}

/** What one partition has promised. */
class PartitionLedger {
  readonly where: string
  /** Whether an acknowledgement is to survive a power cut. */
  readonly durable: boolean
  readonly acknowledged = new Map<Offset, Sent>()
  readonly seen = new Map<Offset, string>()
  readonly offsets = new Map<string, Offset>()
  /** Without an offset, as the broker no longer knew it: it is somewhere. */
  readonly somewhere = new Set<string>()
  /** Everything below was acknowledged, or was shown to be below the high watermark. */
  end: Offset = 0
  /** Everything below survives also a power cut: it was there when a stop was clean. */
  durableEnd: Offset = 0
  start: Offset = 0
  deletedTo: Offset = 0

  constructor(where: string, durable: boolean) {
    this.where = where
    this.durable = durable
  }

  truncate(end: Offset): void {
    holds(end >= this.durableEnd, `${this.where} ends at ${end} though all below ${this.durableEnd} was durable`)
    this.end = end
    for (const offset of [...this.acknowledged.keys()]) if (offset >= end) this.acknowledged.delete(offset)
    for (const [offset, value] of this.seen) {
      if (offset < end) continue
      this.seen.delete(offset)
      this.offsets.delete(value)
    }
    this.somewhere.clear()
  }
}

/**
 * What a node has promised its clients. Rules: an acknowledged record is read at its offset, once and in its producer's
 * order; offsets are dense; the end and the start of a partition and what a group has committed never go back; one member of
 * a generation owns a partition; a producer id is given once. A power cut takes what was not to be synced, and nothing else.
 */
export class NodeLedger {
  readonly #partitions = new Map<string, PartitionLedger>()
  readonly #sent = new Map<string, Sent>()
  readonly #dropped = new Set<Sent>()
  readonly #origins = new Map<string, Origin>()
  readonly #commits = new Map<string, Map<string, Offset>>()
  readonly #producerIds = new Set<number>()
  /** By group, generation and partition. */
  readonly #owners = new Map<string, string>()
  /** Counts the power cuts that may have taken something. */
  losses = 0
  /** Counts the ends that were not clean. */
  deaths = 0
  /** Whether committed offsets are to survive a power cut. */
  readonly commitsDurable: boolean
  acknowledgements = 0
  reads = 0

  constructor(commitsDurable: boolean) {
    this.commitsDurable = commitsDurable
  }

  add({ topic, partition }: TopicPartition, durable: boolean): void {
    const key = keyOf({ topic, partition })
    this.#partitions.set(key, new PartitionLedger(key, durable))
  }

  /** A topic is gone, and with it what it promised. */
  drop(topic: string): void {
    for (const key of [...this.#partitions.keys()]) if (key.startsWith(`${topic}-`)) this.#partitions.delete(key)
    for (const sent of this.#sent.values()) if (sent.topic === topic) this.#dropped.add(sent)
  }

  /** Whether a record was sent to a topic that is gone, and had the name of one that is there. */
  wasDropped({ value }: ConsumedRecord): boolean {
    const sent = this.#sent.get(value?.toString('latin1') ?? '')
    return sent !== undefined && this.#dropped.has(sent)
  }

  origin(name: string): Origin {
    const origin = { name, tainted: false }
    this.#origins.set(name, origin)
    return origin
  }

  sending(sent: Sent): void {
    this.#sent.set(sent.value, sent)
  }

  acknowledged(sent: Sent, offset: Offset): void {
    const ledger = this.#partitions.get(keyOf(sent))
    if (ledger === undefined) return
    this.acknowledgements++
    if (offset < 0) {
      ledger.somewhere.add(sent.value)
      return
    }
    const other = ledger.acknowledged.get(offset)
    holds(
      other === undefined,
      `${ledger.where} acknowledged ${head(other?.value)} and ${head(sent.value)} at ${offset}`,
    )
    const seen = ledger.seen.get(offset)
    holds(
      seen === undefined || seen === sent.value,
      `${ledger.where} acknowledged ${head(sent.value)} at ${offset} where ${head(seen)} was read`,
    )
    ledger.acknowledged.set(offset, sent)
    ledger.end = Math.max(ledger.end, offset + 1)
  }

  /** A record that any reader was given. */
  read(record: ConsumedRecord): void {
    const ledger = this.#partitions.get(keyOf(record))
    if (ledger === undefined) return
    this.reads++
    const { offset } = record
    const value = record.value?.toString('latin1') ?? ''
    const at = `${ledger.where} at ${offset}`
    const sent = this.#sent.get(value)
    holds(sent !== undefined && keyOf(sent) === ledger.where, `${at}: ${head(value)} was never sent there`)
    const seen = ledger.seen.get(offset)
    holds(seen === undefined || seen === value, `${at}: ${head(value)} is read where ${head(seen)} was read before`)
    const promised = ledger.acknowledged.get(offset)
    holds(
      promised === undefined || promised.value === value,
      `${at}: ${head(value)} is read where ${head(promised?.value)} was acknowledged`,
    )
    const before = ledger.offsets.get(value)
    const tainted = this.#origins.get(sent.producer)?.tainted === true
    holds(
      before === undefined || before === offset || tainted,
      `${at}: ${head(value)} is there twice, also at ${before}`,
    )
    ledger.seen.set(offset, value)
    ledger.offsets.set(value, offset)
    ledger.end = Math.max(ledger.end, offset + 1)
  }

  /** The end below which everything must be found by who asks now. */
  floor(of: TopicPartition): Offset {
    return this.#partition(of).end
  }

  /** The offset below which nothing may be found by who asks now. */
  startFloor(of: TopicPartition): Offset {
    return this.#partition(of).start
  }

  /** The bounds of a partition as the node told them to one who asked when the floors were these. */
  bounds(of: TopicPartition, start: Offset, end: Offset, floor: Offset, startFloor: Offset): void {
    const ledger = this.#partition(of)
    holds(end >= floor, `${ledger.where} ends at ${end} though all below ${floor} was there`)
    holds(start <= ledger.deletedTo, `${ledger.where} begins at ${start}, deleted is up to ${ledger.deletedTo}`)
    // A node that died meanwhile promises less again.
    const deleted = Math.min(startFloor, ledger.start)
    holds(start >= deleted, `${ledger.where} begins at ${start} though all below ${deleted} is deleted`)
    ledger.end = Math.max(ledger.end, end)
  }

  /** All of a partition between two offsets, as it was read. */
  whole(of: TopicPartition, start: Offset, end: Offset, records: readonly ConsumedRecord[]): void {
    const ledger = this.#partition(of)
    let next = start
    const numbers = new Map<string, number>()
    for (const record of records) {
      if (record.offset >= end) break
      // What was deleted since the bounds were asked for is not read.
      const deleted = next < ledger.deletedTo && record.offset <= ledger.deletedTo
      holds(
        record.offset === next || (record.offset > next && deleted),
        `${ledger.where}: offset ${next} should come and ${record.offset} came`,
      )
      next = record.offset + 1
      this.read(record)
      const sent = this.#sent.get(record.value?.toString('latin1') ?? '')
      if (sent === undefined || this.#origins.get(sent.producer)?.tainted === true) continue
      const last = numbers.get(sent.producer) ?? -1
      holds(sent.number > last, `${ledger.where}: ${head(sent.value)} at ${record.offset} comes behind number ${last}`)
      numbers.set(sent.producer, sent.number)
    }
    holds(next >= end || end <= ledger.deletedTo, `${ledger.where}: offset ${next} of ${end} is not read`)
    if (ledger.deletedTo > 0) return
    for (const value of ledger.somewhere) {
      holds(ledger.offsets.has(value), `${ledger.where}: ${head(value)} was acknowledged and is nowhere`)
    }
  }

  deleting(of: TopicPartition, before: Offset): void {
    const ledger = this.#partition(of)
    ledger.deletedTo = Math.max(ledger.deletedTo, before)
  }

  deleted(of: TopicPartition, lowWatermark: Offset): void {
    const ledger = this.#partition(of)
    ledger.start = Math.max(ledger.start, lowWatermark)
  }

  deletedTo(of: TopicPartition): Offset {
    return this.#partitions.get(keyOf(of))?.deletedTo ?? 0
  }

  committed(group: string, of: TopicPartition, offset: Offset): void {
    // A power cut may have taken the records and left the commit; such a position does not last.
    if (offset > (this.#partitions.get(keyOf(of))?.end ?? 0)) return
    const commits = this.#commits.get(group) ?? new Map<string, Offset>()
    this.#commits.set(group, commits)
    commits.set(keyOf(of), Math.max(commits.get(keyOf(of)) ?? 0, offset))
  }

  /** A member of this generation holds these partitions, so nobody else does. */
  owned(group: string, generation: number, member: string, partitions: readonly TopicPartition[]): void {
    for (const of of partitions) {
      const key = `${group}/${generation}/${keyOf(of)}`
      const owner = this.#owners.get(key)
      if (owner === undefined) this.#owners.set(key, member)
      holds(
        owner === undefined || owner === member,
        `members ${owner} and ${member} of ${group} both own ${keyOf(of)} in generation ${generation}`,
      )
    }
  }

  commitFloors(group: string): ReadonlyMap<string, Offset> {
    return new Map(this.#commits.get(group))
  }

  /** What a group has committed as the node told it to one who asked when the floors were these. */
  commitsRead(group: string, found: ReadonlyMap<string, Offset>, floors: ReadonlyMap<string, Offset>): void {
    for (const [key, floor] of floors) {
      const offset = found.get(key) ?? -1
      holds(offset >= floor, `group ${group} has ${offset} for ${key} though ${floor} was committed`)
    }
    for (const [key, offset] of found) {
      const ledger = this.#partitions.get(key)
      if (ledger === undefined || (!this.commitsDurable && this.losses > 0) || !ledger.durable) continue
      holds(offset <= ledger.end, `group ${group} has ${offset} for ${key}, which ends at ${ledger.end}`)
    }
  }

  producerId(id: number): void {
    holds(!this.#producerIds.has(id), `producer id ${id} was given twice`)
    this.#producerIds.add(id)
  }

  /** The node has stopped cleanly: whatever it has promised survives everything from now on. */
  stoppedCleanly(): void {
    for (const ledger of this.#partitions.values()) ledger.durableEnd = ledger.end
  }

  /** The node has not stopped cleanly. What was deleted may be there again, as Kafka writes that down every minute only. */
  died(): void {
    this.deaths++
    for (const ledger of this.#partitions.values()) ledger.start = 0
  }

  get lossy(): readonly TopicPartition[] {
    return [...this.#partitions.values()].filter(({ durable }) => !durable).map(({ where }) => partitionOf(where))
  }

  /** What is left after a power cut of partitions and commits that do not survive one. */
  lost(ends: readonly (TopicPartition & { readonly offset: Offset })[]): void {
    for (const each of ends) this.#partition(each).truncate(each.offset)
    this.losses++
    // What a group was is lost as well: it counts its generations anew.
    this.#owners.clear()
    for (const origin of this.#origins.values()) origin.tainted = true
  }

  /** A member whose position was lost as well begins anew, and may commit what lies before. */
  commitsLost(group: string, found: ReadonlyMap<string, Offset>): void {
    const left = [...found].filter(([key]) => this.#partitions.get(key)?.durable === true)
    this.#commits.set(group, new Map(left))
  }

  #partition(of: TopicPartition): PartitionLedger {
    const ledger = this.#partitions.get(keyOf(of))
    if (ledger === undefined) throw new Error(`${keyOf(of)} is not in the ledger`)
    return ledger
  }
}

export function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}-${partition}`
}

function partitionOf(key: string): TopicPartition {
  const at = key.lastIndexOf('-')
  return { topic: key.slice(0, at), partition: Number(key.slice(at + 1)) }
}

/** Of a record's value, what tells it from others. */
function head(value: string | undefined): string {
  return value?.split(' ', 1)[0] ?? 'nothing'
}
