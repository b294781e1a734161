import { assert } from '#base/assert.ts'
import type { Millis, NodeId } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { SnapshotId } from '../log-view.ts'
import type { RaftAnswer, RaftEffect, RaftEvent, RaftRequest, RaftResponse } from '../messages.ts'
import { areRecorded, KRAFT_VERSIONS, NO_QUORUM_STATE, type QuorumState, type Voter } from '../quorum.ts'
import { Raft } from '../raft.ts'
import { showAnswer, showRequest, showVoter } from './script-text.ts'
import { SimLog, type SimRecord, type SimSnapshot } from './sim-log.ts'

interface Member {
  readonly id: NodeId
  directoryId: Uuid
  log: SimLog
  stored: QuorumState
  raft: Raft | undefined
  /** Its host answers nothing at all, not even that nobody listens. */
  isSilent: boolean
  /** A release that knows no vote beforehand. */
  isOld: boolean
  /** Stores nothing until it is told to. */
  isDiskHeld: boolean
  isLogHeld: boolean
  /** The next snapshot that it asks for is gone by then. */
  missesSnapshot: boolean
  /** In how many pieces it reads a snapshot, half a second each. */
  snapshotPieces: number
  readonly heldEvents: RaftEvent[]
  readonly events: RaftEvent[]
  readonly records: Map<number, readonly SimRecord[]>
}

interface Mail {
  readonly from: NodeId
  readonly to: NodeId
  deliver(): void
}

const REQUEST_TIMEOUT_MS: Millis = 2000
const PIECE_MS: Millis = 500

/** Several members in one script: every message is shown as it leaves, and arrives in order when `run` lets it. */
export class QuorumScript {
  readonly #members = new Map<NodeId, Member>()
  readonly #mail: Mail[] = []
  readonly #cut = new Set<string>()
  readonly #calls = new Map<number, { readonly member: Member; reply(answer: RaftAnswer): void }>()
  readonly #timeouts: { readonly at: Millis; readonly run: () => void }[] = []
  #first: readonly Voter[] = []
  #options: ReadonlySet<string> = new Set()
  #now: Millis = 0
  #shownAt: Millis = 0
  #lastCall = 0
  #value = 0
  #lines: string[] = []

  /** Carries out a command and returns all that happened. */
  run(line: string): string {
    this.#lines = []
    const [name = '', ...words] = line.split(/\s+/)
    const named = new Map(words.filter(word => word.includes('=')).map(word => word.split('=') as [string, string]))
    const ids = words.filter(word => /^\d+$/.test(word)).map(Number)
    this.#command(name, words, named, ids)
    return this.#lines.map(each => `${each}\n`).join('')
  }

  #command(name: string, words: string[], named: Map<string, string>, ids: number[]): void {
    const first = ids[0] ?? 0
    switch (name) {
      case 'members':
        this.#make(named, new Set(words.filter(word => !word.includes('='))))
        return
      case 'log':
        this.#writeLog(this.#member(first), words.slice(1), named)
        return
      case 'old':
        this.#member(first).isOld = true
        return
      case 'start':
        for (const id of ids) this.#start(this.#member(id))
        return
      case 'run':
        this.#pass(first)
        this.#status()
        return
      case 'append':
        this.#append(this.#member(first), ids[1] ?? 1)
        return
      case 'kill':
        this.#kill(this.#member(first), words.includes('silently'))
        return
      case 'gone':
        for (const { id, raft } of this.#members.values()) {
          if (raft !== undefined && id !== first) this.#step(this.#member(id), { kind: 'peer-gone', id: first })
        }
        return
      case 'stop':
        this.#step(this.#member(first), { kind: 'stop' })
        return
      case 'cut':
        this.#cut.add(`${ids[0]}>${ids[1]}`)
        if (!words.includes('one-way')) this.#cut.add(`${ids[1]}>${ids[0]}`)
        return
      case 'heal':
        this.#cut.clear()
        return
      case 'hold-disk':
        this.#member(first).isDiskHeld = true
        return
      case 'hold-log':
        this.#member(first).isLogHeld = true
        return
      case 'disk-works':
        this.#releaseDisk(this.#member(first))
        return
      case 'disk-fails':
        this.#failDisk(this.#member(first))
        return
      case 'snapshot':
        this.#member(first).log.takeSnapshot(ids[1] ?? 0)
        return
      case 'miss-snapshot':
        this.#member(first).missesSnapshot = true
        return
      case 'slow-snapshot':
        this.#member(first).snapshotPieces = ids[1] ?? 1
        return
      case 'new-disk':
        Object.assign(this.#member(first), {
          directoryId: directory(first, 'N'),
          log: new SimLog(),
          stored: NO_QUORUM_STATE,
        })
        return
      case 'add-voter':
      case 'remove-voter':
      case 'record-voters':
      case 'vote':
      case 'begin-epoch':
      case 'end-epoch':
      case 'update-voter':
        this.#ask(name, this.#member(first), named)
        return
      default:
        throw new Error(`no command is called ${name}`)
    }
  }

  // -- members

  #make(named: Map<string, string>, options: ReadonlySet<string>): void {
    const ids = (named.get('ids') ?? '1,2,3').split(',').map(Number)
    const voting = (named.get('voters') ?? ids.join(',')).split(',').map(Number)
    this.#now = 0
    this.#shownAt = 0
    this.#members.clear()
    this.#mail.length = 0
    this.#timeouts.length = 0
    this.#cut.clear()
    this.#options = options
    this.#first = voting.map(id => this.#voter(id, options.has('recorded') ? directory(id) : ZERO_UUID))
    for (const id of ids) {
      this.#members.set(id, {
        id,
        directoryId: directory(id),
        log: new SimLog(),
        stored: NO_QUORUM_STATE,
        raft: undefined,
        isSilent: false,
        isOld: false,
        isDiskHeld: false,
        isLogHeld: false,
        missesSnapshot: false,
        snapshotPieces: 1,
        heldEvents: [],
        events: [],
        records: new Map(),
      })
    }
  }

  #voter(id: NodeId, directoryId: Uuid): Voter {
    return { id, directoryId, endpoints: [{ name: 'C', host: `n${id}`, port: 9093 }], kraftVersion: KRAFT_VERSIONS }
  }

  #member(id: NodeId): Member {
    const member = this.#members.get(id)
    if (member === undefined) throw new Error(`no member ${id}`)
    return member
  }

  #writeLog(member: Member, words: string[], named: Map<string, string>): void {
    for (const word of words.filter(each => each.includes(':'))) {
      const [epoch = 0, count = 0] = word.split(':').map(Number)
      // The same offset and epoch is the same record.
      for (let i = 0; i < count; i++) member.log.append({ epoch, value: epoch * 1000 + member.log.nextOffset })
    }
    member.log.durable = member.log.nextOffset
    const leaderEpoch = Number(named.get('epoch') ?? member.log.lastEpoch)
    const votedId = Number(named.get('voted') ?? -1)
    const votedDirectoryId = votedId < 0 ? ZERO_UUID : directory(votedId)
    member.stored = { leaderEpoch, leaderId: Number(named.get('leader') ?? -1), votedId, votedDirectoryId }
  }

  #start(member: Member): void {
    const { id: nodeId, directoryId, log } = member
    const at = log.votersAt()
    member.isSilent = false
    const fractions = [0.2, 0.5, 0.8]
    let drawn = nodeId - 1
    member.raft = new Raft({
      nodeId,
      directoryId,
      voters: at?.voters ?? this.#first,
      votersOffset: at?.offset ?? -1,
      formerVoters: at?.former ?? [],
      state: member.stored,
      log,
      retryMs: 1000,
      founding: this.#options.has('founding'),
      recordsVoters: this.#options.has('records-voters'),
      autoJoin: this.#options.has('auto-join'),
      draw: () => fractions[drawn++ % 3] ?? 0.5,
    })
    this.#step(member, { kind: 'start', endpoints: [{ name: 'C', host: `n${nodeId}`, port: 9093 }] })
  }

  #kill(member: Member, silently: boolean): void {
    member.raft = undefined
    member.isSilent = silently
    member.heldEvents.length = 0
    member.log.tear(0)
    for (let i = this.#mail.length - 1; i >= 0; i--) if (this.#mail[i]?.from === member.id) this.#mail.splice(i, 1)
  }

  // -- time

  /** Mail first, then what is due, for so long. */
  #pass(ms: Millis): void {
    const until = this.#now + ms
    for (let turns = 0; turns < 10_000; turns++) {
      const mail = this.#mail.shift()
      if (mail !== undefined) {
        if (!this.#cut.has(`${mail.from}>${mail.to}`)) mail.deliver()
        continue
      }
      const due = this.#nextDue()
      if (due === undefined || due.at > until) break
      this.#now = Math.max(this.#now, due.at)
      due.run()
    }
    this.#now = until
  }

  #nextDue(): { readonly at: Millis; readonly run: () => void } | undefined {
    let next: { at: Millis; run: () => void } | undefined
    for (const member of this.#members.values()) {
      const at = member.raft?.wakeAt()
      if (at === undefined || at >= (next?.at ?? Number.POSITIVE_INFINITY)) continue
      next = { at, run: () => this.#step(member, { kind: 'tick' }) }
    }
    let timeout: { readonly at: Millis; readonly run: () => void } | undefined
    for (const each of this.#timeouts) {
      if (each.at < (timeout?.at ?? next?.at ?? Number.POSITIVE_INFINITY)) timeout = each
    }
    if (timeout === undefined) return next
    const { at, run: due } = timeout
    const run = () => {
      this.#timeouts.splice(this.#timeouts.indexOf(timeout), 1)
      due()
    }
    return { at, run }
  }

  // -- steps

  #say(text: string): void {
    if (this.#now !== this.#shownAt) this.#lines.push(`at ${this.#now}`)
    this.#shownAt = this.#now
    this.#lines.push(`  ${text}`)
  }

  #status(): void {
    for (const { id, raft, log } of this.#members.values()) {
      const state =
        raft === undefined
          ? 'down'
          : `${raft.role} epoch=${raft.epoch} leader=${raft.leaderId} hw=${raft.highWatermark} end=${log.nextOffset}@${log.lastEpoch} voters=${raft.voters.map(voter => voter.id)}`
      this.#lines.push(`${id} ${state}`)
    }
  }

  /** One event after the other: those that come of effects wait for the effects before them. */
  #step(member: Member, event: RaftEvent): void {
    member.events.push(event)
    if (member.events.length > 1) return
    for (let next = member.events[0]; next !== undefined; next = member.events[0]) {
      for (const effect of member.raft?.step(next, this.#now) ?? []) this.#perform(member, effect)
      member.events.shift()
    }
  }

  #stored(member: Member, event: RaftEvent): void {
    if (member.isDiskHeld || (member.isLogHeld && event.kind === 'log-stored')) {
      member.heldEvents.push(event)
      return
    }
    if (event.kind === 'state-stored') member.stored = event.state
    if (event.kind === 'log-stored') member.log.durable = event.endOffset
    this.#step(member, event)
  }

  #releaseDisk(member: Member): void {
    member.isDiskHeld = false
    member.isLogHeld = false
    for (const event of member.heldEvents.splice(0)) this.#stored(member, event)
  }

  #failDisk(member: Member): void {
    member.heldEvents.length = 0
    member.isDiskHeld = false
    member.log.truncate(member.log.durable)
    this.#step(member, { kind: 'storage-failed' })
  }

  #perform(member: Member, effect: RaftEffect): void {
    const { id } = member
    switch (effect.kind) {
      case 'store-state': {
        const { leaderEpoch, leaderId, votedId } = effect.state
        this.#say(`${id} stores epoch=${leaderEpoch} leader=${leaderId} voted=${votedId}`)
        this.#stored(member, { kind: 'state-stored', state: effect.state })
        return
      }
      case 'send':
        this.#send(member, effect.request, effect.to, effect.message)
        return
      case 'answer': {
        const call = this.#calls.get(effect.call)
        this.#calls.delete(effect.call)
        call?.reply(effect.answer)
        return
      }
      case 'lead':
        this.#say(`${id} leads epoch ${effect.epoch}, elected by ${effect.grantingVoters.map(voter => voter.id)}`)
        this.#appendRecords(member, [{ epoch: effect.epoch, value: ++this.#value }])
        if (areRecorded(effect.voters) && member.log.votersAt() === undefined) {
          this.#appendRecords(member, [{ epoch: effect.epoch, value: ++this.#value, voters: effect.voters }])
        }
        return
      case 'resign':
        this.#say(`${id} leads epoch ${effect.epoch} no more`)
        return
      case 'follow':
        this.#say(effect.leaderId < 0 ? `${id} knows no leader` : `${id} follows ${effect.leaderId}@${effect.epoch}`)
        return
      case 'append':
        this.#appendRecords(member, member.records.get(effect.request) ?? [])
        return
      case 'truncate':
        this.#say(`${id} cuts its log back to ${effect.endOffset}`)
        this.#truncate(member, effect.endOffset)
        return
      case 'load-snapshot':
        this.#say(`${id} downloads snapshot ${effect.id.endOffset}@${effect.id.epoch} from ${effect.leaderId}`)
        this.#download(member, effect.leaderId, effect.id)
        return
      case 'commit':
        this.#say(`${id} knows committed: ${effect.highWatermark}`)
        return
      case 'append-voters': {
        const epoch = member.raft?.epoch ?? 0
        this.#say(
          `${id} appends voters ${effect.voters.map(showVoter)}${effect.raisesVersion ? ' with kraft.version 1' : ''}`,
        )
        this.#appendRecords(member, [{ epoch, value: ++this.#value, voters: effect.voters }])
        return
      }
      case 'stopped':
        this.#say(`${id} has stopped`)
        member.raft = undefined
    }
  }

  // -- logs

  #append(member: Member, count: number): void {
    const epoch = member.raft?.epoch ?? 0
    assert(member.raft?.role === 'leader', 'only a leader appends')
    this.#appendRecords(
      member,
      Array.from({ length: count }, () => ({ epoch, value: ++this.#value })),
    )
  }

  #appendRecords(member: Member, records: readonly SimRecord[]): void {
    for (const record of records) {
      member.log.append(record)
      if (record.voters === undefined) continue
      this.#step(member, { kind: 'voters-changed', voters: record.voters, offset: member.log.nextOffset - 1 })
    }
    this.#stored(member, { kind: 'log-stored', endOffset: member.log.nextOffset })
  }

  #truncate(member: Member, endOffset: number): void {
    const before = member.log.votersAt()
    member.log.truncate(endOffset)
    const after = member.log.votersAt()
    if (before?.offset !== after?.offset) {
      this.#step(member, { kind: 'voters-changed', voters: after?.voters ?? this.#first, offset: after?.offset ?? -1 })
    }
    this.#step(member, { kind: 'truncated' })
  }

  #download(member: Member, leaderId: NodeId, snapshotId: SnapshotId): void {
    const { raft, id } = member
    let left = member.snapshotPieces
    let hasCome = true
    const isOver = () => raft === undefined || member.raft !== raft || left === 0
    const failed = () => {
      if (isOver()) return
      left = 0
      this.#say(`${id} does not get it`)
      this.#step(member, { kind: 'snapshot-failed', id: snapshotId })
    }
    const came = (snapshot: SimSnapshot) => {
      if (isOver()) return
      hasCome = true
      left--
      this.#step(member, { kind: 'snapshot-progress' })
      if (left === 0) this.#load(member, snapshot)
      else this.#timeouts.push({ at: this.#now + PIECE_MS, run: ask })
    }
    const ask = () => {
      if (isOver()) return
      hasCome = false
      this.#timeouts.push({ at: this.#now + REQUEST_TIMEOUT_MS, run: () => hasCome || failed() })
      this.#mail.push({
        from: id,
        to: leaderId,
        deliver: () => {
          const leader = this.#member(leaderId)
          const found = leader.log.snapshots.find(each => each.id.endOffset === snapshotId.endOffset)
          if (leader.raft === undefined) {
            if (!leader.isSilent) failed()
          } else if (found === undefined || member.missesSnapshot) {
            member.missesSnapshot = false
            this.#mail.push({ from: leaderId, to: id, deliver: failed })
          } else {
            this.#step(leader, { kind: 'snapshot-read', replica: { id, directoryId: member.directoryId } })
            this.#mail.push({ from: leaderId, to: id, deliver: () => came(found) })
          }
        },
      })
    }
    ask()
  }

  #load(member: Member, snapshot: SimSnapshot): void {
    member.log.beginAt(snapshot)
    const { votersAt } = snapshot
    if (votersAt !== undefined) {
      this.#step(member, { kind: 'voters-changed', voters: votersAt.voters, offset: votersAt.offset })
    }
    this.#step(member, { kind: 'snapshot-loaded', id: snapshot.id })
  }

  // -- messages

  #send(from: Member, request: number, to: NodeId | 'anyone', message: RaftRequest): void {
    const others = [...this.#members.keys()].filter(id => id !== from.id)
    const id = to === 'anyone' ? others[request % others.length] : to
    this.#say(`${from.id} > ${to === 'anyone' ? `${id}?` : id} ${showRequest(message)}`)
    const target = id === undefined ? undefined : this.#members.get(id)
    const { raft } = from
    let isOver = false
    const over = (then: () => void) => {
      if (isOver || from.raft !== raft) return
      isOver = true
      then()
    }
    const unanswered = (refused: boolean) => over(() => this.#step(from, { kind: 'unanswered', request, refused }))
    this.#timeouts.push({ at: this.#now + REQUEST_TIMEOUT_MS, run: () => unanswered(false) })
    if (target === undefined) return
    const answer = (response: RaftResponse, records: readonly SimRecord[]) => {
      this.#mail.push({
        from: target.id,
        to: from.id,
        deliver: () =>
          over(() => {
            from.records.set(request, records)
            this.#step(from, { kind: 'answered', request, response })
          }),
      })
    }
    this.#mail.push({
      from: from.id,
      to: target.id,
      deliver: () => {
        if (target.raft !== undefined) this.#deliver(target, message, answer)
        else if (!target.isSilent) unanswered(true)
      },
    })
  }

  #deliver(
    target: Member,
    message: RaftRequest,
    answer: (response: RaftResponse, records: readonly SimRecord[]) => void,
  ): void {
    if (message.kind === 'kraft-range') {
      answer({ kind: 'kraft-range', ...(target.isOld ? { min: 0, max: 0 } : KRAFT_VERSIONS) }, [])
      return
    }
    if (target.isOld && message.kind === 'vote' && message.vote.preVote) {
      const refused = { errorCode: ErrorCode.UNSUPPORTED_VERSION, leaderId: -1, leaderEpoch: -1, granted: false }
      this.#say(`${target.id} answers vote UNSUPPORTED_VERSION`)
      answer({ kind: 'vote', answer: refused }, [])
      return
    }
    const call = ++this.#lastCall
    const reply = (given: RaftAnswer): void => {
      this.#say(`${target.id} answers ${showAnswer(given, message)}`)
      const [response, records] = this.#responseOf(target, message, given)
      answer(response, records)
    }
    this.#calls.set(call, { member: target, reply })
    if (message.kind !== 'add-voter') this.#step(target, { ...message, call })
    else this.#step(target, { ...message, call, timeoutMs: 1000, ackWhenCommitted: false })
  }

  #responseOf(target: Member, message: RaftRequest, given: RaftAnswer): [RaftResponse, readonly SimRecord[]] {
    if (given.kind !== 'fetch' || message.kind !== 'fetch') return [given as RaftResponse, []]
    const { answer } = given
    const { offset } = message.fetch
    const records: SimRecord[] = []
    if (answer.errorCode === 0 && answer.position.kind === 'valid') {
      for (let at = offset; at < answer.upTo; at++) records.push(target.log.at(at) as SimRecord)
    }
    return [{ kind: 'fetch', answer, endOffset: offset + records.length }, records]
  }

  /** What a stranger or a client asks. */
  #ask(kind: string, member: Member, named: Map<string, string>): void {
    const number = (name: string, otherwise: number) => Number(named.get(name) ?? otherwise)
    const id = number('id', 9)
    const epoch = number('epoch', member.raft?.epoch ?? 0)
    const call = ++this.#lastCall
    const key = { id, directoryId: named.get('directory') ?? directory(id) }
    const voter = { id: member.id, directoryId: named.get('to') ?? member.directoryId }
    const events: Record<string, RaftEvent> = {
      'add-voter': {
        kind: 'add-voter',
        call,
        voter: { ...this.#voter(id, key.directoryId), ...(named.has('nowhere') && { endpoints: [] }) },
        timeoutMs: number('timeout', 1000),
        ackWhenCommitted: !named.has('early'),
      },
      'remove-voter': { kind: 'remove-voter', call, voter: key },
      'record-voters': { kind: 'record-voters', call },
      'update-voter': {
        kind: 'update-voter',
        call,
        epoch,
        voter: {
          ...this.#voter(id, key.directoryId),
          endpoints: [{ name: 'C', host: `n${id}`, port: number('port', 9093) }],
        },
      },
      vote: {
        kind: 'vote',
        call,
        vote: {
          epoch,
          candidate: key,
          voter,
          lastEpoch: number('last', 0),
          endOffset: number('end', 0),
          preVote: named.has('pre'),
        },
      },
      'begin-epoch': { kind: 'begin-epoch', call, begin: { leaderId: id, epoch, voter } },
      'end-epoch': { kind: 'end-epoch', call, end: { leaderId: id, epoch, successors: [] } },
    }
    const event = events[kind]
    assert(event !== undefined, 'the command is known')
    this.#calls.set(call, { member, reply: given => this.#say(`${member.id} answers ${showAnswer(given, undefined)}`) })
    this.#step(member, event)
  }
}

function directory(id: NodeId, letter = 'D'): Uuid {
  return `${letter}${String(id).padStart(20, '0')}A`
}
