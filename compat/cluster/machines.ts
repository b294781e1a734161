import type { ClientWorld } from '../../src/client/client.ts'

/** One of three machines, each with a node that is broker and controller, and what may happen to it. */
export interface Machine {
  readonly id: number
  start(): void
  /** As SIGKILL, SIGTERM, SIGSTOP and SIGCONT. */
  kill(): Promise<void>
  stop(): Promise<void>
  pause(): void
  goOn(): void
  /** Its cable. */
  unplug(): void
  plugIn(): void
  /** What it sends to them is lost, what they send arrives. */
  mute(others: readonly Machine[]): void
  unmute(others: readonly Machine[]): void
  /** Nobody else gets through to it who dials it, while it dials others; undefined where that cannot be made. */
  wall?(): void
  unwall?(): void
  /** All space of its disk is taken. */
  fill(): void
  drain(): void
  /** Nothing that is written or synced comes back. */
  hang(): void
  unhang(): void
  /** Every write fails. */
  break(): void
  mend(): void
  /** Its wall clock is set; undefined where that would be the clock of all. */
  setClock?(aheadMs: number): void
  /** What its node has logged, with times of the wall clock. */
  log(): readonly string[]
}

export interface Machines {
  readonly all: readonly Machine[]
  readonly bootstrap: string
  /** Of clients, who are on a machine of their own. */
  readonly world: ClientWorld
  wait(ms: number): Promise<void>
  /** Lets the work come to its end, and then there are no machines any more. */
  run<T>(work: () => Promise<T>): Promise<T>
}

export type Settings = Readonly<Record<string, string>>
