import type { Timer } from '#world/world.ts'
import type { Log } from './log.ts'
import { type LogFolder, type LogFolderWorld, moveAside } from './log-folder.ts'
import { storageError } from './storage-error.ts'

/** Partitions that are deleted: their folders are moved aside when their logs are at rest, and removed later. */
export class LeavingPartitions {
  readonly #world: LogFolderWorld
  /** By name: those whose folders still have their name. */
  readonly #leaving = new Map<string, Promise<void>>()
  readonly #removals = new Set<Timer>()

  constructor(world: LogFolderWorld) {
    this.#world = world
  }

  /** When nothing of the name is on its way out: who comes after it waits. */
  async gone(name: string): Promise<void> {
    await this.#leaving.get(name)
  }

  leave(home: LogFolder, log: Log): Promise<void> {
    const name = log.folder.slice(home.path.length + 1)
    home.forget(name)
    const leaving = this.#takeAway(home, name, log).finally(() => this.#leaving.delete(name))
    this.#leaving.set(name, leaving)
    return leaving
  }

  async #takeAway(home: LogFolder, name: string, log: Log): Promise<void> {
    const { disk, clock, log: lines } = this.#world
    await log.abandon()
    try {
      const aside = await moveAside(this.#world, log.folder, 'delete')
      const timer = clock.after(log.config.fileDeleteDelayMs, () => {
        this.#removals.delete(timer)
        disk.remove(aside).catch((error: unknown) => {
          lines.warn({ folder: aside }, `could not remove a deleted partition: ${storageError(error, aside).message}`)
        })
      })
      this.#removals.add(timer)
    } catch (error) {
      // Where it is there still, a topic made anew under the name finds it as that of another one. Where only the sync failed
      // nothing is there to be opened.
      if (await this.#isThere(home, name)) home.leaveBehind(name)
      const failure = storageError(error, home.path)
      lines.warn({ folder: log.folder, errno: failure.errno }, `could not delete a partition: ${failure.message}`)
    }
  }

  /** What was moved aside and is not removed yet goes at the next start. */
  async close(): Promise<void> {
    await Promise.all(this.#leaving.values())
    for (const timer of this.#removals) timer.cancel()
    this.#removals.clear()
  }

  async #isThere(home: LogFolder, name: string): Promise<boolean> {
    const entries = await this.#world.disk.list(home.path).catch(() => undefined)
    return entries?.some(entry => entry.name === name) ?? true
  }
}
