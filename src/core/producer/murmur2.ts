const SEED = 0x9747b28c
const M = 0x5bd1e995

/** MurmurHash2 with the seed that Kafka's clients share, as a signed 32-bit integer. Equal keys meet across clients. */
export function murmur2(bytes: Uint8Array): number {
  const length = bytes.length
  const whole = length & ~3
  let hash = SEED ^ length
  for (let at = 0; at < whole; at += 4) {
    let k =
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)
    k = Math.imul(k, M)
    k ^= k >>> 24
    hash = Math.imul(hash, M) ^ Math.imul(k, M)
  }
  const rest = length - whole
  if (rest === 3) hash ^= (bytes[whole + 2] as number) << 16
  if (rest >= 2) hash ^= (bytes[whole + 1] as number) << 8
  if (rest >= 1) hash = Math.imul(hash ^ (bytes[whole] as number), M)
  hash ^= hash >>> 13
  hash = Math.imul(hash, M)
  return hash ^ (hash >>> 15)
}

/** The partition of a key among `count` partitions, the one that Kafka's Java client takes. */
export function partitionForKey(key: Uint8Array, count: number): number {
  return (murmur2(key) & 0x7fff_ffff) % count
}
