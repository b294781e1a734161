/** What was acknowledged is there, once and in order, and readers have seen it all. */
import type { Client } from '../../src/client/client.ts'
import { readAll } from '../reliability/rig.ts'
import type { Acknowledged, Reader, Writer } from './load.ts'

export interface Verdict {
  /** By writer: what it was told is written, what was given up, and what of that is there all the same. */
  readonly writers: readonly {
    readonly name: string
    readonly acknowledged: number
    readonly refused: number
    readonly unconfirmed: number
  }[]
  readonly records: number
  /** Everything that is wrong, in words. */
  readonly wrong: readonly string[]
}

/** The first so many of each kind of mistake are told: the whole would be too much to print. */
const TOLD_MAX = 5

class Complaints {
  readonly #all = new Map<string, string[]>()

  add(kind: string, what: string): void {
    const told = this.#all.get(kind) ?? []
    this.#all.set(kind, told)
    told.push(what)
  }

  get list(): string[] {
    return [...this.#all].map(([kind, told]) => `${told.length} × ${kind}: ${told.slice(0, TOLD_MAX).join('; ')}`)
  }
}

/** Reads the whole topic back. Each partition is read from the leader that it has then. */
export async function check(
  client: Client,
  topic: string,
  partitions: number,
  writers: readonly Written[],
): Promise<Verdict> {
  const logs: Read[][] = []
  for (let partition = 0; partition < partitions; partition++)
    logs.push((await readAll(client, topic, partition)).map(({ offset, value }) => ({ offset, value: String(value) })))
  return judge(logs, writers)
}

export interface Read {
  readonly offset: number
  readonly value: string
}

type Written = Pick<Writer, 'name' | 'stream' | 'acknowledged' | 'refused'>

/** @param logs by partition, its records in the order in which they are served. */
export function judge(logs: readonly (readonly Read[])[], writers: readonly Written[]): Verdict {
  const complaints = new Complaints()
  const places = new Map<string, { readonly partition: number; readonly offset: number }>()
  const found = new Map<number, number>()
  for (const [partition, records] of logs.entries()) {
    const last = new Map<number, number>()
    for (const { offset, value } of records) {
      const at = `${partition}@${offset}`
      const before = places.get(value)
      if (before !== undefined)
        complaints.add('there twice', `${value} at ${before.partition}@${before.offset} and ${at}`)
      places.set(value, { partition, offset })
      const [stream = -1, sequence = -1] = value.split('.').map(Number)
      found.set(stream, (found.get(stream) ?? 0) + 1)
      const previous = last.get(stream) ?? -1
      if (sequence <= previous) complaints.add('out of order', `${value} at ${at} after ${stream}.${previous}`)
      last.set(stream, sequence)
    }
  }
  for (const { name, acknowledged } of writers)
    for (const { value, partition, offset } of acknowledged) {
      const place = places.get(value)
      if (place === undefined) complaints.add('lost', `${name} ${value}, acknowledged at ${partition}@${offset}`)
      else if (place.partition !== partition || (offset >= 0 && place.offset !== offset))
        complaints.add('moved', `${name} ${value} from ${partition}@${offset} to ${place.partition}@${place.offset}`)
    }
  return {
    writers: writers.map(({ name, stream, acknowledged, refused }) => ({
      name,
      acknowledged: acknowledged.length,
      refused,
      unconfirmed: (found.get(stream) ?? 0) - acknowledged.length,
    })),
    records: places.size,
    wrong: complaints.list,
  }
}

/** Whether a group's members have seen every offset below the ends, each partition's from 0 on. */
export function unseen(
  readers: readonly Pick<Reader, 'group' | 'spans'>[],
  ends: ReadonlyMap<number, number>,
): string[] {
  const wrong: string[] = []
  for (const [partition, end] of ends) {
    const spans = readers.flatMap(({ spans: all }) => all.get(partition) ?? []).sort((a, b) => a[0] - b[0])
    let next = 0
    for (const [first, last] of spans) {
      if (first > next) break
      next = Math.max(next, last + 1)
    }
    if (next < end) wrong.push(`group ${readers[0]?.group} has not seen ${partition}@${next}, of ${end}`)
  }
  return wrong
}

/** The longest time between two acknowledgements for one partition that reaches into a time (wall clock, ms). */
export function longestGap(acknowledged: readonly Acknowledged[], from: number, until: number): number {
  let longest = 0
  const before = new Map<number, number>()
  for (const { at, partition } of acknowledged) {
    const last = before.get(partition)
    if (last !== undefined && at >= from && last <= until) longest = Math.max(longest, at - last)
    before.set(partition, Math.max(last ?? at, at))
  }
  return longest
}
