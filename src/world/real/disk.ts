import fs from 'node:fs'
import { dirname } from 'node:path'
import { type Disk, type Entry, type File, type Lock, WorldError } from '../world.ts'
import { paceOf } from './disk-pace.ts'
import { worldError } from './errors.ts'
import { RealFile } from './file.ts'
import { syncTogether } from './file-system.ts'
import { takeLock } from './lock.ts'

const { constants, promises } = fs

/** Most files that are read whole are smaller: they need neither their size asked for nor a second read. */
const SMALL_FILE_BYTES = 1024

export const realDisk: Disk = {
  open(path, { create, write }): Promise<File> {
    const flags = (write ? constants.O_RDWR : constants.O_RDONLY) | (create ? constants.O_CREAT : 0)
    return new Promise((resolve, reject) => {
      fs.open(path, flags, 0o644, (error, descriptor) => {
        if (error) reject(worldError(error, `open ${path}`))
        else if (!write) resolve(new RealFile(descriptor, path))
        else {
          fs.fstat(descriptor, (_, stat) => {
            resolve(new RealFile(descriptor, path, stat === undefined ? undefined : paceOf(stat.dev)))
          })
        }
      })
    })
  },

  list(folder): Promise<readonly Entry[]> {
    return new Promise((resolve, reject) => {
      fs.readdir(folder, { withFileTypes: true }, (error, entries) => {
        if (error) reject(worldError(error, `list ${folder}`))
        else resolve(entries.map(entry => ({ name: entry.name, folder: entry.isDirectory() })))
      })
    })
  },

  async makeFolder(folder): Promise<void> {
    try {
      await makeFolders(folder)
    } catch (error) {
      throw worldError(error, `make folder ${folder}`)
    }
  },

  rename(from, to): Promise<void> {
    return new Promise((resolve, reject) => {
      fs.rename(from, to, error => {
        if (error) reject(worldError(error, `rename ${from} to ${to}`))
        else resolve()
      })
    })
  },

  async remove(path): Promise<void> {
    try {
      await promises.unlink(path)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return
      // Linux says EISDIR for a folder, macOS EPERM.
      if (code !== 'EISDIR' && code !== 'EPERM') throw worldError(error, `remove ${path}`)
      try {
        await promises.rm(path, { recursive: true, force: true })
      } catch (second) {
        throw worldError(second, `remove ${path}`)
      }
    }
  },

  readFile(path): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      fs.open(path, constants.O_RDONLY, (error, descriptor) => {
        if (error?.code === 'ENOENT') resolve(undefined)
        else if (error) reject(worldError(error, `read ${path}`))
        else {
          readWhole(descriptor, Buffer.allocUnsafeSlow(SMALL_FILE_BYTES), 0, (failure, bytes) => {
            fs.close(descriptor, () => {
              if (failure === null) resolve(bytes)
              else reject(worldError(failure, `read ${path}`))
            })
          })
        }
      })
    })
  },

  async syncFolder(folder): Promise<void> {
    // Windows cannot open a folder and writes names through by itself.
    if (process.platform === 'win32') return
    try {
      const handle = await promises.open(folder, constants.O_RDONLY)
      try {
        await handle.sync()
      } finally {
        await handle.close()
      }
    } catch (error) {
      throw worldError(error, `sync folder ${folder}`)
    }
  },

  syncAll: syncTogether,

  async space(folder): Promise<{ readonly free: number; readonly total: number }> {
    try {
      const { bavail, blocks, bsize } = await promises.statfs(folder)
      return { free: bavail * bsize, total: blocks * bsize }
    } catch (error) {
      throw worldError(error, `space of ${folder}`)
    }
  },

  bootId(): Promise<string | undefined> {
    return promises.readFile('/proc/sys/kernel/random/boot_id', 'latin1').then(
      text => text.trim() || undefined,
      () => undefined,
    )
  },

  async lock(path): Promise<Lock> {
    try {
      return await takeLock(path)
    } catch (error) {
      if (error instanceof WorldError) throw error
      throw worldError(error, `lock ${path}`)
    }
  },
}

/** Reads to the end of the file; `into` holds its first `filled` bytes. */
function readWhole(
  descriptor: number,
  into: Buffer,
  filled: number,
  done: (error: NodeJS.ErrnoException | null, bytes: Buffer) => void,
): void {
  fs.read(descriptor, into, filled, into.length - filled, filled, (error, count) => {
    const end = filled + count
    // A file gives less than it is asked for only at its end.
    if (error !== null || end < into.length) return done(error, into.subarray(0, end))
    fs.fstat(descriptor, (failure, stat) => {
      if (failure !== null) return done(failure, into)
      const larger = Buffer.allocUnsafeSlow(Math.max(stat.size, end) + 1)
      into.copy(larger)
      readWhole(descriptor, larger, end, done)
    })
  })
}

/**
 * As `mkdir` with `recursive`, which goes round for ever where a folder is refused with ENOENT in a parent that is there: in
 * one that was deleted and is still open, or that a system makes up (autofs, /proc).
 */
async function makeFolders(folder: string): Promise<void> {
  const made = await makeOne(folder)
  if (made === undefined) return
  const parent = dirname(folder)
  if ((made as NodeJS.ErrnoException).code !== 'ENOENT' || parent === folder) throw made
  await makeFolders(parent)
  const failure = await makeOne(folder)
  if (failure !== undefined) throw failure
}

/** Why there is no such folder now. */
async function makeOne(folder: string): Promise<unknown> {
  try {
    await promises.mkdir(folder)
    return undefined
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST' && (await promises.stat(folder)).isDirectory()
    return isThere ? undefined : error
  }
}
