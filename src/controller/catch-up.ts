import { Complaints } from '#base/complaints.ts'
import type { Epoch, Millis, NodeId } from '#base/units.ts'
import type { SnapshotId } from '#core/raft/log-view.ts'
import { ChannelError } from '#network/channel.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Logger, type World, WorldError } from '#world/world.ts'
import type { ControllerConfig } from './config.ts'
import { ExchangeError } from './exchange.ts'
import type { Exchanges } from './exchanges.ts'
import type { Folded, MetadataLog } from './metadata-log.ts'
import { downloadSnapshot } from './snapshot-download.ts'
import type { IncomingSnapshot } from './snapshots.ts'

const RETRY_MS: Millis = 1000

export interface CatchUpOptions {
  readonly world: World
  readonly config: ControllerConfig
  readonly logger: Logger
  readonly log: MetadataLog
  readonly exchanges: Exchanges
  /** Whether this node still follows that leader. */
  readonly follows: (leaderId: NodeId, epoch: Epoch) => boolean
  /** A piece of the snapshot has come. */
  readonly progressed: () => void
  /** No snapshot of this node's own is being stored when it resolves, nor before what it gives is called. */
  readonly hold: () => Promise<() => void>
  readonly failed: (error: StorageError | WorldError) => void
  readonly isStopped: () => boolean
}

/** A node whose log ends before the leader's begins starts anew at a snapshot of the leader. */
export class CatchUp {
  readonly #options: CatchUpOptions
  readonly #complaints: Complaints

  constructor(options: CatchUpOptions) {
    this.#options = options
    this.#complaints = new Complaints(options.world.clock, options.logger)
  }

  /** What the snapshot holds, once the log begins at it; undefined when it could not be had, and nothing has changed. */
  async load(id: SnapshotId, leaderId: NodeId, epoch: Epoch): Promise<Folded | undefined> {
    const { failed } = this.#options
    let release: (() => void) | undefined
    try {
      const incoming = await this.#download(id, leaderId, epoch)
      release = await this.#options.hold()
      await this.#install(incoming, leaderId, epoch)
      return await this.#adopt(id)
    } catch (error) {
      if (isStorage(error)) failed(error)
      else if (!(error instanceof ChannelError) && !(error instanceof ExchangeError)) throw error
      const reason = error.message
      this.#complaints.tell(
        'warn',
        'no snapshot',
        { ...id, leaderId, reason },
        'a snapshot of the metadata could not be had from the leader, so this controller stays behind; it tries again. Check the disk here, and the network to the leader',
      )
      return undefined
    } finally {
      release?.()
    }
  }

  async #download(id: SnapshotId, leaderId: NodeId, leaderEpoch: Epoch): Promise<IncomingSnapshot> {
    const { config, log, exchanges, world } = this.#options
    const { nodeId, directoryId } = config
    const channel = await exchanges.peers.channel(leaderId, 'fetch')
    const incoming = await log.beginSnapshot(id)
    try {
      const { clusterId, requestTimeoutMs } = exchanges.asker
      const source = { clusterId, nodeId, directoryId, leaderEpoch, requestTimeoutMs }
      await downloadSnapshot(channel, incoming, source, world.clock, this.#options.progressed)
      return incoming
    } catch (error) {
      await log.forgoSnapshot(incoming)
      throw error
    }
  }

  async #install(incoming: IncomingSnapshot, leaderId: NodeId, leaderEpoch: Epoch): Promise<void> {
    const { log } = this.#options
    try {
      if (this.#options.isStopped() || !this.#options.follows(leaderId, leaderEpoch)) {
        throw new ExchangeError(ErrorCode.NOT_LEADER_OR_FOLLOWER, 'the leader is another one by now')
      }
      if (!(await log.install(incoming))) throw new ExchangeError(ErrorCode.CORRUPT_MESSAGE, 'it is damaged')
    } catch (error) {
      await log.forgoSnapshot(incoming)
      throw error
    }
  }

  /** The snapshot is there for good, so the log has to follow, however often the disk refuses. */
  async #adopt(id: SnapshotId): Promise<Folded | undefined> {
    const { log, logger, world, failed } = this.#options
    while (!this.#options.isStopped()) {
      try {
        await log.restartAt(id)
        const folded = await log.fold(0)
        logger.info({ ...id }, 'this controller was far behind and begins at a snapshot of the leader')
        return folded
      } catch (error) {
        if (!isStorage(error)) throw error
        failed(error)
      }
      await new Promise<void>(resolve => world.clock.after(RETRY_MS, resolve))
    }
    return undefined
  }
}

function isStorage(error: unknown): error is StorageError | WorldError {
  return error instanceof StorageError || error instanceof WorldError
}
