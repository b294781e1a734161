import { getSystemErrorName } from 'node:util'
import { WorldError } from '../world.ts'

/** Turns what Node or the system throws into a {@link WorldError} that names what was tried, and on what. */
export function worldError(cause: unknown, operation: string): WorldError {
  if (cause instanceof WorldError) return cause
  const { code, errno, message } = cause as NodeJS.ErrnoException
  const name = code ?? (errno === undefined ? 'EIO' : getSystemErrorName(errno))
  const wrapped = new WorldError(name, `${operation}: ${message || name}`)
  wrapped.cause = cause
  return wrapped
}
