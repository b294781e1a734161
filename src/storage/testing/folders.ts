import { SeededRandom } from '#base/random.ts'
import type { Uuid } from '#base/uuid.ts'
import { LOG_CONFIG_DEFAULT } from '../log-config.ts'
import type { LogFolders, LogFoldersOptions } from '../log-folders.ts'
import type { OpenedPartition } from '../log-opener.ts'
import type { MemoryDisk } from './memory-disk.ts'
import { LastBatchFold, LinesLogger, ManualClock } from './rig.ts'

export const TOPIC_A = 'AAAAAAAAAAAAAAAAAAAAAg' as Uuid
export const TOPIC_B = 'AAAAAAAAAAAAAAAAAAAAAw' as Uuid
export const T0 = 1_700_000_000_000

/** Of a node with the folders /a and /b. */
export function folderOptions(
  disk: MemoryDisk,
  more: Partial<LogFoldersOptions> = {},
): LogFoldersOptions & { log: LinesLogger } {
  const random = new SeededRandom(1)
  return {
    disk,
    clock: new ManualClock(),
    random,
    log: new LinesLogger(),
    paths: ['/a', '/b'],
    nodeId: 1,
    ...more,
  } as LogFoldersOptions & { log: LinesLogger }
}

export async function openPartition(
  folders: LogFolders,
  partition: number,
  topicId: Uuid = TOPIC_A,
): Promise<OpenedPartition & { readonly fold: LastBatchFold }> {
  const fold = new LastBatchFold()
  return { fold, ...(await folders.open({ topic: 'topic', topicId, partition, config: LOG_CONFIG_DEFAULT, fold })) }
}
