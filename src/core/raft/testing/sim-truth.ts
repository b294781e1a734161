import { assert } from '#base/assert.ts'
import type { Epoch, NodeId, Offset } from '#base/units.ts'
import type { ReplicaKey } from '../quorum.ts'
import type { SimLog, SimRecord } from './sim-log.ts'

/** What nobody in the quorum knows as a whole, and what must hold of it at any moment. */
export class Truth {
  readonly committed: SimRecord[] = []
  readonly #leaders = new Map<Epoch, NodeId>()
  readonly #votes = new Map<string, string>()
  /** By offset and epoch: two logs that have a record of one epoch at one offset have the same one. */
  readonly #places: Map<Epoch, number>[] = []

  appended(id: NodeId, offset: Offset, { epoch, value }: SimRecord): void {
    this.#places[offset] ??= new Map()
    const known = this.#places[offset].get(epoch)
    assert(known === undefined || known === value, `${id} has another record of epoch ${epoch} at ${offset}`)
    this.#places[offset].set(epoch, value)
  }

  voted({ id, directoryId }: ReplicaKey, epoch: Epoch, candidate: ReplicaKey): void {
    const key = `${id}:${directoryId}:${epoch}`
    const given = `${candidate.id}:${candidate.directoryId}`
    const before = this.#votes.get(key)
    assert(before === undefined || before === given, `${id} voted for ${before} and ${given} in epoch ${epoch}`)
    this.#votes.set(key, given)
  }

  leads(id: NodeId, epoch: Epoch, log: SimLog): void {
    const before = this.#leaders.get(epoch)
    assert(before === undefined, `${before} and ${id} lead epoch ${epoch}`)
    this.#leaders.set(epoch, id)
    for (let offset = log.startOffset; offset < this.committed.length; offset++) {
      const record = this.committed[offset]
      if (record === undefined || record.epoch >= epoch) return
      assert(log.at(offset)?.value === record.value, `${id} leads epoch ${epoch} without committed ${offset}`)
    }
  }

  /** Whether this log has all that is committed, durably. */
  isHeldBy(log: SimLog): boolean {
    const end = this.committed.length
    if (log.durable < end) return false
    return log.startOffset >= end || log.at(end - 1)?.value === this.committed[end - 1]?.value
  }

  commits(id: NodeId, from: Offset, to: Offset, log: SimLog): void {
    assert(to <= log.durable, `${id} commits ${to} and holds ${log.durable} durably`)
    for (let offset = Math.max(from, log.startOffset); offset < to; offset++) {
      const record = log.at(offset)
      assert(record !== undefined, `${id} commits ${offset} without having it`)
      const known = this.committed[offset]
      if (known === undefined) {
        assert(offset === this.committed.length, `${id} commits ${offset} and ${this.committed.length} never was`)
        this.committed.push(record)
      } else assert(known.value === record.value, `${id} committed something else at ${offset}`)
    }
  }
}
