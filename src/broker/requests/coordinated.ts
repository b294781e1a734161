import type { ErrorName } from '#protocol/errors.ts'
import { CoordinatorError } from '../machines/group-shards.ts'

/** A coordinator's answer, or the request's own form of the error that kept it from answering. */
export async function coordinated<Response>(
  ask: () => Promise<Response>,
  refused: (error: ErrorName) => Response,
): Promise<Response> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error
    return refused(error.code)
  }
}
