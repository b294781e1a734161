import type { Millis } from '#base/units.ts'
import type { Clock } from '#world/world.ts'
import type { Deadline, Deadlines } from '../deadlines.ts'

/** The one deadline of a machine, which moves with what the machine waits for. */
export class Wake {
  readonly #deadlines: Deadlines
  readonly #clock: Clock
  readonly #run: () => void
  #deadline: Deadline | undefined

  constructor({ deadlines, clock }: { readonly deadlines: Deadlines; readonly clock: Clock }, run: () => void) {
    this.#deadlines = deadlines
    this.#clock = clock
    this.#run = run
  }

  get isSet(): boolean {
    return this.#deadline !== undefined
  }

  /** On the monotonic clock; undefined is never. */
  set(at: Millis | undefined): void {
    this.cancel()
    if (at === undefined) return
    this.#deadline = this.#deadlines.after(Math.max(0, at - this.#clock.monotonic()), () => {
      this.#deadline = undefined
      this.#run()
    })
  }

  cancel(): void {
    this.#deadlines.cancel(this.#deadline)
    this.#deadline = undefined
  }
}
