import { bootstrapRecords } from '#core/metadata/features.ts'
import type { FeatureRange } from '#core/metadata/node-image.ts'
import { decodeMetadataRecord, type FoldedRecord, type MetadataRecord } from '#core/metadata/record.ts'
import { batchesOf, isControl } from '#records/batch.ts'
import { recordsOf } from '#records/records.ts'
import type { Disk } from '#world/world.ts'

/** What a new cluster begins with, where somebody said so. */
export type Bootstrap = readonly MetadataRecord[] | undefined

/**
 * Reads `bootstrap.checkpoint`, a snapshot without an end offset that Kafka's `format` leaves in the log folder. Features
 * that this release cannot have at that level begin at the highest that it can. `minInSync`: `min.insync.replicas` of this node.
 */
export async function readBootstrap(
  disk: Disk,
  folder: string,
  supported: ReadonlyMap<string, FeatureRange>,
  minInSync: number,
): Promise<Bootstrap> {
  const found = await disk.readFile(`${folder}/bootstrap.checkpoint`)
  if (found === undefined) return undefined
  const bytes = Buffer.from(found.buffer, found.byteOffset, found.byteLength)
  const records: MetadataRecord[] = []
  let hasElr = false
  for (const record of recordsIn(bytes)) {
    if (record.type === 'Unknown') continue
    if (record.type !== 'FeatureLevel') {
      records.push(record)
      continue
    }
    const { name } = record.value
    const featureLevel = Math.min(record.value.featureLevel, supported.get(name)?.max ?? 0)
    if (featureLevel > 0) records.push({ ...record, value: { ...record.value, featureLevel } })
    if (name === 'eligible.leader.replicas.version' && featureLevel > 0) hasElr = true
  }
  const hasMinIsr = records.some(
    ({ type, value }) => type === 'Config' && 'name' in value && value.name === 'min.insync.replicas',
  )
  if (hasElr && !hasMinIsr) records.push(...bootstrapRecords(minInSync).filter(({ type }) => type === 'Config'))
  return records.length === 0 ? undefined : records
}

function* recordsIn(bytes: Buffer): Generator<FoldedRecord> {
  for (const at of batchesOf(bytes)) {
    if (isControl(bytes, at)) continue
    for (const { value } of recordsOf(bytes, at)) if (value !== null) yield decodeMetadataRecord(value)
  }
}
