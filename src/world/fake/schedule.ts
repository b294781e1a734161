import { assert } from '#base/assert.ts'
import { Heap, type HeapNode } from '#base/heap.ts'

/** Microseconds since the simulation began. */
export type Micros = number

/** How many events are asked of the host's loop at a time: enough that its own turn does not count. */
const BATCH = 256

/**
 * Virtual time: events in order of their time, and of their making where that is equal. Every promise that an event
 * settles has run on to its next wait before the next event begins, so only the schedule decides what happens when.
 */
export class Schedule {
  readonly #events = new Heap<() => void>()
  #now: Micros = 0
  #count = 0

  get now(): Micros {
    return this.#now
  }

  /** How many events have happened. */
  get count(): number {
    return this.#count
  }

  get pending(): number {
    return this.#events.size
  }

  after(delay: Micros, run: () => void): HeapNode<() => void> {
    return this.#events.push(this.#now + Math.max(0, Math.ceil(delay)), run)
  }

  cancel(event: HeapNode<() => void>): void {
    this.#events.remove(event)
  }

  /** Runs events until `done` says so, virtual time passes `until`, or nothing is left. Rejects with what an event throws. */
  run(done: () => boolean, until: Micros = Number.MAX_SAFE_INTEGER): Promise<void> {
    return new Promise((resolve, reject) => {
      let stopped = false
      let left = 0
      // Node runs all microtasks between two callbacks of setImmediate, also of one batch: that is the whole trick.
      const turn = (): void => {
        if (stopped) return
        const next = this.#events.peek()
        if (next === undefined || next.key > until || done()) {
          stopped = true
          if (next !== undefined && next.key > until) this.#now = until
          resolve()
          return
        }
        this.#events.pop()
        assert(next.key >= this.#now, 'time goes on')
        this.#now = next.key
        this.#count++
        try {
          next.value()
        } catch (error) {
          stopped = true
          reject(error)
          return
        }
        if (--left === 0) batch()
      }
      const batch = (): void => {
        left = BATCH
        for (let i = 0; i < BATCH; i++) setImmediate(turn)
      }
      batch()
    })
  }
}
