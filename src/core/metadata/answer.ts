import { ErrorCode, errorOf } from '#protocol/errors.ts'

/** How one thing that a request asks for ended. */
export interface Outcome {
  readonly errorCode: number
  readonly errorMessage: string | null
}

export const DONE: Outcome = { errorCode: ErrorCode.NONE, errorMessage: null }

export function failed(errorCode: number, errorMessage: string = errorOf(errorCode).message): Outcome {
  return { errorCode, errorMessage }
}

export function isFailure(outcome: Outcome): boolean {
  return outcome.errorCode !== ErrorCode.NONE
}
