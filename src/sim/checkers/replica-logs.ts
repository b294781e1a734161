import type { Epoch, Offset } from '#base/units.ts'
import { baseOffset, batchesOf, crc, lastOffset, leaderEpoch } from '#records/batch.ts'
import { LOG_START_CHECKPOINT } from '#storage/offset-checkpoint.ts'
import type { FakeDisk } from '#world/fake/fake-disk.ts'
import { holds } from './partition-log.ts'

interface FoundBatch {
  readonly base: Offset
  readonly last: Offset
  readonly epoch: Epoch
  readonly crc: number
}

/** All batches of a partition's folder as they lie on a disk, in order. */
export function batchesOnDisk(disk: FakeDisk, folder: string): FoundBatch[] {
  const found: FoundBatch[] = []
  for (const name of disk.peekNames(folder)) {
    if (!/^\d{20}\.log$/.test(name)) continue
    const content = disk.peek(`${folder}/${name}`)
    if (content === undefined) continue
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
    for (const at of batchesOf(bytes)) {
      found.push({
        base: baseOffset(bytes, at),
        last: lastOffset(bytes, at),
        epoch: leaderEpoch(bytes, at),
        crc: crc(bytes, at),
      })
    }
  }
  return found
}

/**
 * Those of a partition of brokers, from where its log begins. What lies below was deleted, and goes with its file: of what
 * the epochs there were nobody knows any more, so a replica that was away may keep there what the others never had.
 */
export function keptOnDisk(disk: FakeDisk, folder: string, partition: string): FoundBatch[] {
  const content = disk.peek(`${folder}/${LOG_START_CHECKPOINT}`)
  const [topic, index] = [
    partition.slice(0, partition.lastIndexOf('-')),
    partition.slice(partition.lastIndexOf('-') + 1),
  ]
  const line = (content === undefined ? '' : Buffer.from(content).toString())
    .split('\n')
    .find(each => each.startsWith(`${topic} ${index} `))
  const start = Number(line?.split(' ')[2] ?? 0)
  return batchesOnDisk(disk, `${folder}/${partition}`).filter(({ base }) => base >= start)
}

/**
 * Copies of one log are the same, batch by batch, below `committed` and where both have something: neither offsets, nor
 * epochs, nor bytes differ.
 */
export function replicasAgree(
  what: string,
  copies: readonly { readonly who: string; readonly batches: readonly FoundBatch[] }[],
  committed: Offset,
): void {
  const [first, ...others] = copies.filter(({ batches }) => batches.length > 0)
  if (first === undefined) return
  for (const other of others) {
    const from = Math.max(first.batches[0]?.base ?? 0, other.batches[0]?.base ?? 0)
    const within = ({ base, last }: FoundBatch): boolean => base >= from && last < committed
    const [a, b] = [first.batches.filter(within), other.batches.filter(within)]
    for (let index = 0; index < Math.max(a.length, b.length); index++) {
      const [mine, theirs] = [a[index], b[index]]
      holds(
        mine !== undefined &&
          theirs !== undefined &&
          mine.base === theirs.base &&
          mine.last === theirs.last &&
          mine.epoch === theirs.epoch &&
          mine.crc === theirs.crc,
        `the replicas of ${what} differ below ${committed}: ${first.who} has ${batchText(mine)}, ${other.who} has ${batchText(theirs)}`,
      )
    }
  }
}

function batchText(batch: FoundBatch | undefined): string {
  if (batch === undefined) return 'nothing more'
  return `${batch.base} to ${batch.last} of epoch ${batch.epoch}, CRC ${batch.crc.toString(16)}`
}
