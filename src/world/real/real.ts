import type { World } from '../world.ts'
import { realClock } from './clock.ts'
import { realDisk } from './disk.ts'
import { type LogOptions, openLog } from './log.ts'
import { realNetwork } from './network.ts'
import { realRandom } from './random.ts'

export interface RealWorldOptions {
  readonly log?: Partial<LogOptions>
}

/** The world as it is: Node's clock, the system's chance, sockets and files. */
export function realWorld({ log }: RealWorldOptions = {}): World {
  return {
    clock: realClock,
    random: realRandom,
    network: realNetwork,
    disk: realDisk,
    log: openLog({ level: 'info', format: process.stderr.isTTY ? 'line' : 'json', ...log }),
  }
}
