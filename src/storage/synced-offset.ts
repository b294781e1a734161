import type { Offset } from '#base/units.ts'
import { crc32c } from '#records/crc.ts'
import type { Disk, File } from '#world/world.ts'
import { readText } from './files.ts'

const SYNCED_OFFSET_FILE = 'synced-offset'

const SLOT_BYTES = 32
const SLOT = /^(\d{20}) ([0-9a-f]{8}) {2}\n$/

/**
 * A file beside a log whose appends are synced before they count: how far they were. It is what tells damage from a tail
 * that a crash tore, as both look the same. It is written after each sync of the log and not synced itself: whatever of
 * it a power cut leaves was true once, and so still is, as long as the log is not cut. A dead process leaves the last.
 *
 * Two slots of 32 bytes, written in turn so that one is always whole: offset as 20 digits, CRC-32C of these as 8 of
 * hexadecimal, filled up with blanks and a line feed. The greater counts.
 */
export class SyncedOffset {
  readonly #disk: Disk
  readonly #folder: string
  #file: File | undefined
  /** The slot that is written next. */
  #slot: number
  #written: Offset
  #wanted: Offset
  #writing: Promise<void> | undefined
  /** A slot may still say more than the log has: a disk that refused is asked again before anything is cut. */
  #isLowering = false

  private constructor(disk: Disk, folder: string, offset: Offset, slot: number) {
    this.#disk = disk
    this.#folder = folder
    this.#written = offset
    this.#wanted = offset
    this.#slot = slot
  }

  /** Without a file, or with one that makes no sense, nothing is known: 0. */
  static async read(disk: Disk, folder: string): Promise<SyncedOffset> {
    const text = (await readText(disk, `${folder}/${SYNCED_OFFSET_FILE}`)) ?? ''
    const offsets = [0, 1].map(slot => decode(text.slice(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES)))
    const [first = 0, second = 0] = offsets
    return new SyncedOffset(disk, folder, Math.max(first, second), first >= second ? 1 : 0)
  }

  get offset(): Offset {
    return this.#wanted
  }

  get path(): string {
    return `${this.#folder}/${SYNCED_OFFSET_FILE}`
  }

  /** The log is synced so far. A disk that does not take it leaves it unsaid, until the next. */
  reached(offset: Offset): void {
    if (offset <= this.#wanted) return
    this.#wanted = offset
    void this.#write().catch(() => undefined)
  }

  /** The log is to be cut: resolves when the disk says so too, which is before anything is appended there. */
  async lower(offset: Offset): Promise<void> {
    if (offset >= this.#wanted && !this.#isLowering) return
    this.#wanted = Math.min(this.#wanted, offset)
    this.#isLowering = true
    await this.#write()
    // The other slot still has more.
    this.#written = -1
    await this.keep()
    this.#isLowering = false
  }

  /** As `reached`, and durable. */
  async keep(): Promise<void> {
    await this.#write()
    if (this.#file === undefined) return
    await this.#file.sync()
    await this.#disk.syncFolder(this.#folder)
  }

  async close(): Promise<void> {
    await this.#writing?.catch(() => undefined)
    await this.#file?.close()
    this.#file = undefined
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    while (this.#written !== this.#wanted) {
      const offset = this.#wanted
      this.#file ??= await this.#disk.open(this.path, { create: true, write: true })
      await this.#file.write([encode(offset)], this.#slot * SLOT_BYTES)
      this.#slot = 1 - this.#slot
      this.#written = offset
    }
  }
}

function encode(offset: Offset): Buffer {
  const digits = String(offset).padStart(20, '0')
  return Buffer.from(`${digits} ${crcOf(digits)}  \n`)
}

function decode(text: string): Offset {
  const [, digits = '', crc] = SLOT.exec(text) ?? []
  const offset = Number(digits)
  return crc === crcOf(digits) && Number.isSafeInteger(offset) ? offset : 0
}

function crcOf(digits: string): string {
  return crc32c(Buffer.from(digits)).toString(16).padStart(8, '0')
}
