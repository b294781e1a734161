import type { Millis } from './units.ts'

/** One line of each kind in this time. */
const EVERY_MS: Millis = 60_000

type Level = 'info' | 'warn' | 'error'
type Say = (fields: object, message: string) => void

/** What is needed of a clock and a logger. */
interface Time {
  monotonic(): Millis
}
type Lines = Readonly<Record<Level | 'debug', Say>>

/**
 * What happens to many at once is said of one of them, as what a disk does to all of its logs: a thousand lines, and a
 * thousand more each minute, hide what else there is. The next line of its kind says how many were left out (`unsaid`); with --log-level debug all are there.
 */
export class Complaints {
  readonly #clock: Time
  readonly #log: Lines
  readonly #told = new Map<string, { at: Millis; unsaid: number }>()
  #ended = false

  constructor(clock: Time, log: Lines) {
    this.#clock = clock
    this.#log = log
  }

  /** There are few kinds: a word of the code, and at most an error's name behind it. */
  tell(level: Level, kind: string, fields: object, message: string): void {
    if (this.#ended) {
      this.#log.debug(fields, message)
      return
    }
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

  /** The last word was said elsewhere: what comes would only contradict it. */
  end(): void {
    this.#ended = true
  }
}
