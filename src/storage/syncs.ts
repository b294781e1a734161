import type { Disk, File } from '#world/world.ts'

/** How what was written becomes durable. */
export interface Syncs {
  file(file: File): Promise<void>
  folder(path: string): Promise<void>
}

/** Each by itself, at once. */
export function syncEach(disk: Disk): Syncs {
  return { file: file => file.sync(), folder: path => disk.syncFolder(path) }
}

interface Request {
  readonly file: File | undefined
  readonly path: string
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * For many logs that are written down at the same time: what is asked for while a sync is under way waits for the next
 * one, which is for all that wait. So thousands of logs with a handful of files each take a few syncs together.
 */
export class GroupedSyncs implements Syncs {
  readonly #disk: Disk
  #waiting: Request[] = []
  #busy = false

  constructor(disk: Disk) {
    this.#disk = disk
  }

  file(file: File): Promise<void> {
    return this.#ask(file, '')
  }

  folder(path: string): Promise<void> {
    return this.#ask(undefined, path)
  }

  #ask(file: File | undefined, path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ file, path, resolve, reject })
      if (!this.#busy) void this.#serve()
    })
  }

  async #serve(): Promise<void> {
    this.#busy = true
    while (this.#waiting.length > 0) {
      const group = this.#waiting
      this.#waiting = []
      await this.#sync(group)
    }
    this.#busy = false
  }

  async #sync(group: readonly Request[]): Promise<void> {
    const files: File[] = []
    const folders = new Set<string>()
    for (const { file, path } of group) {
      if (file === undefined) folders.add(path)
      else files.push(file)
    }
    const together = await this.#disk.syncAll(files, [...folders]).catch(() => false)
    if (together) {
      for (const { resolve } of group) resolve()
      return
    }
    // One by one, so that each log hears of its own failure only.
    const ofFolders = new Map<string, Promise<void>>()
    const ends = group.map(({ file, path, resolve, reject }) => {
      let sync = file === undefined ? ofFolders.get(path) : file.sync()
      if (sync === undefined) {
        sync = this.#disk.syncFolder(path)
        ofFolders.set(path, sync)
      }
      return sync.then(resolve, reject)
    })
    await Promise.all(ends)
  }
}
