import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { TOPIC_NAME_LENGTH_MAX } from './topic-name.ts'

/** How one thing that a request asks for ended. */
export interface Outcome {
  readonly errorCode: number
  readonly errorMessage: string | null
}

export const DONE: Outcome = { errorCode: ErrorCode.NONE, errorMessage: null }

/** Messages repeat names from requests, and a string of the protocol holds 32,767 bytes. */
const MESSAGE_LENGTH_MAX = 4000

export function failed(errorCode: number, message: string = errorOf(errorCode).message): Outcome {
  const errorMessage = message.length > MESSAGE_LENGTH_MAX ? `${message.slice(0, MESSAGE_LENGTH_MAX)}…` : message
  return { errorCode, errorMessage }
}

export function isFailure(outcome: Outcome): boolean {
  return outcome.errorCode !== ErrorCode.NONE
}

/** A name as a message repeats it: what is longer than a topic's is asked for in vain, and may be so of very many partitions. */
export function quoted(name: string): string {
  return name.length > TOPIC_NAME_LENGTH_MAX ? `${name.slice(0, TOPIC_NAME_LENGTH_MAX)}…` : name
}
