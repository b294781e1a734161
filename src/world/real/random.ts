import { randomFillSync } from 'node:crypto'
import type { Chance } from '../world.ts'

/** Fractions are drawn often (jitter), so their bytes are fetched from the system many at a time. */
const pool = new Uint32Array(256)
let left = 0

export const realRandom: Chance = {
  fraction: () => {
    if (left === 0) left = randomFillSync(pool).length
    const high = (pool[--left] as number) >>> 5
    const low = (pool[--left] as number) >>> 6
    return (high * 0x400_0000 + low) / 0x20_0000_0000_0000
  },
  fill: into => randomFillSync(into),
}
