import type { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import { type Client, connect } from '#client/client.ts'
import { ClientError } from '#client/errors.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import type { Address } from '#world/world.ts'
import type { NodeLedger } from '../checkers/node-ledger.ts'
import { Violation } from '../checkers/partition-log.ts'

export const SERVER = 'broker'
export const PORT = 9092

export interface SceneTopic {
  readonly name: string
  readonly partitions: number
  readonly replicas: number
  /** Whether its acknowledgements are to survive a power cut. */
  readonly durable: boolean
}

/** What serves, as far as those who look at it must know how it fares. */
export interface Serving {
  /** Somebody can be expected to answer. */
  readonly up: boolean
  /** A power cut may have taken what was not to be synced, and nobody has looked yet. */
  readonly unsure: boolean
  /** Told when a machine falls silent: who waits for it on an open connection would wait forever. */
  readonly silenced: (() => void)[]
}

/** What all who act in a simulation of a node or a cluster share. */
export interface Scene {
  readonly simulation: Simulation
  readonly ledger: NodeLedger
  /** Where clients dial. */
  readonly servers: readonly Address[]
  readonly topics: readonly SceneTopic[]
  readonly groups: readonly string[]
  /** By how much all who act take more time than in a hurry. */
  readonly pace: number
  /** Nothing goes wrong any more: what was begun comes to its end now. */
  calm: boolean
  over: boolean
  /** Tells of a rule that did not hold. */
  readonly fails: (error: unknown) => void
}

/** A client of the node, as soon as it can be reached. */
export async function dial(
  scene: Scene,
  from: FakeNode,
  random: SeededRandom,
  options: { readonly connectTimeoutMs?: Millis; readonly requestTimeoutMs?: Millis } = {},
): Promise<Client> {
  for (;;) {
    try {
      return await connect({
        world: from.world,
        bootstrap: scene.servers.map(({ host, port }) => `${host}:${port}`).join(','),
        clientId: from.name,
        connectTimeoutMs: random.between(500, 5000),
        requestTimeoutMs: random.between(3000, 30_000),
        metadataMaxAgeMs: random.pick([2000, 30_000]),
        ...options,
      })
    } catch (error) {
      if (!(error instanceof ClientError)) throw error
      await scene.simulation.wait(random.between(20, 300))
    }
  }
}

/** Asks until it is done. `final` says which errors are an answer as well: they are returned. */
export async function insist<T>(
  scene: Scene,
  random: SeededRandom,
  act: () => Promise<T>,
  final: (error: ClientError) => boolean = () => false,
): Promise<T | ClientError> {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (!(error instanceof ClientError)) throw error
      if (final(error)) return error
      // A node that takes its leave counts as none already; one that is cut off hears late of a new topic.
      const passes =
        error.code === 'INVALID_REPLICATION_FACTOR' ||
        (error.code === 'UNKNOWN_TOPIC_OR_PARTITION' && scene.servers.length > 1)
      if (!error.retriable && !passes)
        throw new Violation(`a request was refused for good: ${error.code}, ${error.message}`)
      await scene.simulation.wait(random.between(20, 500))
    }
  }
}

/** Waits until it holds, or says that it never did. */
export async function eventually(
  scene: Scene,
  rule: string,
  limitMs: Millis,
  holds: () => Promise<boolean> | boolean,
): Promise<void> {
  const { schedule } = scene.simulation
  const until = schedule.now + limitMs * 1000
  while (!(await holds())) {
    if (schedule.now > until) throw new Violation(`${rule}, for ${limitMs} ms`)
    await scene.simulation.wait(100)
  }
}
