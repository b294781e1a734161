import type { Command } from 'commander'
import { Client, ClientError, type ClientWorld } from '#client/client.ts'
import { realClock } from '#world/real/clock.ts'
import { realNetwork } from '#world/real/network.ts'
import { realRandom } from '#world/real/random.ts'

/** What every command may be told. */
export interface GlobalOptions {
  readonly bootstrap: string
  readonly json?: boolean
  readonly timeout: number
}

export const world: ClientWorld = { clock: realClock, network: realNetwork, random: realRandom }

/** Connects, does it, and closes. */
export async function withClient<T>(command: Command, act: (client: Client) => Promise<T>): Promise<T> {
  const { bootstrap, timeout } = globalOptions(command)
  const client = new Client({
    world,
    bootstrap,
    clientId: 'tidemark-cli',
    connectTimeoutMs: Math.min(timeout, 10_000),
    requestTimeoutMs: timeout,
    callTimeoutMs: timeout,
  })
  try {
    return await act(client)
  } finally {
    client.close()
  }
}

export function globalOptions(command: Command): GlobalOptions {
  return command.optsWithGlobals<GlobalOptions>()
}

/** For what takes as long as it takes, and is bounded only where somebody says so. */
export function givenTimeout(command: Command): number | undefined {
  const isDefault = command.getOptionValueSourceWithGlobals('timeout') === 'default'
  return isDefault ? undefined : globalOptions(command).timeout
}

export function wantsJson(command: Command): boolean {
  return globalOptions(command).json === true
}

/** What is wrong with the arguments, rather than with the cluster: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

/** A topic that must exist; when it does not, the error names the nearest one that does. */
export async function existingTopic(client: Client, name: string) {
  try {
    return await client.topic(name)
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'UNKNOWN_TOPIC_OR_PARTITION') throw error
    throw await missingTopic(client, name)
  }
}

export async function missingTopic(client: Client, name: string): Promise<ClientError> {
  const { topics } = await client.metadata.refresh('all')
  const near = nearest(
    name,
    topics.map(topic => topic.name),
  )
  const hint =
    near !== undefined
      ? `did you mean "${near}"?`
      : topics.length === 0
        ? `the cluster has no topics yet: tidemark topics create ${name}`
        : 'see them all with: tidemark topics list'
  return new ClientError('UNKNOWN_TOPIC_OR_PARTITION', `there is no topic "${name}"`, { errorCode: 3, hint })
}

/** The name that is closest in typing, if any is close. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
