import type { SeededRandom } from '#base/random.ts'
import { type Entry, WorldError } from '../world.ts'
import { Inode } from './inode.ts'

type Node = Inode | Folder

interface Rename {
  readonly folder: Folder
  readonly name: string
  /** What the name means from then on; undefined when it is gone. */
  readonly node: Node | undefined
}

/** A folder as its readers see it, and as it would be found after a power cut. */
export class Folder {
  entries = new Map<string, Node>()
  durable = new Map<string, Node>()
}

/**
 * The names of a disk. A change of names is atomic and seen at once, but durable only when a folder it touches was synced.
 * A power cut keeps a prefix of those that were not, as a journal does.
 */
export class Names {
  readonly #root = new Folder()
  #journal: (readonly Rename[])[] = []
  #inodes = 0

  /** The file or folder of that name. */
  find(path: string): Node | undefined {
    let node: Node | undefined = this.#root
    for (const part of partsOf(path)) {
      if (!(node instanceof Folder)) return undefined
      node = node.entries.get(part)
    }
    return node
  }

  folder(path: string, operation: string): Folder {
    const node = this.find(path)
    if (node instanceof Folder) return node
    throw new WorldError(node === undefined ? 'ENOENT' : 'ENOTDIR', `${operation}: no folder ${path}`)
  }

  open(path: string, create: boolean): Inode {
    const operation = `open ${path}`
    const node = this.find(path)
    if (node instanceof Folder) throw new WorldError('EISDIR', `${operation}: it is a folder`)
    if (node !== undefined) return node
    if (!create) throw new WorldError('ENOENT', `${operation}: no such file`)
    const { parent, name } = split(path)
    const made = new Inode(++this.#inodes)
    this.#change([{ folder: this.folder(parent, operation), name, node: made }])
    return made
  }

  list(path: string): Entry[] {
    const { entries } = this.folder(path, `list ${path}`)
    return [...entries].map(([name, node]) => ({ name, folder: node instanceof Folder }))
  }

  makeFolder(path: string): void {
    let at = this.#root
    for (const name of partsOf(path)) {
      const node = at.entries.get(name)
      if (node instanceof Inode) throw new WorldError('ENOTDIR', `make folder ${path}: ${name} is a file`)
      const next: Folder = node ?? new Folder()
      if (node === undefined) this.#change([{ folder: at, name, node: next }])
      at = next
    }
  }

  rename(from: string, to: string): void {
    const operation = `rename ${from} to ${to}`
    const node = this.find(from)
    if (node === undefined) throw new WorldError('ENOENT', `${operation}: no such file`)
    const [source, target] = [split(from), split(to)]
    const replaced = this.find(to)
    if (replaced === node) return
    if (replaced instanceof Folder && replaced.entries.size > 0) {
      throw new WorldError('ENOTEMPTY', `${operation}: the folder is not empty`)
    }
    this.#change([
      { folder: this.folder(source.parent, operation), name: source.name, node: undefined },
      { folder: this.folder(target.parent, operation), name: target.name, node },
    ])
  }

  remove(path: string): void {
    if (this.find(path) === undefined) return
    const { parent, name } = split(path)
    this.#change([{ folder: this.folder(parent, `remove ${path}`), name, node: undefined }])
  }

  sync(path: string): void {
    const folder = this.folder(path, `sync folder ${path}`)
    const left: (readonly Rename[])[] = []
    for (const change of this.#journal) {
      if (change.some(rename => rename.folder === folder)) settle(change)
      else left.push(change)
    }
    this.#journal = left
  }

  powerCut(random: SeededRandom): void {
    for (const change of this.#journal.slice(0, random.below(this.#journal.length + 1))) settle(change)
    this.#journal = []
    const seen = new Set<Inode>()
    const restore = (folder: Folder): void => {
      folder.entries = new Map(folder.durable)
      for (const node of folder.entries.values()) {
        if (node instanceof Folder) restore(node)
        else if (!seen.has(node)) {
          seen.add(node)
          node.powerCut(random)
        }
      }
    }
    restore(this.#root)
  }

  /** All files that have a name. */
  *files(folder: Folder = this.#root): Generator<Inode> {
    for (const node of folder.entries.values()) {
      if (node instanceof Folder) yield* this.files(node)
      else yield node
    }
  }

  /** Bytes in all files that have a name, or one below a folder. */
  usedBelow(path = ''): number {
    const folder = this.find(path)
    let size = 0
    if (folder instanceof Folder) for (const file of this.files(folder)) size += file.content.size
    return size
  }

  /** Nothing is below it any more, nor was there ever: another disk stands in the place of the one that had it. */
  empty(path: string): void {
    const folder = this.find(path)
    if (!(folder instanceof Folder)) return
    const gone = new Set<Folder>()
    const collect = (each: Folder): void => {
      gone.add(each)
      for (const node of each.entries.values()) if (node instanceof Folder) collect(node)
    }
    collect(folder)
    this.#journal = this.#journal.filter(change => !change.some(rename => gone.has(rename.folder)))
    folder.entries.clear()
    folder.durable.clear()
  }

  #change(change: readonly Rename[]): void {
    for (const { folder, name, node } of change) {
      if (node === undefined) folder.entries.delete(name)
      else folder.entries.set(name, node)
    }
    this.#journal.push(change)
  }
}

function settle(change: readonly Rename[]): void {
  for (const { folder, name, node } of change) {
    if (node === undefined) folder.durable.delete(name)
    else folder.durable.set(name, node)
  }
}

function partsOf(path: string): string[] {
  return path.split('/').filter(part => part !== '' && part !== '.')
}

function split(path: string): { parent: string; name: string } {
  const parts = partsOf(path)
  const name = parts.pop() ?? ''
  return { parent: parts.join('/'), name }
}
