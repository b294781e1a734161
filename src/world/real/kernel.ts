import { createRequire } from 'node:module'
import { KiB } from '#base/units.ts'

/**
 * System calls that Node has no door to. They come through koffi, loaded on first use; where it cannot be had, there is
 * no kernel and every caller has a plain way round. Results are what the call returned, or its error number negated.
 */
export interface Kernel {
  /** Bytes taken by the socket; -EAGAIN when it is full. Blocks while the file's pages come from the disk. */
  sendFile(socket: number, file: number, position: number, size: number): number
  /** The same on the thread pool. A failure is -1: what went wrong is not known. */
  sendFileInPool(socket: number, file: number, position: number, size: number): Promise<number>
  /**
   * At most {@link READ_BYTES_MAX} bytes of a file as a copy, when all of them are in memory and reading them does not wait
   * for the disk.
   */
  readNow(file: number, position: number, size: number): Buffer | undefined
  /** Whether the byte at `position` is in memory, so that reading it does not wait for the disk. */
  resident(file: number, position: number): boolean
  /** Writes everything of the file system that holds this open file to the disk; 0 when all of it arrived. */
  syncFileSystem(file: number): Promise<number>
  /** A second descriptor for the same thing, to be closed with `fs.close`. */
  duplicate(descriptor: number): number
  /** Locks a whole file for this open file, against other processes (Kafka's lock as well) and against ourselves. */
  lock(file: number): number
}

/** From Linux's fcntl.h and uio.h; the numbers are the same on x64 and arm64. */
const F_OFD_SETLK = 37
const F_WRLCK = 1
const RWF_NOWAIT = 8

/** What `readNow` reads at most. */
export const READ_BYTES_MAX = 16 * KiB

let kernel: Kernel | undefined
let sought = false

/** The kernel's own calls, or undefined where they cannot be reached. */
export function findKernel(): Kernel | undefined {
  if (sought) return kernel
  sought = true
  if (process.platform !== 'linux' || process.env.TIDEMARK_NO_NATIVE === '1') return undefined
  try {
    kernel = openKernel()
  } catch {
    // No koffi for this platform, or a C library without these calls: the plain way serves.
  }
  return kernel
}

function openKernel(): Kernel {
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
  const libc = koffi.load(null)
  const sendfile = libc.func('int64_t sendfile64(int socket, int file, void *position, size_t size)')
  const preadv2 = libc.func('int64_t preadv2(int file, void *parts, int count, int64_t position, int flags)')
  const dup = libc.func('int dup(int descriptor)')
  const syncfs = libc.func('int syncfs(int file)')
  const fcntl = libc.func('int fcntl(int file, int command, ...)')

  const iovec = koffi.struct({ base: 'void *', size: 'size_t' })
  const area = koffi.alloc('uint8_t', READ_BYTES_MAX)
  const read = Buffer.from(koffi.view(area, READ_BYTES_MAX))
  // One part for each power of two: to encode one anew costs more than to read somewhat more than is wanted.
  const parts = Array.from({ length: Math.log2(READ_BYTES_MAX) + 1 }, (_, power) => {
    const part = koffi.alloc(iovec, 1)
    koffi.encode(part, iovec, { base: area, size: 2 ** power })
    return part
  })
  const partOf = (size: number) => parts[32 - Math.clz32(size - 1)]

  // sendfile takes the position by address; as two halves, because a BigInt per call costs more than the call.
  const at = new Uint32Array(2)
  const place = (into: Uint32Array, position: number): Uint32Array => {
    into[0] = position % 0x1_0000_0000
    into[1] = Math.floor(position / 0x1_0000_0000)
    return into
  }
  /** The thread writes to these when it is done. koffi does not keep them: without this they are collected before. */
  const inPool = new Set<Uint32Array>()
  const result = (returned: number): number => (returned < 0 ? -koffi.errno() : returned)

  return {
    sendFile: (socket, file, position, size) => result(sendfile(socket, file, place(at, position), size)),
    sendFileInPool: (socket, file, position, size) =>
      new Promise(resolve => {
        const start = place(new Uint32Array(2), position)
        inPool.add(start)
        sendfile.async(socket, file, start, size, (error: Error | null, returned: number) => {
          inPool.delete(start)
          resolve(error === null ? returned : -1)
        })
      }),
    readNow: (file, position, size) => {
      if (preadv2(file, partOf(size), 1, position, RWF_NOWAIT) < size) return undefined
      return Buffer.from(read.subarray(0, size))
    },
    resident: (file, position) => preadv2(file, parts[0], 1, position, RWF_NOWAIT) >= 0,
    syncFileSystem: file =>
      new Promise(resolve => {
        syncfs.async(file, (error: Error | null, returned: number) => resolve(error === null ? returned : -1))
      }),
    duplicate: descriptor => result(dup(descriptor)),
    lock: file => {
      // struct flock on 64 bits: short type, short whence, 4 bytes of gap, int64 start, int64 length, int pid, gap.
      const flock = new Uint8Array(32)
      new DataView(flock.buffer).setInt16(0, F_WRLCK, true)
      return result(fcntl(file, F_OFD_SETLK, 'void *', flock))
    },
  }
}
