/** A broken promise of our own code. The node stops rather than corrupts; it is never caught to go on. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

/** Checks an invariant of ours, in production too. What peers, disks and users do wrong is never an assertion. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message)
}

/** Marks the branch that the types say cannot be reached. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(value)}`)
}
