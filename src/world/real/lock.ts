import { promises } from 'node:fs'
import os from 'node:os'
import { dirname } from 'node:path'
import { type Lock, WorldError } from '../world.ts'
import { holdFileSystem } from './file-system.ts'
import { findKernel } from './kernel.ts'

/**
 * A lock of the system where it can be reached: it ends with the process, and it is the one that Kafka takes, so that
 * neither starts on the other's folder. Elsewhere the file holds the number of the process that owns it.
 */
export async function takeLock(path: string): Promise<Lock> {
  const kernel = findKernel()
  if (kernel === undefined) return takeByNumber(path)
  const handle = await promises.open(path, 'a+', 0o644)
  const locked = kernel.lock(handle.fd)
  if (locked === 0) {
    // Who locks a folder is about to write there.
    const letGo = holdFileSystem(dirname(path))
    return {
      release: async () => {
        letGo()
        await handle.close()
      },
    }
  }
  await handle.close()
  const { EAGAIN, EACCES } = os.constants.errno
  if (locked === -EAGAIN || locked === -EACCES) throw busy(path)
  // A file system without locks.
  return takeByNumber(path)
}

function busy(path: string): WorldError {
  return new WorldError('EBUSY', `lock ${path}: another process holds it`)
}

async function takeByNumber(path: string): Promise<Lock> {
  const claim = `${path}.owner`
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      await promises.writeFile(claim, `${process.pid}\n`, { flag: 'wx' })
      return { release: () => promises.rm(claim, { force: true }) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    if (isAlive(Number.parseInt(await promises.readFile(claim, 'utf8').catch(() => ''), 10))) throw busy(path)
    await promises.rm(claim, { force: true })
  }
  throw busy(path)
}

function isAlive(pid: number): boolean {
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
