import type { Millis } from '#base/units.ts'
import type { Clock, Logger } from '#world/world.ts'

/** One line of each kind in this time. */
const EVERY_MS: Millis = 60_000

type Level = 'info' | 'warn' | 'error'

/**
 * What one disk does to all of its logs is said by one of them: a thousand lines, and a thousand more each minute, hide
 * what else there is. The next line of its kind says how many were left out (`unsaid`); with --log-level debug all are there.
 */
export class Complaints {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #told = new Map<string, { at: Millis; unsaid: number }>()

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  /** There are few kinds: a word of the code, and at most an error's name behind it. */
  tell(level: Level, kind: string, fields: object, message: string): void {
    const now = this.#clock.monotonic()
    const told = this.#told.get(kind)
    if (told !== undefined && now - told.at < EVERY_MS) {
      told.unsaid++
      this.#log.debug(fields, message)
      return
    }
    this.#told.set(kind, { at: now, unsaid: 0 })
    const unsaid = told?.unsaid ?? 0
    this.#log[level](unsaid > 0 ? { ...fields, unsaid } : fields, message)
  }
}
