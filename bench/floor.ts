/** What the kernel alone costs for the same bytes: floor.c, built where there is a compiler. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { peer } from './server.ts'

const run = promisify(execFile)

export interface FloorCost {
  /** Processor seconds per GB: a socket read into a file, and a cached file sent to a socket. */
  readonly ingest: number
  readonly egress: number
}

export class Floor {
  readonly #dir: string

  private constructor(dir: string) {
    this.#dir = dir
  }

  /** @returns what is missing, where something is. */
  static async build(): Promise<Floor | string> {
    const source = join(peer, 'floor.c')
    if (!existsSync(source)) return `${source} is not there`
    const dir = await mkdtemp(join(tmpdir(), 'tidemark-bench-floor-'))
    try {
      await run('gcc', ['-O2', '-w', source, '-o', join(dir, 'floor')], { timeout: 60_000 })
      return new Floor(dir)
    } catch (error) {
      await rm(dir, { recursive: true, force: true })
      return `gcc could not build floor.c: ${(error as Error).message}`
    }
  }

  async measure(gigabytes: number): Promise<FloorCost> {
    const { stdout } = await run(join(this.#dir, 'floor'), [this.#dir, String(gigabytes)], { timeout: 120_000 })
    const cost = (what: string): number => Number(new RegExp(`^${what}.*: ([\\d.]+) CPU-s/GB`, 'm').exec(stdout)?.[1])
    return { ingest: cost('ingest'), egress: cost('egress') }
  }

  async remove(): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true })
  }
}
