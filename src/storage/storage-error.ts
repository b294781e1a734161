import type { Millis, Offset } from '#base/units.ts'
import { WorldError } from '#world/world.ts'

/** A disk that failed or is full: KAFKA_STORAGE_ERROR on the wire. The log that throws it cures itself when the disk does. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly code = 'KAFKA_STORAGE_ERROR'
  /** The operating system's name for it: ENOSPC, EIO, EROFS, ... */
  readonly errno: string
  readonly folder: string

  constructor(errno: string, folder: string, message: string) {
    super(message)
    this.errno = errno
    this.folder = folder
  }
}

/** A disk that answers nothing, neither that it has done it nor that it cannot. Nothing is broken, as far as anybody knows. */
export class HungDiskError extends StorageError {
  constructor(folder: string, silentMs: Millis) {
    super('ETIMEDOUT', folder, `${folder}: the disk has answered nothing for ${silentMs / 1000} s`)
  }
}

/**
 * A log is damaged in what was synced once, so no crash has torn it. It is not opened, and nothing of it was changed: what
 * to do without is not ours to say.
 */
export class DamagedLogError extends StorageError {
  readonly file: string
  /** Of the file, when this was found. */
  readonly sizeInBytes: number
  /** Up to here, and up to this offset, the file is whole. */
  readonly position: number
  readonly offset: Offset
  /** The message without the cure. */
  readonly finding: string

  constructor(
    folder: string,
    {
      file,
      sizeInBytes,
      position,
      offset,
      fault,
      syncedTo,
    }: {
      readonly file: string
      readonly sizeInBytes: number
      readonly position: number
      readonly offset: Offset
      readonly fault: string
      readonly syncedTo: Offset
    },
  ) {
    const synced = Number.isFinite(syncedTo) ? `which was synced up to offset ${syncedTo}` : 'which was stopped cleanly'
    const finding = `${file} is damaged at position ${position}, offset ${offset} (${fault}), in a log ${synced}. Nothing was deleted`
    super(
      'EBADMSG',
      folder,
      `${finding}. Check the disk, restore the file from a backup and start again; to do without what follows in this file: truncate -s ${position} ${file}`,
    )
    this.file = file
    this.sizeInBytes = sizeInBytes
    this.position = position
    this.offset = offset
    this.finding = finding
  }
}

/** What a disk's failure means for users of the log; a failure of our own passes as it is. */
export function storageError(error: unknown, folder: string): StorageError {
  if (error instanceof StorageError) return error
  if (!(error instanceof WorldError)) throw error
  return new StorageError(error.code, folder, `${folder}: ${error.message}`)
}

/** Nothing is broken: what is written has to wait until something is deleted. */
export function isFull({ errno }: StorageError): boolean {
  return errno === 'ENOSPC' || errno === 'EDQUOT'
}

/** What an operator can do about it, for the log line of a log that cannot be opened. */
export function cureOfOpening(code: string): string {
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return 'free space on this file system or lower the retention of its topics'
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return 'make the folder writable for this process'
    case 'EMFILE':
    case 'ENFILE':
      return 'raise the limit of open files (ulimit -n)'
    case 'ENOENT':
    case 'ENOTDIR':
      return 'see whether its disk is mounted and the folder is there'
    default:
      return 'check the disk and the kernel log'
  }
}

/** Of a log that refuses writes. */
export function cureOf(code: string): string {
  return `${cureOfOpening(code)}; writes go on by themselves then`
}
