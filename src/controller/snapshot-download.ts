import { type Epoch, GiB, type Millis, type NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { CLUSTER_METADATA_TOPIC } from '#core/metadata/topic-name.ts'
import type { SnapshotId } from '#core/raft/log-view.ts'
import type { Channel } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import type { Clock } from '#world/world.ts'
import { ExchangeError } from './exchange.ts'
import { PieceSize } from './piece-size.ts'
import type { IncomingSnapshot } from './snapshots.ts'

const SNAPSHOT_BYTES_MAX = GiB
const DOWNLOAD_MS_MAX = 600_000

export interface SnapshotSource {
  readonly clusterId: string | null
  readonly nodeId: NodeId
  readonly directoryId: Uuid
  readonly leaderEpoch: Epoch
  readonly requestTimeoutMs: Millis
}

/**
 * Reads a snapshot from the leader by FetchSnapshot (KIP-630), piece by piece into its file. Rejects with a ChannelError,
 * an ExchangeError or a WorldError; also when it is larger, or takes longer, than any that makes sense.
 */
export async function downloadSnapshot(
  channel: Channel,
  into: IncomingSnapshot,
  source: SnapshotSource,
  clock: Clock,
  progressed: () => void,
): Promise<void> {
  const until = clock.monotonic() + DOWNLOAD_MS_MAX
  const pieces = new PieceSize()
  for (;;) {
    const from = clock.monotonic()
    const { records, size } = await piece(channel, into.id, into.size, pieces.bytes, source)
    pieces.came(clock.monotonic() - from)
    if (size > SNAPSHOT_BYTES_MAX) throw unusable(`it has ${size} bytes`)
    if (records.length === 0 || into.size + records.length > size) throw unusable('a piece of it has a wrong size')
    await into.append(records)
    progressed()
    if (into.size === size) return
    if (clock.monotonic() > until) throw unusable('it takes too long')
  }
}

async function piece(
  channel: Channel,
  snapshotId: SnapshotId,
  position: number,
  maxBytes: number,
  { clusterId, nodeId: replicaId, directoryId, leaderEpoch, requestTimeoutMs: timeoutMs }: SnapshotSource,
): Promise<{ readonly records: Buffer; readonly size: number }> {
  const partition = {
    partition: 0,
    currentLeaderEpoch: leaderEpoch,
    snapshotId,
    position,
    replicaDirectoryId: directoryId,
  }
  const topics = [{ name: CLUSTER_METADATA_TOPIC, partitions: [partition] }]
  const body = { clusterId, replicaId, maxBytes, topics }
  const answer = await channel.ask(API.FetchSnapshot, body, { timeoutMs })
  const answered = answer.topics[0]?.partitions[0]
  const errorCode = answer.errorCode === ErrorCode.NONE ? (answered?.errorCode ?? ErrorCode.NONE) : answer.errorCode
  if (errorCode !== ErrorCode.NONE) throw new ExchangeError(errorCode, `refused with ${errorOf(errorCode).name}`)
  if (answered === undefined || answered.position !== position)
    throw unusable('a piece of it is not what was asked for')
  return { records: answered.unalignedRecords, size: answered.size }
}

function unusable(why: string): ExchangeError {
  return new ExchangeError(ErrorCode.UNKNOWN_SERVER_ERROR, why)
}
