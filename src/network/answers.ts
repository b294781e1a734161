import { encodeResponseFrameInTurns, type FrameParts } from '#protocol/frames.ts'
import type { Socket } from '#world/world.ts'
import type { MemoryBudget } from './memory-budget.ts'
import { type Answer, type FileRange, HANG_UP } from './service.ts'
import type { Slot } from './slot.ts'
import type { Turns } from './turns.ts'

/** The connection whose answers they are. */
export interface Answered {
  readonly socket: Socket
  readonly budget: MemoryBudget
  readonly turns: Turns
  /** A request is answered, and its slot has left. */
  readonly left: (slot: Slot) => void
  /** An answer cannot be made: nothing follows it. */
  readonly failed: (slot: Slot, error: unknown) => void
  /** The connection ends in place of an answer, behind those before it. */
  readonly hangUp: () => void
  /** Answers have left in a turn of their own: whoever waits for that may go on. */
  readonly goOn: () => void
}

/** The requests of one connection that are not answered yet, and their answers on the way to the socket, in the order of the requests. */
export class Answers {
  readonly #connection: Answered
  /** Oldest first. */
  readonly #slots: Slot[] = []
  /** An answer is being encoded: those behind wait. */
  #encoding = false
  #ended = false
  /** Memory in all answers so far: what is made is what takes the time. */
  bytesMade = 0
  /** Memory in answers since all was last read, and how much of it is counted in the budget. */
  #bytes = 0
  #countedBytes = 0

  constructor(connection: Answered) {
    this.#connection = connection
  }

  /** How many requests wait for their answers to leave. */
  get waiting(): number {
    return this.#slots.length
  }

  /** What is counted in the budget: memory in answers that the client has not read. */
  get countedBytes(): number {
    return this.#countedBytes
  }

  /** A request begins; it is answered behind those that began before it. */
  begin(slot: Slot): void {
    this.#slots.push(slot)
  }

  settle(slot: Slot, answer: Answer<object>): void {
    slot.answer = answer
    this.#flush()
  }

  /** Sends the answers at the head of the queue that are there. */
  #flush(): void {
    while (this.#slots.length > 0 && !this.#encoding) {
      const slot = this.#slots[0] as Slot
      const answer = slot.answer
      if (answer === undefined) return
      if (typeof answer === 'symbol') {
        this.#leave(slot)
        if (answer !== HANG_UP) continue
        this.#connection.hangUp()
        return
      }
      const { api } = slot.served
      const { apiVersion, correlationId } = slot.header
      this.#encode(slot, encodeResponseFrameInTurns(api, apiVersion, correlationId, answer))
    }
  }

  #leave(slot: Slot): void {
    this.#slots.shift()
    this.#connection.left(slot)
  }

  #encode(slot: Slot, encoding: Generator<undefined, FrameParts>): void {
    let step: IteratorResult<undefined, FrameParts>
    try {
      step = encoding.next()
    } catch (error) {
      this.#connection.failed(slot, error)
      // Until the socket has ended, nothing is answered in the place of what could not be.
      this.#encoding = true
      return
    }
    this.#encoding = !step.done
    if (step.done) {
      this.#leave(slot)
      this.#send(step.value)
      return
    }
    this.#connection.turns.soon(() => {
      if (this.#ended) return
      this.#encode(slot, encoding)
      this.#flush()
      this.#connection.goOn()
    })
  }

  #send(parts: FrameParts): void {
    const { socket } = this.#connection
    let buffers: Buffer[] = []
    for (const part of parts) {
      if (Buffer.isBuffer(part)) {
        buffers.push(part)
        this.#bytes += part.length
        this.bytesMade += part.length
        continue
      }
      const range = part as FileRange
      socket.write(buffers)
      buffers = []
      socket.sendFile(range.file, range.position, range.size)
    }
    if (buffers.length > 0) socket.write(buffers)
    this.count()
  }

  /** Counts what is not read. What is queued may be ranges of files, so at most what went there as memory is counted as memory. */
  count(): void {
    if (this.#ended) return
    const { budget, socket } = this.#connection
    const queued = socket.queuedBytes
    if (queued === 0) this.#bytes = 0
    const counted = Math.min(queued, this.#bytes)
    const before = this.#countedBytes
    if (counted === before) return
    this.#countedBytes = counted
    if (counted > before) budget.add(counted - before)
    else budget.remove(before - counted)
  }

  /** Nothing is answered any more. What is returned waited for its answer. */
  end(): Slot[] {
    this.#ended = true
    return this.#slots.splice(0)
  }
}
