import { ByteReader, ByteWriter, DecodeError } from '#base/bytes.ts'
import { encodeMetadataRecord, metadataRecord } from '#core/metadata/record.ts'
import { batchesOf, isControl } from '#records/batch.ts'
import { recordsOf } from '#records/records.ts'

/** A tag that Kafka's NoOpRecord does not have, and that its readers skip. */
const CLUSTER_ID_TAG = 9092
const ID_BYTES_MAX = 100

/**
 * The record by which a quorum that was founded without a format step says which cluster it is: a NoOpRecord with the id in
 * a tagged field. A node stores the id only after this record is committed, so that no two members of one quorum ever draw
 * two ids: whoever leads next has the record, or nobody has stored what it said.
 */
export function clusterRecord(clusterId: string): Buffer {
  const noOp = encodeMetadataRecord(metadataRecord('NoOp', 0, {}))
  const id = Buffer.from(clusterId)
  const tags = new ByteWriter(16)
  tags.uvarint(1)
  tags.uvarint(CLUSTER_ID_TAG)
  tags.uvarint(id.length)
  // The last byte says that there are no tags.
  return Buffer.concat([noOp.subarray(0, -1), tags.written(), id])
}

/** The cluster's id that a log says, if one of its batches holds that record. */
export function clusterIdIn(batches: Buffer): string | undefined {
  const prefix = encodeMetadataRecord(metadataRecord('NoOp', 0, {})).subarray(0, -1)
  for (const at of batchesOf(batches)) {
    if (isControl(batches, at)) continue
    for (const { value } of recordsOf(batches, at)) {
      if (value === null || value.length <= prefix.length + 1) continue
      if (!value.subarray(0, prefix.length).equals(prefix)) continue
      const id = tagged(value.subarray(prefix.length))
      if (id !== undefined) return id
    }
  }
  return undefined
}

function tagged(bytes: Buffer): string | undefined {
  const reader = new ByteReader(bytes)
  try {
    for (let left = reader.uvarint(); left > 0; left--) {
      const tag = reader.uvarint()
      const size = reader.uvarint()
      if (size > reader.remaining || size > ID_BYTES_MAX) return undefined
      const at = reader.position
      if (tag === CLUSTER_ID_TAG) return bytes.toString('utf8', at, at + size)
      reader.position = at + size
    }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
  }
  return undefined
}
