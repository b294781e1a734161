import fs from 'node:fs'
import { type Disk, type Entry, type File, type Lock, WorldError } from '../world.ts'
import { worldError } from './errors.ts'
import { RealFile } from './file.ts'
import { syncTogether } from './file-system.ts'
import { takeLock } from './lock.ts'

const { constants, promises } = fs

export const realDisk: Disk = {
  open(path, { create, write }): Promise<File> {
    const flags = (write ? constants.O_RDWR : constants.O_RDONLY) | (create ? constants.O_CREAT : 0)
    return new Promise((resolve, reject) => {
      fs.open(path, flags, 0o644, (error, descriptor) => {
        if (error) reject(worldError(error, `open ${path}`))
        else resolve(new RealFile(descriptor, path))
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
      await promises.mkdir(folder, { recursive: true })
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

  async readFile(path): Promise<Uint8Array | undefined> {
    try {
      return await promises.readFile(path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw worldError(error, `read ${path}`)
    }
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

  async lock(path): Promise<Lock> {
    try {
      return await takeLock(path)
    } catch (error) {
      if (error instanceof WorldError) throw error
      throw worldError(error, `lock ${path}`)
    }
  },
}
