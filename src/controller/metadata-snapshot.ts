import type { Epoch, Millis } from '#base/units.ts'
import { encodeMetadataRecord, type MetadataRecord } from '#core/metadata/record.ts'
import type { Voter } from '#core/raft/quorum.ts'
import { BatchBuilder } from '#records/builder.ts'
import { buildControlBatch, type ControlRecord } from '#records/control.ts'
import { kraftVersionRecord, snapshotFooterRecord, snapshotHeaderRecord, votersRecord } from './control-records.ts'

const BATCH_BYTES_MAX = 1024 * 1024
/** Some milliseconds of work. */
const RECORDS_AT_ONCE = 1000

export interface SnapshotContent {
  readonly records: Iterable<MetadataRecord>
  readonly kraftVersion: number
  readonly voters: readonly Voter[]
  readonly epoch: Epoch
  /** Time of the last record that the snapshot stands for. */
  readonly lastTimestamp: Millis
  readonly now: Millis
}

/**
 * A snapshot's bytes (KIP-630): batches with offsets of their own from 0: the header, with kraft.version 1 also that
 * version and the voters (KIP-853), the records, the footer. Where it yields, others may have their turn.
 */
export function* buildSnapshotInTurns({
  records,
  kraftVersion,
  voters,
  epoch,
  lastTimestamp,
  now,
}: SnapshotContent): Generator<void, Buffer[]> {
  const parts: Buffer[] = []
  let offset = 0
  const control = (...controls: ControlRecord[]) => {
    parts.push(buildControlBatch({ baseOffset: offset, leaderEpoch: epoch, timestamp: now }, controls))
    offset += controls.length
  }
  const header = snapshotHeaderRecord(lastTimestamp)
  if (kraftVersion > 0) control(header, kraftVersionRecord(kraftVersion), votersRecord(voters))
  else control(header)

  let builder = new BatchBuilder({ baseOffset: offset, leaderEpoch: epoch, bytesMax: BATCH_BYTES_MAX })
  const cut = () => {
    if (builder.recordsCount === 0) return
    offset += builder.recordsCount
    parts.push(builder.build())
    builder = new BatchBuilder({ baseOffset: offset, leaderEpoch: epoch, bytesMax: BATCH_BYTES_MAX })
  }
  let count = 0
  for (const record of records) {
    if (++count % RECORDS_AT_ONCE === 0) yield
    const value = encodeMetadataRecord(record)
    if (!builder.wouldFit(now, null, value)) cut()
    builder.append(now, null, value)
  }
  cut()
  control(snapshotFooterRecord())
  return parts
}
