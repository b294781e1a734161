import type { Millis, NodeId } from '#base/units.ts'
import { Discovery } from './discovery.ts'
import type { RaftResponse } from './messages.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER, Role, STAND_SPREAD_MS, type Turns } from './role.ts'

/** How long a voter looks on before it asks strangers: the other voters mostly know. */
const DISCOVERY_AFTER_MS: Millis = 500

/** Knows no leader of its epoch. A voter stands after a while, an observer asks around. */
export class Unattached extends Role {
  readonly name = 'unattached'
  readonly #discovery: Discovery
  #standAt: Millis

  constructor(replica: Replica, turns: Turns, standAt: Millis, now: Millis) {
    super(replica, turns)
    this.#standAt = standAt
    this.#discovery = new Discovery(replica, this, this.#askAt(standAt, now))
  }

  #askAt(standAt: Millis, now: Millis): Millis {
    const { mayStand, others } = this.replica
    if (!mayStand || standAt === NEVER) return standAt
    return others.length === 0 ? NEVER : now + DISCOVERY_AFTER_MS
  }

  begin(now: Millis): void {
    this.tick(now)
  }

  wakeAt(): Millis {
    const { mayStand, logWork } = this.replica
    return Math.min(this.#discovery.wakeAt(), mayStand && logWork === undefined ? this.#standAt : NEVER)
  }

  tick(now: Millis): void {
    const { mayStand, logWork } = this.replica
    if (mayStand && logWork === undefined && now >= this.#standAt) this.turns.stand(0, now)
    else this.#discovery.tick(now)
  }

  override votersChanged(now: Millis): void {
    this.tick(now)
  }

  override answered(sent: Sent, _response: RaftResponse, now: Millis): void {
    this.#discovery.over(sent, now)
  }

  override unanswered(sent: Sent, _refused: boolean, now: Millis): void {
    this.#discovery.over(sent, now)
  }

  /** Whom this node voted for will not lead. */
  override peerGone(id: NodeId, now: Millis): void {
    if (id === this.replica.state.votedId)
      this.#standAt = Math.min(this.#standAt, now + this.replica.draw(STAND_SPREAD_MS))
  }

  override postpone(ms: Millis, now: Millis): void {
    this.#standAt = Math.max(this.#standAt, now + ms + this.replica.draw(ms))
  }
}
