import { assert } from '#base/assert.ts'
import { DecodeError } from '#base/bytes.ts'
import type { Offset } from '#base/units.ts'
import * as batch from '#records/batch.ts'
import type { Log } from '#storage/log.ts'

/** A rule of the product that did not hold. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

export function holds(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new Violation(rule)
}

/** A batch that was given to the log, and what became of it. */
export interface Attempt {
  readonly base: Offset
  readonly next: Offset
  readonly bytes: Buffer
  readonly acknowledged: boolean
}

interface Known extends Attempt {
  acknowledged: boolean
}

/**
 * What one log has promised. Rules: nothing that was acknowledged is lost by what its acknowledgement was to survive;
 * offsets are dense and in order; every batch that is read is, byte for byte, one that was appended at that offset.
 */
export class PartitionLogChecker {
  /** Batches by base offset; several when one was refused and its offsets were given again. */
  readonly #attempts = new Map<Offset, Known[]>()
  /** All below survives a dead process. */
  #writtenFloor: Offset = 0
  /** All below survives a power cut. */
  #durableFloor: Offset = 0
  readonly #syncsBeforeAck: boolean
  acknowledgements = 0
  reads = 0

  constructor(syncsBeforeAck: boolean) {
    this.#syncsBeforeAck = syncsBeforeAck
  }

  attempted(bytes: Buffer): Attempt {
    const attempt: Known = {
      base: batch.baseOffset(bytes, 0),
      next: batch.lastOffset(bytes, 0) + 1,
      bytes: Buffer.from(bytes),
      acknowledged: false,
    }
    const known = this.#attempts.get(attempt.base)
    if (known === undefined) this.#attempts.set(attempt.base, [attempt])
    else known.push(attempt)
    return attempt
  }

  acknowledged(attempt: Attempt): void {
    this.acknowledgements++
    ;(attempt as Known).acknowledged = true
    this.#writtenFloor = Math.max(this.#writtenFloor, attempt.next)
    if (this.#syncsBeforeAck) this.#durableFloor = this.#writtenFloor
  }

  /** The log says that all below is durable. */
  durable(offset: Offset): void {
    this.#durableFloor = Math.max(this.#durableFloor, offset)
  }

  powerCut(): void {
    this.#writtenFloor = this.#durableFloor
  }

  /** Whole batches that were read from the log, from the one that holds `from`. Returns the offset after the last. */
  read(bytes: Buffer, from: Offset): Offset {
    this.reads++
    try {
      return this.#readBatches(bytes, from)
    } catch (error) {
      if (error instanceof DecodeError) throw new Violation(`what was read from ${from} is no batch: ${error.message}`)
      throw error
    }
  }

  #readBatches(bytes: Buffer, from: Offset): Offset {
    let next: Offset | undefined
    for (const at of batch.batchesOf(bytes)) {
      const end = at + batch.sizeInBytes(bytes, at)
      const base = batch.baseOffset(bytes, at)
      if (next === undefined) holds(base <= from, `offset ${from} was asked for and batch ${base} came`)
      else holds(base === next, `offset ${next} should come and batch ${base} came`)
      const error = batch.checkCrc(bytes, at)
      holds(error === undefined, `batch ${base} is corrupt: ${error?.message}`)
      this.#find(base, bytes.subarray(at, end))
      next = batch.lastOffset(bytes, at) + 1
    }
    holds(next !== undefined && next > from, `offset ${from} was asked for and nothing whole came`)
    return next
  }

  /** The log was opened again: reads all of it, and forgets what is not there any more. */
  async recovered(log: Log): Promise<Buffer[]> {
    const { endOffset } = log
    holds(
      endOffset >= this.#writtenFloor,
      `the log ends at ${endOffset} though all below ${this.#writtenFloor} was acknowledged`,
    )
    holds(endOffset >= log.durableOffset, `durable to ${log.durableOffset}, past the end ${endOffset}`)
    const found: Buffer[] = []
    for (let offset = 0; offset < endOffset; ) {
      const range = await log.read(offset, 3000, endOffset)
      holds(range !== undefined, `offset ${offset} of ${endOffset} cannot be read`)
      const bytes = await log.readBytes(range)
      const next = this.read(bytes, offset)
      holds(next === range.nextOffset, `the log says ${range.nextOffset} comes next, its batches ${next}`)
      for (const at of batch.batchesOf(bytes)) found.push(bytes.subarray(at, at + batch.sizeInBytes(bytes, at)))
      offset = next
    }
    this.#attempts.clear()
    // It is served from now on, so it stays; whether it is durable only the log can tell.
    for (const bytes of found) (this.attempted(bytes) as Known).acknowledged = true
    this.#writtenFloor = endOffset
    return found
  }

  #find(base: Offset, bytes: Buffer): void {
    const known = this.#attempts.get(base) ?? []
    const match = known.find(attempt => attempt.bytes.equals(bytes))
    holds(match !== undefined, `batch ${base} was never appended like this`)
    const promised = known.find(attempt => attempt.acknowledged)
    holds(promised === undefined || promised === match, `batch ${base} is another than was acknowledged`)
    assert(match.next > base, 'a batch has an offset')
  }
}
