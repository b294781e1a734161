import type { Millis } from '#base/units.ts'
import type { Clock } from '#world/world.ts'
import type { Deadline, Deadlines } from '../deadlines.ts'

/** The one deadline of a machine, which moves with what the machine waits for. */
export class Wake {
  readonly #around: { readonly deadlines: Deadlines; readonly clock: Clock }
  readonly #driver: { tick(): void }
  #deadline: Deadline | undefined

  constructor(around: { readonly deadlines: Deadlines; readonly clock: Clock }, driver: { tick(): void }) {
    this.#around = around
    this.#driver = driver
  }

  get isSet(): boolean {
    return this.#deadline !== undefined
  }

  /** On the monotonic clock; undefined is never. */
  set(at: Millis | undefined): void {
    this.cancel()
    if (at === undefined) return
    const { deadlines, clock } = this.#around
    this.#deadline = deadlines.after(Math.max(0, at - clock.monotonic()), () => {
      this.#deadline = undefined
      this.#driver.tick()
    })
  }

  cancel(): void {
    this.#around.deadlines.cancel(this.#deadline)
    this.#deadline = undefined
  }
}
