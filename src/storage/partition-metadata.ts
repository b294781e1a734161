import { isUuid, type Uuid } from '#base/uuid.ts'
import type { Disk } from '#world/world.ts'
import { overwriteFile, readText } from './files.ts'

const FILE = 'partition.metadata'

/** `partition.metadata`: `version: 0` and `topic_id: <uuid>`, which tells a topic from a later one of the same name. */
export function writePartitionMetadata(disk: Disk, folder: string, topicId: Uuid): Promise<void> {
  return overwriteFile(disk, `${folder}/${FILE}`, Buffer.from(`version: 0\ntopic_id: ${topicId}\n`))
}

/** Undefined when there is none, or it is torn. */
export async function readPartitionMetadata(disk: Disk, folder: string): Promise<Uuid | undefined> {
  const text = await readText(disk, `${folder}/${FILE}`)
  const id = text === undefined ? undefined : /^topic_id: *(\S+)$/m.exec(text)?.[1]
  return id !== undefined && isUuid(id) ? id : undefined
}
