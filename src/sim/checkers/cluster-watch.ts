import type { Epoch, NodeId, Offset } from '#base/units.ts'
import type { Partition } from '#broker/partitions/partition.ts'
import type { Controller } from '#controller/controller.ts'
import type { FakeDisk } from '#world/fake/fake-disk.ts'
import type { RunningNode } from '../../node.ts'
import { holds } from './partition-log.ts'

/** A node as it is looked at. */
export interface Watched {
  readonly id: NodeId
  readonly running: RunningNode
  /** A power cut took something that it has not fetched again: it may lack what it is still believed to have. */
  readonly lossy: boolean
}

/** A machine that may hold a vote, whether its process lives or not. */
export interface Voting {
  readonly id: NodeId
  readonly disk: FakeDisk
  readonly stateFile: string
}

/** What a machine's disk says of its vote. */
interface Vote {
  readonly text: string
  readonly boots: number
  readonly epoch: Epoch
  readonly votedId: NodeId
}

interface Shown {
  readonly leader: NodeId
  highWatermark: Offset
}

/**
 * Looks at all nodes of a cluster from within. Rules: a partition has one leader in an epoch, the quorum one active
 * controller; a leader's watermark never falls, and is never beyond what a leader of a later epoch holds, nor beyond what
 * the members of the ISR hold; no replica takes more for committed than a later leader has; what the quorum has committed, every later active controller has.
 */
export class ClusterWatch {
  /** Of topics whose promises are weaker: their leaders may lack what was committed. */
  readonly #isLoose: (topic: string) => boolean
  readonly #leaders = new Map<string, Map<Epoch, Shown>>()
  readonly #controllers = new Map<Epoch, NodeId>()
  readonly #quorumWatermarks = new WeakMap<RunningNode, Offset>()
  #committed: { offset: Offset; epoch: Epoch } = { offset: 0, epoch: 0 }
  readonly #votes = new Map<NodeId, Vote>()
  looks = 0

  constructor(isLoose: (topic: string) => boolean) {
    this.#isLoose = isLoose
  }

  look(nodes: readonly Watched[], voting: readonly Voting[]): void {
    this.looks++
    for (const each of voting) this.#vote(each)
    for (const { id, running } of nodes) {
      if (running.broker === undefined) continue
      for (const partition of running.broker.partitions.all()) {
        if (partition.leads && !partition.gone) this.#leader(id, partition, nodes)
      }
    }
    for (const { id, running } of nodes) this.#controller(id, running)
    for (const { running } of nodes) if (running.controller?.isActive === true) this.#quorum(running.controller, nodes)
  }

  /** What the quorum has committed, as far as any of its members has shown. */
  get committed(): Offset {
    return this.#committed.offset
  }

  #leader(id: NodeId, partition: Partition, nodes: readonly Watched[]): void {
    const { topic, index, topicId, leaderEpoch, highWatermark, log } = partition
    const key = `${topicId}-${index}`
    let epochs = this.#leaders.get(key)
    if (epochs === undefined) {
      epochs = new Map()
      this.#leaders.set(key, epochs)
    }
    const shown = epochs.get(leaderEpoch) ?? { leader: id, highWatermark }
    epochs.set(leaderEpoch, shown)
    const name = `${topic}-${index}`
    holds(shown.leader === id, `nodes ${shown.leader} and ${id} both lead ${name} in epoch ${leaderEpoch}`)
    if (this.#isLoose(topic)) return
    holds(
      highWatermark >= shown.highWatermark,
      `the watermark of ${name} fell from ${shown.highWatermark} to ${highWatermark} at its leader ${id} in epoch ${leaderEpoch}`,
    )
    shown.highWatermark = highWatermark
    for (const [epoch, before] of epochs) {
      holds(
        epoch >= leaderEpoch || log.endOffset >= before.highWatermark,
        `node ${id} leads ${name} in epoch ${leaderEpoch} with a log to ${log.endOffset}, and ${before.highWatermark} was committed in epoch ${epoch}`,
      )
    }
    for (const { id: other, running, lossy } of nodes) {
      const replica = running.broker?.partitions.find(topic, topicId, index)
      if (other === id || typeof replica !== 'object' || replica.leaderEpoch > leaderEpoch || replica.gone) continue
      holds(
        replica.highWatermark <= log.endOffset,
        `replica ${other} of ${name} takes all below ${replica.highWatermark} for committed, and its leader ${id} ends at ${log.endOffset} in epoch ${leaderEpoch}`,
      )
      if (lossy || replica.leaderEpoch < leaderEpoch || !partition.inSync.includes(other)) continue
      holds(
        replica.log.endOffset >= highWatermark,
        `${name} is committed to ${highWatermark} at its leader ${id}, and replica ${other}, in sync, ends at ${replica.log.endOffset}`,
      )
    }
  }

  /**
   * What is committed, or answered, a majority of the voters holds; of one that is not there nobody knows. Half of an even number is
   * enough: before the last change of voters there was one more or one less, and a majority of those it was.
   */
  #quorum(active: Controller, nodes: readonly Watched[]): void {
    const { voters, epoch } = active
    const highWatermark = Math.max(active.highWatermark, active.answeredOffset)
    const lacking = voters.filter(({ id }) => {
      const voter = nodes.find(node => node.id === id)?.running.controller
      return voter !== undefined && voter.nextOffset < highWatermark
    })
    holds(
      voters.length - lacking.length >= voters.length / 2,
      `the quorum committed ${highWatermark} in epoch ${epoch}, and voters ${lacking.map(({ id }) => id)} of ${voters.map(({ id }) => id)} lack some of it`,
    )
  }

  /** The epoch of a vote never falls, and in one epoch nobody votes twice; a power cut may take what was not synced yet. */
  #vote({ id, disk, stateFile }: Voting): void {
    const content = disk.peek(stateFile)
    const before = this.#votes.get(id)
    if (content === undefined) return
    const text = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString()
    const { boots } = disk
    if (before?.text === text && before.boots === boots) return
    const { leaderEpoch, votedId } = JSON.parse(text) as { leaderEpoch: Epoch; votedId: NodeId }
    this.#votes.set(id, { text, boots, epoch: leaderEpoch, votedId })
    if (before === undefined || before.boots !== boots) return
    const isSame = before.epoch === leaderEpoch && (before.votedId < 0 || votedId < 0 || votedId === before.votedId)
    holds(
      leaderEpoch > before.epoch || isSame,
      `controller ${id} voted for ${before.votedId} in epoch ${before.epoch}, and then for ${votedId} in epoch ${leaderEpoch}`,
    )
  }

  #controller(id: NodeId, running: RunningNode): void {
    const { controller } = running
    if (controller === undefined) return
    const { highWatermark, epoch, nextOffset } = controller
    const before = this.#quorumWatermarks.get(running) ?? -1
    holds(highWatermark >= before, `the quorum's watermark fell from ${before} to ${highWatermark} at controller ${id}`)
    this.#quorumWatermarks.set(running, Math.max(before, highWatermark))
    if (highWatermark > this.#committed.offset) this.#committed = { offset: highWatermark, epoch }
    if (!controller.isActive) return
    const other = this.#controllers.get(epoch) ?? id
    this.#controllers.set(epoch, other)
    holds(other === id, `controllers ${other} and ${id} are both active in epoch ${epoch}`)
    holds(
      epoch < this.#committed.epoch || nextOffset >= this.#committed.offset,
      `controller ${id} is active in epoch ${epoch} with a log to ${nextOffset}, and ${this.#committed.offset} was committed in epoch ${this.#committed.epoch}`,
    )
  }
}
