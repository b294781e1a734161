import { assert } from '#base/assert.ts'
import type { RequestHeader } from '#protocol/frames.ts'
import type { FramePool } from './frame-pool.ts'
import type { MemoryBudget } from './memory-budget.ts'
import type { Answer, Call, Caller, ServedApi } from './service.ts'

/** What precedes each frame, and is counted with it. */
export const SIZE_FIELD_BYTES = 4

/** The connection that a request came by. */
export interface SlotOwner extends Caller {
  readonly pool: FramePool
  readonly budget: MemoryBudget
}

/** A request from the turn in which it begins until its answer has left, and until nobody uses its bytes. */
export class Slot implements Call {
  readonly served: ServedApi
  readonly header: RequestHeader
  readonly caller: SlotOwner
  readonly size: number
  elements = 0
  readonly #frame: Buffer
  answer: Answer<object> | undefined
  #holds = 0
  #ended = false
  #recycled = false

  constructor(served: ServedApi, header: RequestHeader, caller: SlotOwner, frame: Buffer) {
    this.served = served
    this.header = header
    this.caller = caller
    this.size = frame.length
    this.#frame = frame
  }

  get apiKey(): number {
    return this.header.apiKey
  }

  get apiVersion(): number {
    return this.header.apiVersion
  }

  get clientId(): string | null {
    return this.header.clientId
  }

  recycle(): void {
    // The memory may hold other frames: a second time would take it from one of those.
    assert(!this.#recycled, 'the bytes of a request are given back once')
    this.#recycled = true
    this.caller.pool.give(this.#frame)
  }

  hold(): void {
    assert(!this.#ended, 'a request is held before it is answered')
    this.#holds++
  }

  letGo(): void {
    assert(this.#holds > 0, 'what is let go was held')
    this.#holds--
    if (this.#ended && this.#holds === 0) this.#free()
  }

  /** The answer has left, or the connection is gone. */
  end(): void {
    this.#ended = true
    if (this.#holds === 0) this.#free()
  }

  #free(): void {
    this.caller.budget.remove(this.size + SIZE_FIELD_BYTES)
  }
}
