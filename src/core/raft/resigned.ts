import type { Millis, NodeId } from '#base/units.ts'
import type { RaftResponse } from './messages.ts'
import type { ReplicaKey } from './quorum.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER, Role, type Turns } from './role.ts'

/** A leader that goes: it tells the voters until each answered (EndQuorumEpoch, KIP-595), and waits for who comes next. */
export class Resigned extends Role {
  readonly name = 'resigned'
  readonly #successors: readonly ReplicaKey[]
  readonly #standAt: Millis
  /** The node stops as soon as everybody was told, at this time at the latest. */
  readonly #stopAt: Millis
  readonly #untold = new Map<NodeId, { request: number | undefined; at: Millis; failures: number }>()

  constructor(replica: Replica, turns: Turns, successors: readonly ReplicaKey[], standAt: Millis, stopAt: Millis) {
    super(replica, turns)
    this.#successors = successors
    this.#standAt = standAt
    this.#stopAt = stopAt
  }

  begin(now: Millis): void {
    for (const { id } of this.replica.others) this.#untold.set(id, { request: undefined, at: now, failures: 0 })
    this.tick(now)
  }

  wakeAt(): Millis {
    let at = this.#stopAt === NEVER ? this.#standAt : this.#stopAt
    for (const each of this.#untold.values()) if (each.request === undefined && each.at < at) at = each.at
    return at
  }

  tick(now: Millis): void {
    if (this.#stopAt !== NEVER) {
      if (this.#untold.size === 0 || now >= this.#stopAt) {
        this.turns.stopped()
        return
      }
    } else if (now >= this.#standAt || (this.#untold.size === 0 && !this.replica.mayStand)) {
      this.turns.unattached(this.replica.epoch, now, now)
      return
    }
    const { epoch, key } = this.replica
    for (const [id, each] of this.#untold) {
      if (each.request !== undefined || now < each.at) continue
      const end = { leaderId: key.id, epoch, successors: this.#successors }
      each.request = this.replica.send(this, id, { kind: 'end-epoch', end })
    }
  }

  override answered(sent: Sent, _response: RaftResponse, now: Millis): void {
    if (sent.to !== 'anyone' && this.#untold.get(sent.to)?.request === sent.request) this.#untold.delete(sent.to)
    this.tick(now)
  }

  override unanswered(sent: Sent, refused: boolean, now: Millis): void {
    const each = sent.to === 'anyone' ? undefined : this.#untold.get(sent.to)
    if (each?.request !== sent.request || sent.to === 'anyone') return
    each.request = undefined
    each.at = now + this.replica.backoff(each.failures++, this.replica.timing.electionTimeoutMs)
    // Nobody is there to be told.
    if (refused) this.#untold.delete(sent.to)
    this.tick(now)
  }
}
