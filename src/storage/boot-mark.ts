import type { Millis, Offset } from '#base/units.ts'
import { isUuid, type Uuid } from '#base/uuid.ts'
import type { Clock, Disk } from '#world/world.ts'
import { readText } from './files.ts'
import { storageError } from './storage-error.ts'

const FILE = '.tidemark_boot'

/**
 * What a life left behind that ended without a stop though the machine went on: everything that it had written is still
 * there, as what a process wrote outlives it.
 *
 *     {"version":0,"brokerEpoch":42,"incarnationId":"…","bootId":"…"}
 */
export interface BootMark {
  /** -1 where something may be missing. */
  readonly brokerEpoch: Offset
  /** It was about to register under this id, and did not hear of its new epoch: it may be registered, and did nothing yet. */
  readonly incarnationId: Uuid | undefined
}

/** Undefined where there is none of this boot. */
export async function readBootMark(disk: Disk, folder: string): Promise<BootMark | undefined> {
  const bootId = await disk.bootId()
  const text = bootId === undefined ? undefined : await readText(disk, `${folder}/${FILE}`)
  if (text === undefined) return undefined
  try {
    const mark: Partial<Record<string, unknown>> = JSON.parse(text)
    if (mark.bootId !== bootId || !Number.isSafeInteger(mark.brokerEpoch)) return undefined
    const { incarnationId } = mark
    const isRegistering = typeof incarnationId === 'string' && isUuid(incarnationId)
    return { brokerEpoch: Number(mark.brokerEpoch), incarnationId: isRegistering ? (incarnationId as Uuid) : undefined }
  } catch {
    return undefined
  }
}

/** Needs not be durable: after a power cut it is of another boot. */
async function writeBootMark(disk: Disk, folder: string, mark: BootMark): Promise<void> {
  const bootId = await disk.bootId()
  if (bootId === undefined) return
  const path = `${folder}/${FILE}`
  await disk.remove(path)
  const file = await disk.open(path, { create: true, write: true })
  try {
    await file.write([Buffer.from(JSON.stringify({ version: 0, ...mark, bootId }))], 0)
  } finally {
    await file.close()
  }
}

async function removeBootMark(disk: Disk, folder: string): Promise<void> {
  await disk.remove(`${folder}/${FILE}`)
}

const KEEP_AGAIN_MS: Millis = 200
/** Said after a sync has failed, which leaves no mark at all. */
const NOTHING_KEPT: BootMark = { brokerEpoch: -1, incarnationId: undefined }

/** The boot mark of one folder: what is to be said there is written one after another, and nothing once a sync has failed. */
export class BootMarkFile {
  readonly #disk: Disk
  readonly #clock: Clock
  readonly #folder: string
  #turn: Promise<unknown> = Promise.resolve()
  #syncFailed = false
  #closed = false

  constructor({ disk, clock }: { readonly disk: Disk; readonly clock: Clock }, folder: string) {
    this.#disk = disk
    this.#clock = clock
    this.#folder = folder
  }

  /** For a death that loses nothing. That it cannot be written down costs a new election at worst: false. */
  keep(mark: BootMark): Promise<boolean> {
    return this.#change(() =>
      this.#syncFailed ? removeBootMark(this.#disk, this.#folder) : writeBootMark(this.#disk, this.#folder, mark),
    )
  }

  /**
   * As `keep`, until the mark of before is gone: left there, a later life would take this one for one that did nothing. A
   * full disk takes no mark, but lets go of one: a broker that waited for space would never make any.
   */
  async keepSurely(mark: BootMark): Promise<void> {
    while (!(await this.keep(mark)) && !(await this.#remove()) && !this.#closed) {
      await new Promise<void>(resolve => this.#clock.after(KEEP_AGAIN_MS, resolve))
    }
  }

  #remove(): Promise<boolean> {
    return this.#change(() => removeBootMark(this.#disk, this.#folder))
  }

  /** What was written may be gone even if the process alone dies. */
  syncFailed(): void {
    if (this.#syncFailed) return
    this.#syncFailed = true
    void this.keepSurely(NOTHING_KEPT)
  }

  /** Nobody tries again. */
  close(): void {
    this.#closed = true
  }

  #change(change: () => Promise<void>): Promise<boolean> {
    const changed = this.#turn.then(change).then(
      () => true,
      error => {
        storageError(error, this.#folder)
        return false
      },
    )
    this.#turn = changed
    return changed
  }
}
