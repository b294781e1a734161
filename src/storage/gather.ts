import type { Offset } from '#base/units.ts'
import type { ProducerEntry } from './batch-fold.ts'
import type { StorageError } from './storage-error.ts'

function ignore(): void {}

/** What one write takes to the disk, and who waits for it. */
export class Gather {
  readonly parts: Buffer[] = []
  bytes = 0
  endOffset: Offset
  /** Set when a new segment begins with it: what is known of producers before it. */
  readonly roll: { readonly baseOffset: Offset; readonly producers: readonly ProducerEntry[] } | undefined
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: StorageError) => void

  constructor(endOffset: Offset, roll: Gather['roll']) {
    this.endOffset = endOffset
    this.roll = roll
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    promise.catch(ignore)
    this.promise = promise
    this.resolve = resolve
    this.reject = reject
  }
}
