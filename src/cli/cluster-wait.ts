import { type Client, ClientError } from '#client/client.ts'
import { type Overview, overview, troublesOf } from './cluster-overview.ts'
import { duration, remark } from './output.ts'

const LOOK_MS = 1000

/**
 * Looks until nothing is wrong. That nobody answers passes too, where the only node that is dialled is the one restarted.
 *
 * @param timeoutMs rejects when it is over, also in the middle of a look; as long as it takes where it is left out.
 */
export async function whenWell(client: Client, timeoutMs: number | undefined, look = overview): Promise<Overview> {
  const { clock } = client.world
  const until = clock.monotonic() + (timeoutMs ?? Number.POSITIVE_INFINITY)
  const over = Promise.withResolvers<undefined>()
  const timer = timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => over.resolve(undefined))
  let wrong = 'nobody has answered'
  let hint: string | undefined
  try {
    while (clock.monotonic() < until) {
      const found = await Promise.race([over.promise, look(client).catch(passing)])
      if (found === undefined) break
      const troubles = found instanceof ClientError ? [found.message] : troublesOf(found)
      if (troubles.length === 0 && !(found instanceof ClientError)) return found
      const saying = troubles.join('; ')
      if (saying !== wrong) remark(`waiting: ${saying}`)
      wrong = saying
      hint = found instanceof ClientError ? found.hint : 'see it with: tidemark cluster'
      await client.pause(Math.max(1, Math.min(LOOK_MS, until - clock.monotonic())))
    }
  } finally {
    timer?.cancel()
  }
  const message = `not well after ${duration(timeoutMs ?? 0)}: ${wrong}`
  throw new ClientError('TIMED_OUT', message, { retriable: true, hint })
}

function passing(error: unknown): ClientError {
  if (!(error instanceof ClientError) || !error.retriable) throw error
  return error
}
