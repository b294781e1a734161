import type { Epoch, Millis, Offset } from '#base/units.ts'
import { type Committer, commitOffsets, fetchOffsets } from './admin/groups.ts'
import type { OffsetSpec } from './admin/offsets.ts'
import type { Client } from './client.ts'
import { ClientError, mayRetry } from './errors.ts'
import { Fetcher, type FetcherOptions } from './fetcher.ts'
import { GroupSession } from './group-session.ts'
import type { TopicPartition } from './per-leader.ts'
import type { ConsumedRecord } from './records.ts'

export type { ConsumedRecord } from './records.ts'
export type { OffsetSpec, TopicPartition }

export interface ConsumerOptions extends FetcherOptions {
  readonly group: string | undefined
  readonly groupInstanceId: string | null
  readonly rackId: string | null
  readonly assignors: readonly string[]
  readonly sessionTimeoutMs: Millis
  readonly heartbeatIntervalMs: Millis
  readonly pollIntervalMs: Millis
  readonly pollRecordsMax: number
  /** Commits what the polls before handed out, every so often; 0 leaves it to `commit`. */
  readonly autoCommitIntervalMs: Millis
  readonly onAssigned: (partitions: readonly TopicPartition[]) => void
  readonly onRevoked: (partitions: readonly TopicPartition[]) => void | Promise<void>
}

const DEFAULTS: ConsumerOptions = {
  group: undefined,
  groupInstanceId: null,
  rackId: null,
  isolation: 'read_uncommitted',
  offsetReset: 'latest',
  minBytes: 1,
  maxWaitMs: 500,
  fetchBytesMax: 52_428_800,
  partitionBytesMax: 1_048_576,
  assignors: ['range', 'cooperative-sticky'],
  sessionTimeoutMs: 45_000,
  heartbeatIntervalMs: 3000,
  pollIntervalMs: 300_000,
  pollRecordsMax: 500,
  autoCommitIntervalMs: 5000,
  onAssigned: () => {},
  onRevoked: () => {},
}

/**
 * What nobody waits for is given up after so long: the next one says more. So is what the group waits for, of partitions
 * that are given up: of a topic that is gone nothing can ever be committed.
 */
const COMMIT_MS_MAX: Millis = 10_000

/**
 * Reads records: of partitions that it is told (`assign`), or as a member of a group (`subscribe`), which shares the
 * partitions of its topics among its members and remembers how far it came.
 */
export class Consumer {
  readonly #client: Client
  readonly #options: ConsumerOptions
  readonly #fetcher: Fetcher
  #session: GroupSession | undefined
  #failure: ClientError | undefined
  #committedAt: Millis
  /** What was committed last, so that nothing is committed twice. */
  readonly #committed = new Map<string, Offset>()
  /** Until the last commit is answered or given up. */
  #committing: Promise<unknown> = Promise.resolve()
  #committingItself = false
  /** Who finds out where to begin with a partition; nobody once it was given up. */
  readonly #beginning = new Map<string, object>()
  /** What the group wants back is given up when the application comes for more. */
  #revocations: (() => void)[] = []
  /** Of the last poll of the iterator, what the application has not come to, in reverse. */
  #unseen: ConsumedRecord[] = []
  #closed = false

  constructor(client: Client, options: Partial<ConsumerOptions> = {}) {
    this.#client = client
    this.#options = { ...DEFAULTS, ...options }
    // What was committed for a topic that is gone went with it.
    this.#fetcher = new Fetcher(client, this.#options, of => this.#committed.delete(keyOf(of)))
    this.#committedAt = client.world.clock.monotonic()
  }

  get assignment(): readonly TopicPartition[] {
    return this.#fetcher.partitions
  }

  /** Who it is in its group, for what is committed beside it; undefined while it is no member of a generation. */
  get membership(): { readonly memberId: string; readonly generationId: number } | undefined {
    const committer = this.#session?.committer
    return committer === undefined || committer.generationId < 0 ? undefined : committer
  }

  /** Reads these partitions and no others. */
  assign(partitions: readonly (TopicPartition & { readonly from: Offset | OffsetSpec })[]): void {
    if (this.#session !== undefined) {
      throw new ClientError('INVALID_ARGUMENT', 'a consumer that is subscribed gets its partitions from its group')
    }
    for (const held of this.#fetcher.partitions) this.#fetcher.remove(held)
    for (const { topic, partition, from } of partitions) this.#fetcher.add({ topic, partition }, from)
  }

  /** Joins the group for these topics, or changes what it is subscribed to. */
  subscribe(topics: readonly string[]): void {
    const { group } = this.#options
    if (group === undefined) throw new ClientError('INVALID_ARGUMENT', 'to subscribe a consumer needs a group')
    this.#session ??= new GroupSession(
      this.#client,
      group,
      { ...this.#client.options, ...this.#options },
      {
        revoke: partitions => this.#revoke(partitions),
        lost: partitions => this.#drop(partitions),
        assigned: (_, added) => {
          // Of a generation before: it was put out of that before the application came for more.
          this.#giveUp()
          void this.#begin(added)
        },
        failed: error => {
          this.#failure = error
          this.#fetcher.interrupt()
        },
      },
    )
    this.#session.subscribe(topics)
  }

  /** The next records, as soon as there are some; none when the time is up. */
  async poll(timeoutMs: Millis = 1000): Promise<ConsumedRecord[]> {
    if (this.#closed) throw new ClientError('CLOSED', 'the consumer is closed')
    if (this.#failure !== undefined) throw this.#failure
    this.#giveUp()
    this.#session?.polled()
    this.#commitSometimes()
    const { clock } = this.#client.world
    const until = clock.monotonic() + timeoutMs
    for (;;) {
      const records = await this.#fetcher.poll(this.#options.pollRecordsMax, Math.max(0, until - clock.monotonic()))
      if (records.length > 0) return records
      if (this.#failure !== undefined) throw this.#failure
      this.#giveUp()
      if (this.#closed || clock.monotonic() >= until) return records
    }
  }

  /** Every record, forever; until the loop is left or the consumer closed. What it did not come to is read again. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ConsumedRecord, void, undefined> {
    try {
      while (!this.#closed) {
        this.#unseen = (await this.poll()).reverse()
        for (let next = this.#unseen.pop(); next !== undefined; next = this.#unseen.pop()) yield next
      }
    } finally {
      const first = this.#firstUnseen()
      for (const of of this.#fetcher.partitions) {
        const offset = first.get(keyOf(of))
        if (offset !== undefined) this.#fetcher.add(of, offset, this.#fetcher.epochBefore(of, offset))
      }
      this.#unseen = []
    }
  }

  #firstUnseen(): Map<string, Offset> {
    return new Map(this.#unseen.map(record => [keyOf(record), record.offset]))
  }

  /** The offset that is handed out next; undefined while that is not known. */
  position(of: TopicPartition): Offset | undefined {
    return this.#fetcher.position(of)
  }

  /** The end of a partition as of its last fetch; -1 before. */
  highWatermark(of: TopicPartition): Offset {
    return this.#fetcher.highWatermark(of)
  }

  seek(of: TopicPartition, to: Offset | OffsetSpec): void {
    if (!this.#fetcher.partitions.some(({ topic, partition }) => topic === of.topic && partition === of.partition)) {
      throw new ClientError('INVALID_ARGUMENT', `partition ${of.topic}-${of.partition} is not assigned`)
    }
    this.#unseen = this.#unseen.filter(record => keyOf(record) !== keyOf(of))
    this.#fetcher.add(of, to)
  }

  /** Commits how far the application came: all that was handed out. */
  async commit(): Promise<void> {
    await this.#commit(this.#fetcher.partitions)
  }

  /** Commits if that is left to the consumer, leaves the group and stops. */
  async close(): Promise<void> {
    if (this.#closed) return
    if (this.#revocations.length > 0) {
      this.#giveUp()
      await this.#committing
    }
    if (this.#session?.stable === true && this.#options.autoCommitIntervalMs > 0) await this.commit().catch(() => {})
    this.#closed = true
    this.#fetcher.close()
    await this.#session?.leave()
  }

  /**
   * What was handed out by now, in the generation of now. One commit after another: an older one that is sent again would
   * take a newer one back.
   */
  async #commit(partitions: readonly TopicPartition[], timeoutMs?: Millis): Promise<void> {
    const { group } = this.#options
    if (group === undefined) throw new ClientError('INVALID_ARGUMENT', 'to commit a consumer needs a group')
    const committer = this.#session?.committer
    if (committer !== undefined && committer.generationId < 0) {
      throw new ClientError('UNKNOWN_MEMBER_ID', `this consumer is no member of group "${group}" at the moment`)
    }
    const offsets: (TopicPartition & { offset: Offset; leaderEpoch: Epoch })[] = []
    const unseen = this.#firstUnseen()
    // Of a group that has no members offsets expire by the time of their commit (KIP-211).
    const isKept = this.#session !== undefined
    for (const each of partitions) {
      const offset = unseen.get(keyOf(each)) ?? this.#fetcher.position(each)
      if (offset === undefined || (isKept && this.#committed.get(keyOf(each)) === offset)) continue
      offsets.push({ ...each, offset, leaderEpoch: this.#fetcher.epochBefore(each, offset) })
    }
    this.#committedAt = this.#client.world.clock.monotonic()
    if (offsets.length === 0) return
    const turn = this.#committing.then(() => this.#commitNow(group, offsets, committer, timeoutMs))
    this.#committing = turn.catch(() => {})
    await turn
  }

  async #commitNow(
    group: string,
    offsets: readonly (TopicPartition & { readonly offset: Offset; readonly leaderEpoch: Epoch })[],
    committer: Committer | undefined,
    timeoutMs: Millis | undefined,
  ): Promise<void> {
    try {
      await commitOffsets(this.#client, group, offsets, committer, timeoutMs)
      for (const each of offsets) this.#committed.set(keyOf(each), each.offset)
    } catch (error) {
      const isOfNow = committer?.generationId === this.#session?.committer.generationId
      if (isOfNow && error instanceof ClientError && error.errorCode !== undefined) {
        this.#session?.commitRefused(error.errorCode)
      }
      throw error
    }
  }

  /** Nobody waits for it: while no coordinator is there records are read all the same. */
  #commitSometimes(): void {
    const { autoCommitIntervalMs } = this.#options
    if (this.#session?.stable !== true || autoCommitIntervalMs === 0 || this.#committingItself) return
    if (this.#client.world.clock.monotonic() - this.#committedAt < autoCommitIntervalMs) return
    this.#committingItself = true
    // One that fails is made up for by the next; what it says about the membership was told to the session.
    this.#commit(this.#fetcher.partitions, COMMIT_MS_MAX)
      .catch(() => {})
      .finally(() => {
        this.#committingItself = false
      })
  }

  /**
   * 1. The application is handed records. 2. While it works on them the group wants their partitions back. 3. Where all that
   * was handed out is committed there and then, and the application fails, nobody reads what it had not come to. So they
   * stay until it comes for more, or its time between two polls is over.
   */
  async #revoke(partitions: readonly TopicPartition[]): Promise<void> {
    const generationId = this.#session?.committer.generationId
    await new Promise<void>(resolve => {
      this.#revocations.push(() => resolve(this.#revokeNow(partitions, generationId)))
      this.#fetcher.interrupt()
    })
  }

  /** What is committed is where the application is when this is called. */
  async #revokeNow(partitions: readonly TopicPartition[], generationId: number | undefined): Promise<void> {
    try {
      // It may have been put out of the group meanwhile.
      if (generationId !== this.#session?.committer.generationId) return
      for (const each of partitions) this.#fetcher.hold(each)
      if (this.#options.autoCommitIntervalMs > 0) await this.#commit(partitions, COMMIT_MS_MAX)
      await this.#options.onRevoked(partitions)
    } catch {
      // The group does not wait: what was not committed is read again by the next owner.
    } finally {
      // What was put out and has come back since is another matter.
      this.#drop(partitions.filter(each => this.#session?.owns(each) !== true))
    }
  }

  #giveUp(): void {
    for (const begin of this.#revocations.splice(0)) begin()
  }

  #drop(partitions: readonly TopicPartition[]): void {
    for (const each of partitions) {
      this.#fetcher.remove(each)
      this.#committed.delete(keyOf(each))
      this.#beginning.delete(keyOf(each))
    }
  }

  /** Begins where the group was, or where the reset says. */
  async #begin(added: readonly TopicPartition[]): Promise<void> {
    const turn = {}
    for (const each of added) this.#beginning.set(keyOf(each), turn)
    // It may be given up again while the offsets are on their way.
    const wanted = () => added.filter(each => this.#beginning.get(keyOf(each)) === turn)
    while (wanted().length > 0 && !this.#closed && !this.#client.closed) {
      try {
        await this.#beginWith(wanted())
        break
      } catch (error) {
        if (!(error instanceof ClientError)) throw error
        // For as long as they are ours the offsets are waited for, however long no coordinator is there.
        if (mayRetry(error)) continue
        this.#failure = error
        break
      }
    }
    if (this.#closed) return
    this.#options.onAssigned(this.#fetcher.partitions)
    this.#fetcher.interrupt()
  }

  async #beginWith(partitions: readonly TopicPartition[]): Promise<void> {
    const { group, offsetReset } = this.#options
    if (group === undefined) return
    const turns = new Map(partitions.map(each => [keyOf(each), this.#beginning.get(keyOf(each))]))
    const committed = await fetchOffsets(this.#client, group, partitions)
    const offsets = new Map(committed.map(each => [keyOf(each), each]))
    for (const each of partitions) {
      const key = keyOf(each)
      if (this.#beginning.get(key) !== turns.get(key) || this.#session?.owns(each) !== true) continue
      this.#beginning.delete(key)
      const found = offsets.get(key)
      if (found !== undefined) this.#committed.set(key, found.offset)
      this.#fetcher.add(each, found?.offset ?? offsetReset, found?.leaderEpoch)
    }
  }
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}-${partition}`
}
