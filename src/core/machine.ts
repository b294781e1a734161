import type { Millis, Offset } from '#base/units.ts'

/**
 * A protocol machine (raft, a partition's leader, a session). It is blind: no clock, chance, files, sockets or `async`.
 * The same events in the same order give the same effects. Whoever drives it keeps the shell rule: step to the end,
 * perform the effects, and feed every result back as a new event; never read its state, await, and act on what was read.
 */
export interface Machine<Event, Effect> {
  step(event: Event, now: Millis): readonly Effect[]
  /** When it next wants a step because time passed. Machines own deadlines, never timers. */
  wakeAt(): Millis | undefined
}

/**
 * A replicated machine (the controller, a group coordinator's shard, transactions). Its durable state is the fold of its
 * log. `decide` reads that state and never changes it; `apply` is the only place where it changes, and takes every entry
 * that was ever written (it is total). An entry is applied as soon as its log has taken it; the answer that rests on it
 * leaves when the log has committed it. If it cannot be committed the machine is thrown away and folded anew, so nothing
 * is ever rolled back.
 */
export interface ReplicatedMachine<Command, Entry, Answer> {
  decide(command: Command, now: Millis): Decision<Entry, Answer>
  apply(entry: Entry, at: Offset): void
  wakeAt(): Millis | undefined
}

/** What a command leads to: entries for the log, all or none of them, and answers for when they are committed. */
export interface Decision<Entry, Answer> {
  readonly entries: readonly Entry[]
  /** Given when everything that was applied before, and these entries, is committed. */
  readonly answer: Answer
}
