import type { Micros } from './schedule.ts'

/**
 * What happened, in order: a running hash always, and one line of fixed columns per event when asked for. Two runs of
 * one seed have the same hash; where they have not, the lines show the first event that differs.
 *
 *     microseconds  node        event       number      number  detail
 */
export class Trace {
  readonly lines: string[] | undefined
  #high = 0x811c9dc5
  #low = 0x9e3779b9
  #count = 0

  constructor(keepLines: boolean) {
    this.lines = keepLines ? [] : undefined
  }

  add(time: Micros, node: string, event: string, first = 0, second = 0, detail = ''): void {
    this.#count++
    this.#mix(time)
    this.#mixText(node)
    this.#mixText(event)
    this.#mix(first)
    this.#mix(second)
    if (detail !== '') this.#mixText(detail)
    this.lines?.push(
      `${String(time).padStart(12)} ${node.padEnd(10)} ${event.padEnd(10)} ${String(first).padStart(11)} ${String(second).padStart(11)} ${detail}`.trimEnd(),
    )
  }

  get count(): number {
    return this.#count
  }

  /** 64 bits as hexadecimal digits. */
  get hash(): string {
    return (this.#high >>> 0).toString(16).padStart(8, '0') + (this.#low >>> 0).toString(16).padStart(8, '0')
  }

  #mix(value: number): void {
    this.#high = Math.imul(this.#high ^ (value | 0), 0x01000193)
    this.#low = Math.imul(this.#low ^ ((value / 0x1_0000_0000) | 0) ^ this.#high, 0x85ebca6b)
    this.#low ^= this.#low >>> 13
  }

  #mixText(text: string): void {
    for (let i = 0; i < text.length; i++) this.#high = Math.imul(this.#high ^ text.charCodeAt(i), 0x01000193)
    this.#low = Math.imul(this.#low ^ this.#high ^ text.length, 0x85ebca6b)
  }
}
