import type { Offset } from '#base/units.ts'
import { type Disk, type File, WorldError } from '#world/world.ts'
import { type Syncs, syncEach } from './syncs.ts'

/** `00000000000000000042` and a suffix: how a file says at which offset it begins. */
export function offsetName(offset: Offset, suffix: string): string {
  return String(offset).padStart(20, '0') + suffix
}

/** The offset that a file's name begins with, if it has this suffix. */
export function offsetOfName(name: string, suffix: string): Offset | undefined {
  if (name.length !== 20 + suffix.length || !name.endsWith(suffix) || !/^\d{20}/.test(name)) return undefined
  const offset = Number(name.slice(0, 20))
  return Number.isSafeInteger(offset) ? offset : undefined
}

export function isMissing(error: unknown): boolean {
  return error instanceof WorldError && error.code === 'ENOENT'
}

/** Opens, uses and closes. */
export async function withFile<T>(
  disk: Disk,
  path: string,
  how: { readonly create: boolean; readonly write: boolean },
  use: (file: File) => Promise<T>,
): Promise<T> {
  const file = await disk.open(path, how)
  try {
    return await use(file)
  } finally {
    await file.close()
  }
}

/** Replaces a small file in place, durably; a crash may leave any mixture, so only for files that can be checked. */
export function overwriteFile(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  syncs: Syncs = syncEach(disk),
): Promise<void> {
  return withFile(disk, path, { create: true, write: true }, async file => {
    if ((await file.size()) > bytes.length) await file.truncate(bytes.length)
    if (bytes.length > 0) await file.write([bytes], 0)
    await syncs.file(file)
  })
}

/** Replaces a small file so that a crash leaves the old or the new one whole: `.tmp`, fsync, rename, fsync of the folder. */
export async function replaceFile(
  disk: Disk,
  folder: string,
  name: string,
  content: Uint8Array | string,
  syncs: Syncs = syncEach(disk),
): Promise<void> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const path = `${folder}/${name}`
  await overwriteFile(disk, `${path}.tmp`, bytes, syncs)
  await disk.rename(`${path}.tmp`, path)
  await syncs.folder(folder)
}

export async function readText(disk: Disk, path: string): Promise<string | undefined> {
  const bytes = await disk.readFile(path)
  return bytes === undefined ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}

/** Runs over items with at most `width` under way; the first failure is thrown when all that began have ended. */
export async function inParallel<T>(
  items: Iterable<T>,
  width: number,
  run: (item: T) => Promise<unknown>,
): Promise<void> {
  const iterator = items[Symbol.iterator]()
  let failure: { readonly error: unknown } | undefined
  const lane = async (): Promise<void> => {
    for (let next = iterator.next(); !next.done && failure === undefined; next = iterator.next()) {
      try {
        await run(next.value)
      } catch (error) {
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  if (failure !== undefined) throw (failure as { readonly error: unknown }).error
}
