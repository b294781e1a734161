/**
 * The partition of `__consumer_offsets` that keeps a group: Java's `String.hashCode`, without its sign, modulo the
 * number of partitions. -2^31, which has no positive twin, counts as 0.
 */
export function partitionForGroup(groupId: string, partitionCount: number): number {
  let hash = 0
  for (let i = 0; i < groupId.length; i++) hash = (Math.imul(hash, 31) + groupId.charCodeAt(i)) | 0
  return (hash === -0x8000_0000 ? 0 : Math.abs(hash)) % partitionCount
}
