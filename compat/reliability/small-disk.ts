/** A file system of a fixed size, to be filled: a tmpfs, which takes the right to mount. */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PIECE = Buffer.alloc(1 << 20)

/** Why no file system can be made here, if so. */
export function withoutMount(): string | false {
  if (process.platform !== 'linux') return 'mounting a tmpfs needs Linux'
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-mount-'))
  try {
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]).status !== 0)
      return 'mounting a tmpfs is not permitted'
    spawnSync('umount', ['-l', folder])
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export class SmallDisk {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'tidemark-small-disk-'))
  readonly data: string = join(this.folder, 'data')
  readonly #fillers: string[] = []

  /** Throws where it cannot be mounted. */
  constructor(bytes: number) {
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', this.folder])
    if (mounted.status !== 0) throw new Error(String(mounted.stderr))
    mkdirSync(this.data)
  }

  /** Takes all space but so much. */
  leave(bytes: number): void {
    const { bavail, bsize } = statfsSync(this.folder)
    const filler = join(this.folder, `filler-${this.#fillers.length}`)
    this.#fillers.push(filler)
    const file = openSync(filler, 'w')
    try {
      for (let left = bavail * bsize - bytes; left > 0; left -= PIECE.length)
        writeSync(file, PIECE, 0, Math.min(left, PIECE.length))
    } catch (error) {
      // Others write there, too: it may be full before.
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
    } finally {
      closeSync(file)
    }
  }

  free(): void {
    for (const filler of this.#fillers.splice(0)) rmSync(filler)
  }

  remove(): void {
    const { status, stderr } = spawnSync('umount', ['-l', this.folder])
    // It is called when a run has ended, perhaps with an error that must not be hidden.
    if (status !== 0) process.stderr.write(`${this.folder} stays mounted: ${stderr}\n`)
    else rmSync(this.folder, { recursive: true, force: true })
  }
}
