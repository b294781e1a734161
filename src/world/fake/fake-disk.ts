import type { SeededRandom } from '#base/random.ts'
import { type Disk, type Entry, type File, type Lock, WorldError } from '../world.ts'
import { FakeFile } from './fake-file.ts'
import { Folder, Names } from './names.ts'
import type { Micros } from './schedule.ts'

/** What may be wrong with a disk; all of it may change while it is in use. */
export interface DiskFaults {
  /** The folder below which it is wrong, as when each lies on a disk of its own; everywhere when undefined. */
  within: string | undefined
  /** How long an operation takes, from and to. */
  latencyUs: readonly [Micros, Micros]
  /** How likely each fails with EIO. A failed write has written a prefix; a failed sync has lost anything. */
  readFails: number
  writeFails: number
  syncFails: number
  /** How likely the system takes a small write into its memory at once. */
  writesNow: number
  /** Bytes that fit; beyond is ENOSPC, after a prefix. */
  capacity: number
  /** Nothing comes back while it hangs. */
  hangs: boolean
  /** A broken disk for the checkers' sake: says that it synced and has not. */
  syncLies: boolean
}

/** So large that nobody counts. */
const UNLIMITED = 2 ** 40

export const NO_DISK_FAULTS: DiskFaults = {
  within: undefined,
  latencyUs: [20, 400],
  readFails: 0,
  writeFails: 0,
  syncFails: 0,
  writesNow: 0.5,
  capacity: UNLIMITED,
  hangs: false,
  syncLies: false,
}

interface Operation {
  readonly event: string
  readonly path: string
  readonly size: number
  /** Performs a part of it, or all when 1, if the process dies in the middle. */
  readonly interrupted?: (part: number) => void
}

/** What the disk needs from the node that it is in. */
export interface DiskHost {
  readonly random: SeededRandom
  /** Runs it later, unless the process has died by then. */
  after(delay: Micros, run: () => void): void
  trace(event: string, first: number, second: number, detail: string): void
}

/**
 * A disk in memory, which may: take its time, and so reorder what was not awaited; fail with EIO; be full; hang, and go on or fail after that. When the
 * process dies, what was under way happened, in part, or not at all, and what had returned stays. When the power is cut,
 * files keep what was synced and any or none of the sectors written since, names what was synced and a prefix of the changes
 * since. A disk that is replaced is empty. Its folders may lie on disks of their own, of which one has the faults. It never
 * changes what was synced, never tears a name, never lies unless told to.
 */
export class FakeDisk {
  faults: DiskFaults = { ...NO_DISK_FAULTS }
  readonly #host: DiskHost
  #names = new Names()
  readonly #underWay = new Set<Operation>()
  readonly #stuck: ((fails: boolean) => void)[] = []
  #locks = new Set<string>()
  #life = 0
  #boots = 0

  constructor(host: DiskHost) {
    this.#host = host
  }

  /** The disk as the process that lives now sees it. After its death nothing that it asks for happens or returns. */
  inThisLife(): Disk {
    const life = this.#life
    const here = <T>(operation: () => Promise<T>): Promise<T> =>
      life === this.#life ? operation() : new Promise(() => {})
    return {
      open: (path, how) => here(() => this.#open(path, how)),
      list: folder => here(() => this.#list(folder)),
      makeFolder: folder => here(() => this.#change('makeFolder', folder, () => this.#names.makeFolder(folder))),
      rename: (from, to) => here(() => this.#change('rename', `${from} ${to}`, () => this.#names.rename(from, to))),
      remove: path => here(() => this.#change('remove', path, () => this.#names.remove(path))),
      readFile: path => here(() => this.#readFile(path)),
      syncFolder: folder => here(() => this.#syncFolder(folder)),
      syncAll: (files, folders) => here(() => this.#syncAll(files, folders)),
      space: folder => here(() => this.#space(folder)),
      lock: path => here(() => this.#lock(path)),
      bootId: () => here(() => Promise.resolve(`boot-${this.#boots}`)),
    }
  }

  #open(path: string, { create, write }: { readonly create: boolean; readonly write: boolean }): Promise<File> {
    return this.perform({ event: 'open', path, size: 0 }, this.faultsOf(path).readFails, () => {
      const inode = this.#names.open(path, create)
      inode.opened++
      return new FakeFile(this, inode, path, write)
    })
  }

  #list(folder: string): Promise<readonly Entry[]> {
    return this.perform({ event: 'list', path: folder, size: 0 }, this.faultsOf(folder).readFails, () => {
      const entries = this.#names.list(folder)
      // In no order means in any.
      for (let i = entries.length - 1; i > 0; i--) {
        const j = this.#host.random.below(i + 1)
        const [a, b] = [entries[i] as Entry, entries[j] as Entry]
        entries[i] = b
        entries[j] = a
      }
      return entries
    })
  }

  #readFile(path: string): Promise<Uint8Array | undefined> {
    return this.perform({ event: 'readFile', path, size: 0 }, this.faultsOf(path).readFails, () => {
      const node = this.#names.find(path)
      if (node instanceof Folder) throw new WorldError('EISDIR', `read ${path}: it is a folder`)
      return node?.content.bytes.slice()
    })
  }

  #syncFolder(folder: string): Promise<void> {
    return this.perform({ event: 'syncFolder', path: folder, size: 0 }, this.faultsOf(folder).syncFails, () => {
      if (this.faults.syncLies) this.#names.folder(folder, `sync folder ${folder}`)
      else this.#names.sync(folder)
    })
  }

  #syncAll(files: readonly File[], folders: readonly string[]): Promise<boolean> {
    const ours = files.filter(file => file instanceof FakeFile)
    if (ours.length < files.length) return Promise.resolve(false)
    const syncs = ours.map(file => file.whatASyncWrites())
    const operation = { event: 'syncAll', path: folders.join(' '), size: files.length }
    return this.perform(operation, 0, () => {
      // That it failed says nothing: what is lost is told by the file's own sync.
      const { syncFails } = this.#faultsOfAny(folders)
      if (syncFails > 0 && this.#host.random.chance(syncFails)) return false
      for (const folder of folders) this.#names.folder(folder, `sync folder ${folder}`)
      if (this.faults.syncLies) return true
      for (const sync of syncs) sync()
      for (const folder of folders) this.#names.sync(folder)
      return true
    })
  }

  #space(folder: string): Promise<{ readonly free: number; readonly total: number }> {
    return this.perform({ event: 'space', path: folder, size: 0 }, 0, () => ({
      free: this.roomAt(folder),
      total: this.faultsOf(folder).capacity,
    }))
  }

  #lock(path: string): Promise<Lock> {
    return this.perform({ event: 'lock', path, size: 0 }, 0, () => {
      if (this.#locks.has(path)) throw new WorldError('EBUSY', `lock ${path}: another process holds it`)
      const locks = this.#locks
      locks.add(path)
      return {
        release: () => {
          locks.delete(path)
          return Promise.resolve()
        },
      }
    })
  }

  /** The faults that the disk has at a place. */
  faultsOf(path: string): DiskFaults {
    const { within } = this.faults
    return within === undefined || path === within || path.startsWith(`${within}/`) ? this.faults : NO_DISK_FAULTS
  }

  #faultsOfAny(folders: readonly string[]): DiskFaults {
    const faulty = folders.find(folder => this.faultsOf(folder) === this.faults)
    return faulty === undefined ? NO_DISK_FAULTS : this.faults
  }

  /** Bytes in the files of all that may be full. */
  get usedBytes(): number {
    return this.#names.usedBelow(this.faults.within)
  }

  /** Bytes that still fit. */
  roomAt(path: string): number {
    const { capacity } = this.faultsOf(path)
    return capacity === UNLIMITED ? capacity : Math.max(0, capacity - this.usedBytes)
  }

  /** The process dies: what was under way may have happened; nothing that it had open is open any more. */
  processDies(): void {
    this.#interrupt()
    for (const file of this.#names.files()) file.forgetFailedSyncs()
  }

  /**
   * The disk is replaced by an empty one, while no process lives; or the one that a folder lies on, without that the
   * machine is turned off.
   */
  replace(folder?: string): void {
    this.#interrupt()
    if (folder !== undefined) {
      this.#names.empty(folder)
      return
    }
    this.#boots++
    this.#names = new Names()
  }

  /** Counts what may have taken what was not synced. */
  get boots(): number {
    return this.#boots
  }

  /** What a checker finds in a file, whoever lives. */
  peek(path: string): Uint8Array | undefined {
    const node = this.#names.find(path)
    return node === undefined || node instanceof Folder ? undefined : node.content.bytes
  }

  /** The names in a folder, for a checker. */
  peekNames(folder: string): string[] {
    const node = this.#names.find(folder)
    return node instanceof Folder ? [...node.entries.keys()].sort() : []
  }

  powerCut(): void {
    this.#boots++
    this.#interrupt()
    this.#names.powerCut(this.#host.random)
  }

  #interrupt(): void {
    for (const operation of this.#underWay) {
      if (this.#host.random.chance(0.5))
        operation.interrupted?.(this.#host.random.chance(0.5) ? 1 : this.#host.random.fraction())
    }
    this.#underWay.clear()
    this.#stuck.length = 0
    this.#locks = new Set()
    this.#life++
  }

  /** Lets go of what hangs: it goes on, or writes and syncs fail at last. */
  unhang(how: 'go-on' | 'fail' = 'go-on'): void {
    this.faults.hangs = false
    for (const go of this.#stuck.splice(0)) go(how === 'fail')
  }

  #change(event: string, path: string, change: () => void): Promise<void> {
    const interrupted = (part: number): void => {
      try {
        if (part === 1) change()
      } catch (error) {
        if (!(error instanceof WorldError)) throw error
      }
    }
    return this.perform({ event, path, size: 0, interrupted }, this.faultsOf(path).writeFails, change)
  }

  /** Does it after a while, or fails in that time. */
  perform<T>(operation: Operation, fails: number, run: () => T, failed?: () => void): Promise<T> {
    const { random } = this.#host
    const [from, to] = this.faultsOf(operation.path).latencyUs
    const life = this.#life
    return new Promise((resolve, reject) => {
      this.#underWay.add(operation)
      const go = (failsNow: boolean): void => {
        if (life !== this.#life) return
        if (this.faultsOf(operation.path).hangs) {
          this.#stuck.push(go)
          return
        }
        this.#underWay.delete(operation)
        const { event, path, size } = operation
        if ((failsNow && failed !== undefined) || (fails > 0 && random.chance(fails))) {
          this.#host.trace(event, size, -1, `${path} EIO`)
          failed?.()
          reject(new WorldError('EIO', `${event} ${path}: the disk fails`))
          return
        }
        try {
          const result = run()
          this.#host.trace(event, size, 0, path)
          resolve(result)
        } catch (error) {
          this.#host.trace(event, size, -1, `${path} ${error instanceof WorldError ? error.code : ''}`)
          reject(error)
        }
      }
      this.#host.after(random.between(from, to), () => go(false))
    })
  }

  /** Does it at once, or in part if at all and returns false; fails by throwing. */
  performNow({ event, path, size }: Operation, run: () => void, failed: () => void): boolean {
    const { random, trace } = this.#host
    const { hangs, writesNow, writeFails } = this.faultsOf(path)
    if (hangs) return false
    if (!random.chance(writesNow)) {
      if (random.chance(0.3)) failed()
      return false
    }
    let code = ''
    try {
      if (writeFails > 0 && random.chance(writeFails)) {
        failed()
        throw new WorldError('EIO', `${event} ${path}: the disk fails`)
      }
      run()
      return true
    } catch (error) {
      if (error instanceof WorldError) code = ` ${error.code}`
      throw error
    } finally {
      trace(event, size, code === '' ? 0 : -1, `${path}${code}`)
    }
  }

  get random(): SeededRandom {
    return this.#host.random
  }

  get life(): number {
    return this.#life
  }
}
