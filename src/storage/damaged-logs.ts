import type { Disk } from '#world/world.ts'
import { isMissing, withFile } from './files.ts'
import type { DamagedLogError } from './storage-error.ts'

/** The logs that were found to be damaged: who tries again and again to open one must not have it checked each time. */
export class DamagedLogs {
  readonly #disk: Disk
  /** By folder. */
  readonly #found = new Map<string, DamagedLogError>()

  constructor(disk: Disk) {
    this.#disk = disk
  }

  add(folder: string, error: DamagedLogError): void {
    this.#found.set(folder, error)
  }

  /** Rejects as before while the damaged file has the size that it had. */
  async refuse(folder: string): Promise<void> {
    const error = this.#found.get(folder)
    if (error === undefined) return
    if ((await this.#sizeOf(error.file)) === error.sizeInBytes) throw error
    this.#found.delete(folder)
  }

  async #sizeOf(path: string): Promise<number | undefined> {
    try {
      return await withFile(this.#disk, path, { create: false, write: false }, file => file.size())
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }
}
