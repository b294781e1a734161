import { DecodeError } from '#base/bytes.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { METADATA_TOPIC_ID } from '#base/uuid.ts'
import type { MetadataDelta } from '#core/metadata/delta.ts'
import { foldBatch } from '#core/metadata/fold.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import { CLUSTER_METADATA_TOPIC } from '#core/metadata/topic-name.ts'
import { isWholeSnapshot } from '#core/metadata/whole-snapshot.ts'
import { quorumRecordsOf } from '#core/raft/quorum-record.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { baseOffset, batchesOf, checkBatch, checkCrc, lastOffset, leaderEpoch } from '#records/batch.ts'
import type { Clock, Logger } from '#world/world.ts'
import type { Deadlines } from '../deadlines.ts'
import type { ControllerLink } from './controller-link.ts'
import type { Controllers } from './controllers.ts'

const FETCH_WAIT_MS = 1000
/** Beyond the wait: a controller that stands still is left about when the others have elected another. */
const FETCH_GRACE_MS = 1500
/** As much as a slow way may need for what is fetched at once; it is granted step by step. */
const FETCH_GRACE_MAX_MS = 48_000
const REFUSED_REST_MS = 10
/** A controller that lacks what was committed: one that has just started catches up in no time. */
const LACKING_REST_MS = 50
const LACKING_PATIENCE_MS = 10_000
/** It may be large, and mostly stays as it is. */
const DAMAGED_REST_MS = 1000
/** What a client was promised is here by then, or the broker is behind for another reason. */
const CATCH_UP_WAIT_MS = 5000
const FETCH_BYTES_MAX = 8 * 1024 * 1024
/** A piece of a snapshot has so long, and over a slow way it is a smaller one the next time. */
const PIECE_MS = 30_000
const PIECE_BYTES_MIN = 64 * 1024

export interface FollowerOptions {
  readonly nodeId: NodeId
  readonly clusterId: string | null
  readonly link: ControllerLink
  /** Told what the answers say of the quorum. */
  readonly controllers: Controllers
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly log: Logger
  /** Brings the broker to what the image says now. The next records are applied after it. */
  readonly changed: (delta: MetadataDelta) => Promise<void>
}

/** Follows the metadata log as an observer of the quorum, and keeps the image that the broker answers from. */
export class MetadataFollower {
  #image = new MetadataImage({ deltas: true })
  readonly #options: FollowerOptions
  #fetchOffset: Offset = 0
  /** Everything below is in the image, and the broker has acted on it. */
  #appliedOffset: Offset = 0
  /** Of the last record that is in the image; a fetch from the start says 0, as Kafka's own observers do. */
  #lastEpoch: Epoch = 0
  #leaderEpoch: Epoch = 0
  #kraftVersion = 0
  #graceMs = FETCH_GRACE_MS
  #pieceBytes = FETCH_BYTES_MAX
  #stopped = false
  #complainedAt: Offset = -1
  #lackingSince: Millis | undefined
  readonly #waiting: { readonly until: () => boolean; readonly resolve: () => void }[] = []

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  get image(): MetadataImage {
    return this.#image
  }

  /** The offset up to which the broker lives in the cluster's present. */
  get appliedOffset(): Offset {
    return this.#appliedOffset
  }

  /** Which of the features is raft's own and no record of the metadata: 1 where voters are records (KIP-853). */
  get kraftVersion(): number {
    return this.#kraftVersion
  }

  start(): void {
    void this.#run()
  }

  stop(): void {
    this.#stopped = true
    for (const { resolve } of this.#waiting.splice(0)) resolve()
  }

  /** Resolves when the condition holds of the image after some change, or the follower has stopped. */
  when(until: () => boolean): Promise<void> {
    if (until() || this.#stopped) return Promise.resolve()
    return new Promise(resolve => this.#waiting.push({ until, resolve }))
  }

  /** As `when`, for a bounded time. */
  async caughtUp(until: () => boolean, timeoutMs: Millis = CATCH_UP_WAIT_MS): Promise<void> {
    if (until()) return
    const { deadlines } = this.#options
    await new Promise<void>(resolve => {
      let isOver = false
      const deadline = deadlines.after(timeoutMs, () => {
        isOver = true
        resolve()
      })
      // What never comes true is forgotten with the next change.
      void this.when(() => isOver || until()).then(() => {
        deadlines.cancel(deadline)
        resolve()
      })
    })
  }

  async #run(): Promise<void> {
    const { link, log } = this.#options
    let failures = 0
    while (!this.#stopped) {
      try {
        await this.#fetch()
        failures = 0
      } catch (error) {
        if (!(error instanceof ChannelError) && !(error instanceof DecodeError)) throw error
        if (this.#stopped) return
        if (error instanceof ChannelError && error.code === 'timed-out')
          this.#graceMs = Math.min(2 * this.#graceMs, FETCH_GRACE_MAX_MS)
        if (error instanceof DecodeError) {
          this.#complain(
            error.message,
            'the metadata log holds what this release cannot read, so the broker stays behind. Start it with a release as new as the controllers; if it is, the log of this controller is damaged',
          )
        } else log.debug({ reason: error.message }, 'the metadata log could not be read; trying again')
        // Where a controller answers, the link has nothing to wait for: what fails each time would be tried as fast as can be.
        await link.rest(error instanceof DecodeError ? DAMAGED_REST_MS : failures > 0 ? REFUSED_REST_MS : 0)
        failures++
      }
    }
  }

  /** Once for each place: it is read again and again, and stays what it is until somebody acts. */
  #complain(reason: string, message: string): void {
    if (this.#complainedAt === this.#fetchOffset) return
    this.#complainedAt = this.#fetchOffset
    this.#options.log.warn({ offset: this.#fetchOffset, reason }, message)
  }

  #lacking({ epoch, endOffset }: { readonly epoch: Epoch; readonly endOffset: Offset }): void {
    const now = this.#options.clock.monotonic()
    this.#lackingSince ??= now
    if (now - this.#lackingSince < LACKING_PATIENCE_MS) return
    this.#complain(
      `its epoch ${epoch} ends at offset ${endOffset}`,
      'the controller lacks metadata that was committed, so the broker stays where it is. If the controllers were restored from a backup, start this broker again; if not, their disks have lost it',
    )
  }

  async #fetch(): Promise<void> {
    const { nodeId, clusterId, link, controllers } = this.#options
    const answer = await link.ask(
      API.Fetch,
      {
        clusterId,
        replicaState: { replicaId: nodeId },
        maxWaitMs: FETCH_WAIT_MS,
        minBytes: 1,
        maxBytes: FETCH_BYTES_MAX,
        topics: [
          {
            topic: CLUSTER_METADATA_TOPIC,
            topicId: METADATA_TOPIC_ID,
            partitions: [
              {
                partition: 0,
                currentLeaderEpoch: this.#leaderEpoch,
                fetchOffset: this.#fetchOffset,
                lastFetchedEpoch: this.#lastEpoch,
                partitionMaxBytes: FETCH_BYTES_MAX,
              },
            ],
          },
        ],
      },
      FETCH_WAIT_MS + this.#graceMs,
    )
    this.#graceMs = Math.max(FETCH_GRACE_MS, this.#graceMs / 2)
    const partition = answer.responses[0]?.partitions[0]
    if (answer.errorCode !== ErrorCode.NONE || partition === undefined) {
      link.lookElsewhere()
      await link.rest()
      return
    }
    const { leaderId, leaderEpoch } = partition.currentLeader
    controllers.heard(leaderId, leaderEpoch, answer.nodeEndpoints)
    if (leaderEpoch > this.#leaderEpoch) this.#leaderEpoch = leaderEpoch
    if (partition.errorCode !== ErrorCode.NONE) {
      if (partition.errorCode !== ErrorCode.FENCED_LEADER_EPOCH) {
        this.#options.log.debug(
          { error: errorOf(partition.errorCode).name },
          'this controller does not serve the metadata log',
        )
        link.lookElsewhere()
      }
      await link.rest(REFUSED_REST_MS)
      return
    }
    link.wasAnswered()
    if (partition.snapshotId.epoch >= 0) {
      await this.#loadSnapshot(partition.snapshotId.endOffset, partition.snapshotId.epoch)
      return
    }
    const { divergingEpoch } = partition
    if (divergingEpoch.epoch >= 0) {
      this.#lacking(divergingEpoch)
      await link.rest(LACKING_REST_MS)
      return
    }
    this.#lackingSince = undefined
    await this.#apply(partition.records ?? Buffer.alloc(0), partition.highWatermark)
  }

  async #apply(records: Buffer, highWatermark: Offset): Promise<void> {
    let damage: string | undefined
    let unreadable: DecodeError | undefined
    for (const at of batchesOf(records)) {
      // What is not committed may still change: it is fetched again.
      if (lastOffset(records, at) >= highWatermark) break
      damage = this.#damageOf(records, at)
      if (damage !== undefined) break
      try {
        foldBatch(this.#image, records, at, { from: this.#fetchOffset })
        this.#noteQuorum(records, at)
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
        unreadable = error
        break
      }
      this.#fetchOffset = lastOffset(records, at) + 1
      this.#lastEpoch = leaderEpoch(records, at)
    }
    // Also on what came before something that cannot be read: the image has it.
    await this.#act()
    if (unreadable !== undefined) throw unreadable
    if (damage === undefined) return
    const { link } = this.#options
    this.#complain(
      damage,
      'the metadata log of a controller is damaged, so the broker looks for another one, and stays behind until it has it. Check the disk of the controller',
    )
    link.lookElsewhere()
    await link.rest(DAMAGED_REST_MS)
  }

  #damageOf(records: Buffer, at: number): string | undefined {
    const wrong = checkBatch(records, at, records.length) ?? checkCrc(records, at)
    if (wrong !== undefined) return wrong.message
    const first = baseOffset(records, at)
    // The log has no gaps: what lies in one would never come.
    return first > this.#fetchOffset ? `offset ${first} where ${this.#fetchOffset} is due` : undefined
  }

  #noteQuorum(bytes: Buffer, at: number): void {
    for (const { record } of quorumRecordsOf(bytes, at)) {
      if (record.type === 'kraftVersion') this.#kraftVersion = record.level
    }
  }

  /** The broker acts on what changed before anybody is told that it did. */
  async #act(): Promise<void> {
    const delta = this.#image.takeDelta()
    if (delta !== undefined) {
      if (delta.controllers) this.#hearOfControllers()
      await this.#options.changed(delta)
    }
    if (this.#appliedOffset === this.#fetchOffset && delta === undefined) return
    this.#appliedOffset = this.#fetchOffset
    const waiting = this.#waiting.splice(0)
    for (const each of waiting) {
      if (each.until()) each.resolve()
      else this.#waiting.push(each)
    }
  }

  #hearOfControllers(): void {
    const { controllers } = this.#options
    controllers.found(
      [...this.#image.controllers.values()].flatMap(({ id, endPoints }) => {
        const found = endPoints.find(({ name }) => name === controllers.listener) ?? endPoints[0]
        return found === undefined ? [] : [{ id, host: found.host, port: found.port }]
      }),
    )
  }

  /** Starts again from a snapshot, whose image replaces what was known. */
  async #loadSnapshot(endOffset: Offset, epoch: Epoch): Promise<void> {
    const parts: Buffer[] = []
    let position = 0
    for (;;) {
      const answer = await this.#piece({ endOffset, epoch }, position)
      const partition = answer.topics[0]?.partitions[0]
      if (answer.errorCode !== ErrorCode.NONE || partition === undefined || partition.errorCode !== ErrorCode.NONE) {
        this.#options.link.lookElsewhere()
        await this.#options.link.rest(REFUSED_REST_MS)
        return
      }
      // The bytes are a view of the answer's frame, which lives as long as they do.
      parts.push(partition.unalignedRecords)
      position += partition.unalignedRecords.length
      if (position >= partition.size) break
      // Half a snapshot would be an image that lacks topics.
      if (partition.unalignedRecords.length === 0) {
        await this.#options.link.rest(DAMAGED_REST_MS)
        return
      }
    }
    const snapshot = Buffer.concat(parts)
    if (!isWholeSnapshot(snapshot)) {
      this.#complain(
        `the one that ends at offset ${endOffset}`,
        'a snapshot of the metadata is damaged, so the broker stays behind. Check the disk of the controller',
      )
      this.#options.link.lookElsewhere()
      await this.#options.link.rest(DAMAGED_REST_MS)
      return
    }
    const image = new MetadataImage({ deltas: true })
    this.#kraftVersion = 0
    for (const at of batchesOf(snapshot)) {
      foldBatch(image, snapshot, at, { offset: endOffset - 1 })
      this.#noteQuorum(snapshot, at)
    }
    image.replaces(this.#image)
    this.#image = image
    this.#fetchOffset = endOffset
    this.#lastEpoch = epoch
    await this.#act()
  }

  async #piece(snapshotId: { readonly endOffset: Offset; readonly epoch: Epoch }, position: number) {
    const { clusterId, nodeId: replicaId, link } = this.#options
    const partition = { partition: 0, currentLeaderEpoch: this.#leaderEpoch, snapshotId, position }
    const topics = [{ name: CLUSTER_METADATA_TOPIC, partitions: [partition] }]
    try {
      return await link.ask(API.FetchSnapshot, { clusterId, replicaId, maxBytes: this.#pieceBytes, topics }, PIECE_MS)
    } catch (error) {
      if (error instanceof ChannelError && error.code === 'timed-out')
        this.#pieceBytes = Math.max(this.#pieceBytes / 4, PIECE_BYTES_MIN)
      throw error
    }
  }
}
