import type { Millis, NodeId } from '#base/units.ts'
import { Channel } from '#network/channel.ts'
import type { Address } from '#world/world.ts'
import type { ClientWorld } from './client.ts'
import { type ClientError, clientError } from './errors.ts'
import { METADATA } from './metadata.ts'

/** What a client meets at one address. */
export interface Probe {
  readonly address: Address
  /** Where the connection came from, as far as it was made. */
  readonly error: ClientError | undefined
  readonly connectMs: Millis
  /** From the question to the answer, on the open connection. */
  readonly answerMs: Millis
  /** How many APIs it offers, and whether what every client needs is among them. */
  readonly apis: number
  readonly missing: readonly string[]
  readonly clusterId: string | null
  readonly brokers: readonly (Address & { readonly id: NodeId })[]
}

const NEEDED: Record<number, string> = {
  0: 'Produce',
  1: 'Fetch',
  2: 'ListOffsets',
  3: 'Metadata',
  8: 'OffsetCommit',
  9: 'OffsetFetch',
  10: 'FindCoordinator',
  11: 'JoinGroup',
  12: 'Heartbeat',
  14: 'SyncGroup',
}

/** Dials an address and asks what every client asks first. Never rejects for what the other side does wrong. */
export async function probe(world: ClientWorld, address: Address, timeoutMs: Millis): Promise<Probe> {
  const { clock } = world
  const start = clock.monotonic()
  let connectMs = 0
  const failed = (error: unknown): Probe => {
    const failure = clientError(error)
    if (!(failure instanceof Error) || failure.name !== 'ClientError') throw error
    const nothing = { answerMs: 0, apis: 0, missing: [], clusterId: null, brokers: [] }
    return { address, error: failure as ClientError, connectMs, ...nothing }
  }
  let channel: Channel
  try {
    channel = await Channel.connect(world, address, { connectTimeoutMs: timeoutMs, requestTimeoutMs: timeoutMs })
  } catch (error) {
    return failed(error)
  }
  try {
    connectMs = clock.monotonic() - start
    const asked = clock.monotonic()
    await channel.negotiate()
    const answerMs = clock.monotonic() - asked
    const versions = channel.versions ?? new Map()
    const missing = Object.entries(NEEDED).flatMap(([key, name]) => (versions.has(Number(key)) ? [] : [name]))
    const { clusterId, brokers } = await channel.ask(METADATA, { topics: [] })
    const known = brokers.map(({ nodeId: id, host, port }) => ({ id, host, port }))
    return { address, error: undefined, connectMs, answerMs, apis: versions.size, missing, clusterId, brokers: known }
  } catch (error) {
    return failed(error)
  } finally {
    channel.close()
  }
}
