import type { Millis, Offset } from '#base/units.ts'
import type { LogConfig } from './log-config.ts'
import type { Segment } from './segment.ts'

export type RetentionReason = 'time' | 'size' | 'start offset'

/**
 * How many segments, from the oldest, retention deletes; only whole ones below the high watermark. When that is all of
 * them the log has to roll first, so that an empty one is left to say where the log goes on.
 */
export async function countExpired(
  segments: readonly Segment[],
  config: LogConfig,
  now: Millis,
  highWatermark: Offset,
  startOffset: Offset,
  endOffset: Offset,
): Promise<{ readonly count: number; readonly reason: RetentionReason | undefined }> {
  const deletes = config.cleanupPolicy.has('delete')
  let left = 0
  for (const segment of segments) left += segment.size
  let reason: RetentionReason | undefined
  let count = 0
  for (const segment of segments) {
    const upperBound = segments[count + 1]?.baseOffset ?? endOffset
    if (upperBound > highWatermark || segment.size === 0) break
    const because = await whyExpired(segment, config, now, left, upperBound <= startOffset, deletes)
    if (because === undefined) break
    reason ??= because
    left -= segment.size
    count++
  }
  return { count, reason }
}

async function whyExpired(
  segment: Segment,
  { retentionMs, retentionBytes }: LogConfig,
  now: Millis,
  left: number,
  isBelowStart: boolean,
  deletes: boolean,
): Promise<RetentionReason | undefined> {
  if (isBelowStart) return 'start offset'
  if (!deletes) return undefined
  if (retentionBytes >= 0 && left - segment.size >= retentionBytes) return 'size'
  if (retentionMs < 0) return undefined
  const newest = await segment.maxTimestamp()
  return now - (newest >= 0 ? newest : segment.since) > retentionMs ? 'time' : undefined
}
