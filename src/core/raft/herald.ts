import type { Millis, NodeId } from '#base/units.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER, type Role } from './role.ts'

interface Audience {
  request: number | undefined
  at: Millis
  failures: number
}

/** Makes a leader known to the voters that do not fetch from it (BeginQuorumEpoch, KIP-595). */
export class Herald {
  readonly #replica: Replica
  readonly #role: Role
  #audience = new Map<NodeId, Audience>()

  constructor(replica: Replica, role: Role) {
    this.#replica = replica
    this.#role = role
  }

  meet(ids: readonly NodeId[], now: Millis): void {
    const before = this.#audience
    this.#audience = new Map(ids.map(id => [id, before.get(id) ?? { request: undefined, at: now, failures: 0 }]))
  }

  /** It fetched, and knows. */
  heard(id: NodeId, now: Millis): void {
    const each = this.#audience.get(id)
    if (each === undefined) return
    each.at = now + this.#replica.timing.fetchTimeoutMs
    each.failures = 0
  }

  wakeAt(): Millis {
    let at = NEVER
    for (const each of this.#audience.values()) if (each.request === undefined && each.at < at) at = each.at
    return at
  }

  tick(now: Millis): void {
    const { epoch, key, voters } = this.#replica
    for (const [id, each] of this.#audience) {
      if (each.request !== undefined || now < each.at) continue
      const directoryId = voters.find(voter => voter.id === id)?.directoryId
      if (directoryId === undefined) continue
      const begin = { leaderId: key.id, epoch, voter: { id, directoryId } }
      each.request = this.#replica.send(this.#role, id, { kind: 'begin-epoch', begin })
    }
  }

  over({ to, request }: Sent, wasAnswered: boolean, now: Millis): void {
    const each = to === 'anyone' ? undefined : this.#audience.get(to)
    if (each?.request !== request) return
    each.request = undefined
    const { fetchTimeoutMs } = this.#replica.timing
    const pause = wasAnswered ? fetchTimeoutMs / 2 : this.#replica.backoff(each.failures++, fetchTimeoutMs / 2)
    each.at = Math.max(each.at, now + pause)
  }
}
