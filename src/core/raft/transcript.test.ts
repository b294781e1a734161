import assert from 'node:assert/strict'
import { join } from 'node:path'
import { ZERO_UUID } from '#base/uuid.ts'
import { errorOf } from '#protocol/errors.ts'
import { testTranscripts } from '../testing/transcripts.ts'
import type { LogView, SnapshotId } from './log-view.ts'
import type { RaftEffect, RaftEvent } from './messages.ts'
import { NO_QUORUM_STATE, type QuorumState, type ReplicaProgress, type Voter } from './quorum.ts'
import { Raft } from './raft.ts'

/**
 * Transcripts in testdata/: commands, a rule of dashes, and the full reaction, which TIDEMARK_REWRITE=1 writes anew.
 *
 *   node [state=EPOCH] [voters=ID,...] [epochs=EPOCH:START,...] [end=OFFSET] [start=OFFSET] [snapshots=END@EPOCH,...]
 *                          a node 1 that starts with this log and quorum state
 *   start   wait MS   state-stored   storage-failed
 *   append COUNT           the leader appends; nothing of it is durable yet
 *   durable [OFFSET]       everything, or everything below
 *   fetch CALL [replica= epoch= offset= last= hw= wait=]      gone CALL      progress
 */
class FakeLog implements LogView {
  startOffset = 0
  nextOffset = 0
  endOffset = 0
  epochs: { epoch: number; start: number }[] = []
  snapshots: SnapshotId[] = []

  get lastEpoch(): number {
    return this.epochs.at(-1)?.epoch ?? this.latestSnapshot?.epoch ?? 0
  }
  get earliestSnapshot(): SnapshotId | undefined {
    return this.snapshots[0]
  }
  get latestSnapshot(): SnapshotId | undefined {
    return this.snapshots.at(-1)
  }
  endOffsetForEpoch(epoch: number): SnapshotId | undefined {
    const index = this.epochs.findLastIndex(each => each.epoch <= epoch)
    const found = this.epochs[index]
    if (found === undefined) return undefined
    return { epoch: found.epoch, endOffset: this.epochs[index + 1]?.start ?? this.endOffset }
  }
}

const DIRECTORY = 'DDDDDDDDDDDDDDDDDDDDDA'

class Script {
  #log = new FakeLog()
  #raft = this.#make(NO_QUORUM_STATE, [1])
  #now = 0
  #state: QuorumState | undefined

  #make(state: QuorumState, ids: readonly number[]): Raft {
    const voters = ids.map((id): Voter => {
      return { id, directoryId: id === 1 ? DIRECTORY : ZERO_UUID, endpoints: [], kraftVersion: { min: 0, max: 1 } }
    })
    return new Raft({ nodeId: 1, directoryId: DIRECTORY, voters, state, log: this.#log, retryMs: 1000 })
  }

  run(line: string): string {
    const [name = '', ...words] = line.split(/\s+/)
    const named = new Map(words.filter(word => word.includes('=')).map(word => word.split('=') as [string, string]))
    const number = (key: string, otherwise: number): number => Number(named.get(key) ?? otherwise)
    const first = Number(words[0])
    switch (name) {
      case 'node': {
        this.#log = new FakeLog()
        this.#log.epochs = pairs(named.get('epochs'), ':').map(([epoch, start]) => ({ epoch, start }))
        this.#log.snapshots = pairs(named.get('snapshots'), '@').map(([endOffset, epoch]) => ({ endOffset, epoch }))
        this.#log.startOffset = number('start', 0)
        this.#log.nextOffset = number('end', this.#log.startOffset)
        this.#log.endOffset = this.#log.nextOffset
        const voters = (named.get('voters') ?? '1').split(',').map(Number)
        this.#raft = this.#make({ ...NO_QUORUM_STATE, leaderEpoch: number('state', 0) }, voters)
        return ''
      }
      case 'state-stored':
        assert(this.#state !== undefined)
        return this.#step({ kind: name, state: this.#state })
      case 'append':
        this.#log.nextOffset += first
        return ''
      case 'durable': {
        const endOffset = words[0] === undefined ? this.#log.nextOffset : first
        this.#log.endOffset = endOffset
        return this.#step({ kind: 'log-stored', endOffset })
      }
      case 'start':
        return this.#step({ kind: name })
      case 'storage-failed':
        this.#log.nextOffset = this.#log.endOffset
        return this.#step({ kind: name })
      case 'wait':
        return this.#wait(first)
      case 'gone':
        return this.#step({ kind: 'call-gone', call: first })
      case 'fetch':
        return this.#step({
          kind: 'fetch',
          call: first,
          fetch: {
            replicaId: number('replica', 7),
            directoryId: ZERO_UUID,
            currentLeaderEpoch: number('epoch', this.#raft.epoch),
            offset: number('offset', 0),
            lastFetchedEpoch: number('last', 0),
            highWatermark: number('hw', Number.POSITIVE_INFINITY),
            maxWaitMs: number('wait', 500),
          },
        })
      case 'progress': {
        const show = ({ id, endOffset, lastFetchAt, lastCaughtUpAt }: ReplicaProgress) =>
          `${id} end=${endOffset} fetched=${lastFetchAt ?? 'never'} caught-up=${lastCaughtUpAt ?? 'never'}\n`
        const voters = this.#raft.voterProgress(this.#now).map(voter => `voter ${show(voter)}`)
        return [...voters, ...this.#raft.observerProgress(this.#now).map(each => `observer ${show(each)}`)].join('')
      }
      default:
        throw new Error(`no command is called ${name}`)
    }
  }

  #wait(ms: number): string {
    const until = this.#now + ms
    let printed = ''
    for (let at = this.#raft.wakeAt(); at !== undefined && at <= until; at = this.#raft.wakeAt()) {
      this.#now = at
      printed += `at ${at}\n${this.#step({ kind: 'tick' })}`
    }
    this.#now = until
    return printed
  }

  #step(event: RaftEvent): string {
    const effects = this.#raft.step(event, this.#now)
    const lines = effects.map(effect => this.#show(effect))
    const { role, epoch, leaderId, highWatermark } = this.#raft
    const wakeAt = this.#raft.wakeAt()
    lines.push(`${role} epoch=${epoch} leader=${leaderId} hw=${highWatermark}${wakeAt ? ` wake=${wakeAt}` : ''}`)
    return lines.map(line => `${line}\n`).join('')
  }

  #show(effect: RaftEffect): string {
    switch (effect.kind) {
      case 'store-state': {
        this.#state = effect.state
        const { leaderEpoch, leaderId, votedId } = effect.state
        return `  store-state epoch=${leaderEpoch} leader=${leaderId} voted=${votedId}`
      }
      case 'lead': {
        this.#log.epochs.push({ epoch: effect.epoch, start: this.#log.nextOffset })
        const ids = (voters: readonly Voter[]) => voters.map(({ id }) => id).join(',')
        return `  lead epoch=${effect.epoch} voters=${ids(effect.voters)} granted-by=${ids(effect.grantingVoters)}`
      }
      case 'commit':
        return `  commit ${effect.highWatermark}`
      case 'resign':
        return `  resign epoch=${effect.epoch}`
      case 'answer': {
        assert(effect.answer.kind === 'fetch')
        const { errorCode, position, upTo, highWatermark, leaderId, leaderEpoch } = effect.answer.answer
        const leader = `leader=${leaderId}@${leaderEpoch} hw=${highWatermark}`
        if (errorCode !== 0) return `  answer ${effect.call} ${errorOf(errorCode).name} ${leader}`
        if (position.kind === 'diverging')
          return `  answer ${effect.call} diverging to ${position.endOffset}@${position.epoch} ${leader}`
        if (position.kind === 'snapshot')
          return `  answer ${effect.call} snapshot ${position.id.endOffset}@${position.id.epoch} ${leader}`
        return `  answer ${effect.call} up to ${upTo} ${leader}`
      }
      default:
        return `  ${JSON.stringify(effect)}`
    }
  }
}

function pairs(text: string | undefined, separator: string): [number, number][] {
  return (text ?? '')
    .split(',')
    .filter(pair => pair !== '')
    .map(pair => pair.split(separator).map(Number) as [number, number])
}

testTranscripts(join(import.meta.dirname, 'testdata'), () => new Script())
