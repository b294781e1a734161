import { assert } from '#base/assert.ts'
import type { Epoch, Millis, Offset } from '#base/units.ts'
import type { ControllerAnswer, ControllerCommand, ControllerMachine } from '#core/metadata/controller.ts'
import type { MetadataRecord } from '#core/metadata/record.ts'
import type { Clock } from '#world/world.ts'
import type { Appended, MetadataLog } from './metadata-log.ts'

export type CommandKind = ControllerCommand['kind']
export type CommandOf<Kind extends CommandKind> = Extract<ControllerCommand, { readonly kind: Kind }>
export type AnswerOf<Kind extends CommandKind> = Extract<ControllerAnswer, { readonly kind: Kind }>

/** This node is not the active controller, or stopped being it before the answer was certain. */
export class NotControllerError extends Error {
  override readonly name = 'NotControllerError'

  constructor(message = 'this node is not the active controller') {
    super(message)
  }
}

interface Pending {
  /** Certain once everything below is committed. */
  readonly offset: Offset
  readonly resolve: () => void
  readonly reject: (error: NotControllerError) => void
}

export interface TermOptions {
  readonly epoch: Epoch
  readonly log: MetadataLog
  readonly clock: Clock
  /** Appended bytes are durable up to the log's durable offset. */
  readonly stored: () => void
  readonly failed: (error: unknown) => void
}

/**
 * One term as the active controller. It begins with raft's own records; commands are taken once the machine is there, which
 * has to hold all that the log held before. A command is decided, appended and applied in one go; its answer leaves when all that
 * it rests on is committed. When an append fails the term is over, and its machine, which is ahead of the log, with it.
 */
export class Term {
  readonly epoch: Epoch
  readonly #options: TermOptions
  /** In the order of their offsets. */
  readonly #pending: Pending[] = []
  #highWatermark: Offset = -1
  /** What the machine has applied, and so where the log must go on. */
  #nextOffset: Offset
  #lastDone: Promise<void> | undefined
  #over = false
  #machine: ControllerMachine | undefined
  lastTimestamp: Millis = 0

  constructor(options: TermOptions) {
    this.#options = options
    this.epoch = options.epoch
    this.#nextOffset = options.log.nextOffset
  }

  /** Undefined before commands are taken. */
  get machine(): ControllerMachine | undefined {
    return this.#over ? undefined : this.#machine
  }

  get isOver(): boolean {
    return this.#over
  }

  /** From now on commands are taken. */
  activate(machine: ControllerMachine): void {
    this.#machine = machine
  }

  /** Everything below is committed; -1 before this term has committed anything. */
  get highWatermark(): Offset {
    return this.#highWatermark
  }

  /** Everything appended so far is in the log and in the machine. */
  get nextOffset(): Offset {
    return this.#nextOffset
  }

  /** A record was appended that is no metadata: raft's own, or one that founds the cluster. */
  control(appended: Appended): void {
    this.#follow(appended)
  }

  /** Resolves when it is certain; rejects with a NotControllerError. */
  submit<Kind extends CommandKind>(command: CommandOf<Kind>): Promise<AnswerOf<Kind>> {
    const { log, clock } = this.#options
    const { machine } = this
    if (machine === undefined) return Promise.reject(new NotControllerError())
    if (log.nextOffset !== this.#nextOffset) {
      // The log fell back behind what the machine has applied; the rejection that says so is on its way.
      return Promise.reject(new NotControllerError('an append failed'))
    }
    const { entries, answer } = machine.decide(command, clock.monotonic())
    if (entries.length > 0) this.write(entries)
    const offset = this.#nextOffset
    if (offset <= this.#highWatermark) return Promise.resolve(answer as AnswerOf<Kind>)
    return new Promise((resolve, reject) => {
      this.#pending.push({ offset, resolve: () => resolve(answer as AnswerOf<Kind>), reject })
    })
  }

  /** Writes and applies records that nobody decided: what a new cluster was given to begin with. */
  write(records: readonly MetadataRecord[]): void {
    const { machine } = this
    assert(machine !== undefined, 'metadata is written once commands are taken')
    const first = this.#nextOffset
    const appended = this.#options.log.appendRecords(this.epoch, records)
    for (const [index, record] of records.entries()) machine.apply(record, first + index, this.epoch)
    this.#nextOffset = first + records.length
    this.#follow(appended)
  }

  /** Resolves when all that is applied now is committed; rejects with a NotControllerError. */
  whenCommitted(): Promise<void> {
    const offset = this.#nextOffset
    if (offset <= this.#highWatermark) return Promise.resolve()
    return new Promise((resolve, reject) => this.#pending.push({ offset, resolve, reject }))
  }

  committed(highWatermark: Offset): void {
    this.#highWatermark = highWatermark
    let count = 0
    for (const { offset } of this.#pending) {
      if (offset > highWatermark) break
      count++
    }
    for (const { resolve } of this.#pending.splice(0, count)) resolve()
  }

  end(): void {
    this.#over = true
    for (const { reject } of this.#pending.splice(0)) reject(new NotControllerError('the term ended before the commit'))
  }

  #follow({ done }: Appended): void {
    const { log, clock, stored, failed } = this.#options
    this.lastTimestamp = clock.now()
    this.#nextOffset = Math.max(this.#nextOffset, log.nextOffset)
    // Appends that one write takes share their promise.
    if (done === this.#lastDone) return
    this.#lastDone = done
    // Also when the term is over by then: raft follows nobody before it knows what of its log is on the disk.
    done.then(stored, failed)
  }
}
