import type { SeededRandom } from '#base/random.ts'
import { type Disk, type Entry, type File, type Lock, WorldError } from '#world/world.ts'

class Inode {
  data: Buffer = Buffer.alloc(0)
  synced: Buffer = Buffer.alloc(0)
}

const BLOCK = 512

/**
 * A disk for the tests of this folder: files in memory, with what is synced told apart, so that a power cut can be played
 * (`afterPowerCut`), and with a hook that lets any operation fail. Names become durable in order.
 */
export class MemoryDisk implements Disk {
  readonly #names = new Map<string, Inode>()
  readonly #durableNames = new Map<string, Inode>()
  readonly #folders = new Set<string>()
  #pendingNames: (() => void)[] = []
  operations = 0
  boots = 0
  /** An error code lets the operation fail; writes may have put a part of their bytes in place. */
  /** Whether it takes writes at once; those fail as others do. */
  isBrisk = false
  fault: (operation: string, path: string, bytes: number) => string | undefined = () => undefined

  #check(operation: string, path: string, bytes = 0): void {
    this.operations++
    const code = this.fault(operation, path, bytes)
    if (code !== undefined) throw new WorldError(code, `${operation} ${path}: ${code}`)
  }

  async open(path: string, { create, write }: { create: boolean; write: boolean }): Promise<File> {
    this.#check('open', path)
    let inode = this.#names.get(path)
    if (inode === undefined) {
      if (!create) throw new WorldError('ENOENT', `open ${path}: no such file`)
      inode = new Inode()
      this.#name(path, inode)
    }
    return this.#file(path, inode, write)
  }

  #name(path: string, inode: Inode | undefined): void {
    const set = (names: Map<string, Inode>): void => {
      if (inode === undefined) names.delete(path)
      else names.set(path, inode)
    }
    set(this.#names)
    this.#pendingNames.push(() => set(this.#durableNames))
  }

  #file(path: string, inode: Inode, writable: boolean): File {
    let open = true
    const check = (operation: string, bytes = 0): void => {
      if (!open) throw new WorldError('EBADF', `${operation} ${path}: the file is closed`)
      if (!writable && (operation === 'write' || operation === 'truncate')) {
        throw new WorldError('EBADF', `${operation} ${path}: opened for reading`)
      }
      this.#check(operation, path, bytes)
    }
    const put = (operation: string, parts: readonly Uint8Array[], position: number): void => {
      const bytes = Buffer.concat(parts)
      const take = (count: number): void => {
        const grown = Buffer.alloc(Math.max(inode.data.length, position + count))
        inode.data.copy(grown)
        bytes.copy(grown, position, 0, count)
        inode.data = grown
      }
      try {
        check(operation, bytes.length)
      } catch (error) {
        if (open && writable) take(bytes.length >> 1)
        throw error
      }
      take(bytes.length)
    }
    return {
      size: async () => {
        check('size')
        return inode.data.length
      },
      read: async (into, position) => {
        check('read')
        return inode.data.copy(into, 0, position, Math.min(inode.data.length, position + into.length))
      },
      write: async (parts, position) => put('write', parts, position),
      // Tests hold writes, fail them, and look at what waits behind one.
      writeNow: (parts, position) => {
        if (this.isBrisk) put('writeNow', parts, position)
        return this.isBrisk
      },
      truncate: async size => {
        check('truncate')
        const cut = Buffer.alloc(size)
        inode.data.copy(cut, 0, 0, Math.min(size, inode.data.length))
        inode.data = cut
      },
      sync: async () => {
        check('sync')
        inode.synced = Buffer.from(inode.data)
      },
      close: async () => {
        open = false
      },
    }
  }

  async list(folder: string): Promise<readonly Entry[]> {
    this.#check('list', folder)
    const entries = new Map<string, Entry>()
    const add = (path: string, isFolder: boolean): void => {
      if (!path.startsWith(`${folder}/`)) return
      const [name, below] = path.slice(folder.length + 1).split('/')
      if (name === undefined || entries.get(name)?.folder) return
      entries.set(name, { name, folder: isFolder || below !== undefined })
    }
    for (const path of this.#names.keys()) add(path, false)
    for (const path of this.#folders) add(path, true)
    if (entries.size === 0 && !this.#folders.has(folder))
      throw new WorldError('ENOENT', `list ${folder}: no such folder`)
    return [...entries.values()]
  }

  async makeFolder(folder: string): Promise<void> {
    this.#check('makeFolder', folder)
    this.#folders.add(folder)
  }

  async rename(from: string, to: string): Promise<void> {
    this.#check('rename', from)
    const inode = this.#names.get(from)
    if (inode !== undefined) {
      const move = (names: Map<string, Inode>): void => {
        names.delete(from)
        names.set(to, inode)
      }
      move(this.#names)
      this.#pendingNames.push(() => move(this.#durableNames))
      return
    }
    const inside = [...this.#names].filter(([path]) => path.startsWith(`${from}/`))
    if (inside.length === 0 && !this.#folders.has(from)) throw new WorldError('ENOENT', `rename ${from}: no such file`)
    const move = (names: Map<string, Inode>): void => {
      for (const [path, file] of [...names]) {
        if (!path.startsWith(`${from}/`)) continue
        names.delete(path)
        names.set(to + path.slice(from.length), file)
      }
    }
    move(this.#names)
    this.#pendingNames.push(() => move(this.#durableNames))
    this.#folders.delete(from)
    this.#folders.add(to)
  }

  async remove(path: string): Promise<void> {
    this.#check('remove', path)
    for (const name of [...this.#names.keys()]) {
      if (name === path || name.startsWith(`${path}/`)) this.#name(name, undefined)
    }
    for (const folder of [...this.#folders]) {
      if (folder === path || folder.startsWith(`${path}/`)) this.#folders.delete(folder)
    }
  }

  async readFile(path: string): Promise<Uint8Array | undefined> {
    this.#check('readFile', path)
    const inode = this.#names.get(path)
    return inode === undefined ? undefined : Buffer.from(inode.data)
  }

  async syncFolder(folder: string): Promise<void> {
    this.#check('syncFolder', folder)
    for (const apply of this.#pendingNames) apply()
    this.#pendingNames = []
  }

  async syncAll(): Promise<boolean> {
    return false
  }

  async space(): Promise<{ readonly free: number; readonly total: number }> {
    return { free: 1e12, total: 1e12 }
  }

  async lock(): Promise<Lock> {
    return { release: async () => {} }
  }

  async bootId(): Promise<string> {
    return `boot-${this.boots}`
  }

  names(): string[] {
    return [...this.#names.keys()].toSorted()
  }

  contentOf(path: string): Buffer | undefined {
    return this.#names.get(path)?.data
  }

  put(path: string, data: Buffer): void {
    const inode = new Inode()
    inode.data = data
    inode.synced = data
    this.#names.set(path, inode)
    this.#durableNames.set(path, inode)
  }

  /** The disk as it may be found: of what was not synced some blocks, of new names the first ones. */
  afterPowerCut(random: SeededRandom): MemoryDisk {
    const disk = new MemoryDisk()
    disk.boots = this.boots + 1
    for (const apply of this.#pendingNames.slice(0, random.below(this.#pendingNames.length + 1))) apply()
    for (const folder of this.#folders) disk.#folders.add(folder)
    for (const [path, inode] of this.#durableNames) disk.put(path, torn(inode, random))
    return disk
  }

  /** The disk as another process finds it when this one was killed. */
  afterKill(): MemoryDisk {
    const disk = new MemoryDisk()
    disk.boots = this.boots
    for (const folder of this.#folders) disk.#folders.add(folder)
    for (const [path, inode] of this.#names) disk.put(path, Buffer.from(inode.data))
    return disk
  }
}

function torn({ data, synced }: Inode, random: SeededRandom): Buffer {
  const size = random.chance(0.5) ? data.length : random.between(Math.min(synced.length, data.length), data.length)
  const result = Buffer.alloc(size)
  for (let at = 0; at < size; at += BLOCK) {
    const end = Math.min(size, at + BLOCK)
    const same = end <= synced.length && data.subarray(at, end).equals(synced.subarray(at, end))
    if (same || random.chance(0.6)) data.copy(result, at, at, end)
    else if (at < synced.length) synced.copy(result, at, at, Math.min(end, synced.length))
  }
  return result
}
