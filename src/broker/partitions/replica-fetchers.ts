import type { NodeId, Offset } from '#base/units.ts'
import { FetchLane, type FetchLaneOptions } from './fetch-lane.ts'
import type { Partition } from './partition.ts'

/** Ways to one leader: a partition that comes while one waits for records takes another. */
const LANES_MAX = 3

/** Fetches what this broker follows, from every broker that leads some of it. */
export class ReplicaFetchers {
  readonly #options: FetchLaneOptions
  readonly #leaders = new Map<NodeId, LeaderFetcher>()
  /** Who fetches for a partition. */
  readonly #owners = new Map<Partition, LeaderFetcher>()
  #stopped = false

  constructor(options: FetchLaneOptions) {
    this.#options = options
  }

  /** The partition follows its leader, and can be fetched for. */
  fetchable(partition: Partition): void {
    if (this.#stopped) return
    const owner = this.#owners.get(partition)
    if (owner !== undefined && owner.leaderId !== partition.leaderId) this.leave(partition)
    if (partition.leaderId < 0) return
    let fetcher = this.#leaders.get(partition.leaderId)
    if (fetcher === undefined) {
      fetcher = new LeaderFetcher(partition.leaderId, this.#options)
      this.#leaders.set(partition.leaderId, fetcher)
    }
    this.#owners.set(partition, fetcher)
    fetcher.fetchable(partition)
  }

  /** The partition is led here, or by nobody, or is gone. */
  leave(partition: Partition): void {
    const owner = this.#owners.get(partition)
    if (owner === undefined) return
    this.#owners.delete(partition)
    owner.leave(partition)
    if (!owner.isIdle) return
    owner.stop()
    this.#leaders.delete(owner.leaderId)
  }

  /** A broker is somewhere else, or alive again: what waited to try it again need not wait. */
  brokerChanged(id: NodeId): void {
    this.#leaders.get(id)?.retry()
  }

  askOffsets(partition: Partition): void {
    const { leaderId, leaderEpoch } = partition
    const fetcher = this.#leaders.get(leaderId)
    const asked = fetcher === undefined ? Promise.resolve(undefined) : fetcher.offsetsOf(partition)
    void asked.then(range => partition.leaderOffsets(leaderEpoch, range))
  }

  stop(): void {
    this.#stopped = true
    for (const fetcher of this.#leaders.values()) fetcher.stop()
    this.#leaders.clear()
    this.#owners.clear()
  }
}

/** What is followed of one leader, over as many lanes as it takes that nobody waits behind another. */
class LeaderFetcher {
  readonly leaderId: NodeId
  readonly #options: FetchLaneOptions
  readonly #lanes: FetchLane[] = []
  readonly #laneOf = new Map<Partition, FetchLane>()

  constructor(leaderId: NodeId, options: FetchLaneOptions) {
    this.leaderId = leaderId
    this.#options = options
  }

  get isIdle(): boolean {
    return this.#laneOf.size === 0
  }

  fetchable(partition: Partition): void {
    let lane = this.#laneOf.get(partition)
    if (lane === undefined || lane.isAway(partition)) {
      lane?.part(partition)
      lane = this.#freeLane()
      lane.join(partition)
      this.#laneOf.set(partition, lane)
    }
    lane.settled(partition)
  }

  leave(partition: Partition): void {
    const lane = this.#laneOf.get(partition)
    this.#laneOf.delete(partition)
    lane?.leave(partition)
  }

  retry(): void {
    for (const lane of this.#lanes) lane.retry()
  }

  /** Where nothing waits at the leader now, so that the partition is asked for at once; the first of them, to stay few. */
  #freeLane(): FetchLane {
    const free = this.#lanes.find(lane => !lane.isFetching)
    if (free !== undefined) return free
    if (this.#lanes.length >= LANES_MAX) return this.#lanes[LANES_MAX - 1] as FetchLane
    const lane = new FetchLane(this.leaderId, this.#lanes.length, this.#options, () => this.#gather(lane))
    this.#lanes.push(lane)
    return lane
  }

  /** A lane is about to fetch: what the first can take with it goes there. */
  #gather(lane: FetchLane): boolean {
    const first = this.#lanes[0] as FetchLane
    if (lane === first || first.isFetching) return true
    for (const partition of lane.partitions) {
      lane.part(partition)
      first.join(partition)
      this.#laneOf.set(partition, first)
    }
    first.fetchSoon()
    return false
  }

  async offsetsOf(partition: Partition): Promise<{ startOffset: Offset; endOffset: Offset } | undefined> {
    const lane = this.#lanes[0] ?? this.#freeLane()
    return await lane.offsetsOf(partition)
  }

  stop(): void {
    for (const lane of this.#lanes) lane.stop()
  }
}
