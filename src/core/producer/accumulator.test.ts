import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { ErrorCode } from '#protocol/errors.ts'
import * as batch from '#records/batch.ts'
import { recordsOf } from '#records/records.ts'
import { Accumulator, type AccumulatorOptions, type ProducerBatch } from './accumulator.ts'

const OPTIONS: AccumulatorOptions = {
  batchBytes: 200,
  lingerMs: 10,
  bufferBytesMax: 100_000,
  recordBytesMax: 10_000,
  deliveryTimeoutMs: 1000,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 400,
  compression: 'none',
  idempotent: true,
}
const HERE = [{ topic: 't', partition: 0 }]

function accumulator(options: Partial<AccumulatorOptions> = {}): Accumulator<number> {
  const made = new Accumulator<number>({ ...OPTIONS, ...options })
  made.identify({ producerId: 7, epoch: 0 })
  return made
}

function add(to: Accumulator<number>, tag: number, now: number, size = 10): string {
  const record = { timestamp: 1, key: null, value: Buffer.alloc(size, tag), headers: [] }
  return to.append('t', 0, record, tag, now)
}

/** One whose partition has had a batch with one record written, so that several may be under way. */
function established(): Accumulator<number> {
  const made = accumulator()
  made.settle(sendBatch(made, 0, 0), answer(0), 0)
  return made
}

/** Adds `count` records as one batch and sends it. */
function sendBatch(from: Accumulator<number>, tag: number, now: number, count = 1): ProducerBatch<number> {
  for (let record = 0; record < count; record++) add(from, tag, now)
  const [drained] = from.drain(HERE, 1e6, now + 10)
  assert.ok(drained !== undefined)
  return drained
}

function sequenceOf({ bytes }: ProducerBatch<number>): [epoch: number, sequence: number] {
  assert.ok(bytes !== undefined)
  assert.equal(batch.checkCrc(bytes, 0), undefined)
  return [batch.producerEpoch(bytes, 0), batch.baseSequence(bytes, 0)]
}

const answer = (errorCode: number, baseOffset = 0) => ({ answered: true, errorCode, baseOffset }) as const
const NO_ANSWER = { answered: false } as const

test('a batch waits for company, but not longer than it lingers', () => {
  const waiting = accumulator()
  add(waiting, 1, 0)
  assert.deepEqual(waiting.ready(9), [])
  assert.equal(waiting.wakeAt(), 10)
  add(waiting, 2, 5)
  assert.equal(waiting.ready(10).length, 1)
  const [drained] = waiting.drain(HERE, 1e6, 10)
  assert.deepEqual(drained?.tags, [1, 2])
  assert.equal([...recordsOf(drained?.bytes ?? Buffer.alloc(0))].length, 2)
  assert.equal(waiting.wakeAt(), undefined)
})

test('a full batch, a flush and a nearly full buffer do not linger', () => {
  const full = accumulator()
  for (let tag = 0; tag < 12; tag++) add(full, tag, 0)
  assert.equal(full.ready(0).length, 1)
  const flushed = accumulator()
  add(flushed, 1, 0)
  flushed.flush()
  assert.equal(flushed.ready(0).length, 1)
  const pressed = accumulator({ bufferBytesMax: 150, lingerMs: 500 })
  add(pressed, 1, 0)
  assert.equal(pressed.ready(0).length, 1)
})

test('the buffer has an end; room comes back when batches are settled', () => {
  const small = accumulator({ bufferBytesMax: 150 })
  assert.equal(add(small, 1, 0), 'taken')
  assert.equal(add(small, 2, 0), 'full')
  assert.equal(add(small, 3, 0, 20_000), 'too-large')
  const [drained] = small.drain(HERE, 1e6, 0)
  assert.ok(drained !== undefined)
  assert.equal(add(small, 2, 0), 'full')
  small.settle(drained, answer(0), 0)
  assert.ok(small.empty)
  assert.equal(add(small, 2, 0), 'taken')
})

test('nothing is sent before there is a producer id', () => {
  const nameless = new Accumulator<number>(OPTIONS)
  add(nameless, 1, 0)
  assert.ok(nameless.needsIdentity)
  assert.deepEqual(nameless.ready(100), [])
  assert.equal(nameless.wakeAt(), 1000)
  nameless.identify({ producerId: 1, epoch: 3 })
  const [drained] = nameless.drain(HERE, 1e6, 100)
  assert.ok(drained !== undefined)
  assert.deepEqual(sequenceOf(drained), [3, 0])
})

test('batches are numbered by their records', () => {
  const numbered = established()
  assert.deepEqual(sequenceOf(sendBatch(numbered, 1, 0, 3)), [0, 1])
  assert.deepEqual(sequenceOf(sendBatch(numbered, 2, 20, 2)), [0, 4])
  assert.deepEqual(sequenceOf(sendBatch(numbered, 3, 40)), [0, 6])
})

test('what failed is sent again with its numbers, alone, before everything newer', () => {
  const retrying = established()
  const first = sendBatch(retrying, 1, 0)
  const second = sendBatch(retrying, 2, 20)
  const third = sendBatch(retrying, 3, 40)
  add(retrying, 4, 41)
  assert.equal(retrying.settle(first, answer(ErrorCode.NOT_LEADER_OR_FOLLOWER), 50).type, 'retry')
  assert.equal(retrying.settle(third, answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 51).type, 'retry')
  assert.equal(retrying.settle(second, answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 52).type, 'retry')
  assert.deepEqual(retrying.ready(149), [], 'the backoff')
  assert.deepEqual(retrying.drain(HERE, 1e6, 400), [first])
  assert.deepEqual(sequenceOf(first), [0, 1])
  assert.deepEqual(retrying.ready(400), [], 'the second waits for the first')
  assert.deepEqual(retrying.settle(first, answer(0, 100), 410), { type: 'written', baseOffset: 100 })
  assert.deepEqual(retrying.drain(HERE, 1e6, 420), [second])
  retrying.settle(second, answer(ErrorCode.DUPLICATE_SEQUENCE_NUMBER), 430)
  assert.deepEqual(retrying.drain(HERE, 1e6, 440), [third])
  retrying.settle(third, answer(0), 450)
  assert.deepEqual(retrying.drain(HERE, 1e6, 460)[0]?.tags, [4])
})

test('no more than five are without an answer, wherever they were sent: of more the broker would not know a repeat', () => {
  const many = established()
  const sent = [1, 2, 3, 4, 5].map(tag => sendBatch(many, tag, 0))
  add(many, 6, 0)
  assert.deepEqual(many.ready(500), [])
  assert.deepEqual(many.drain(HERE, 1e6, 500), [])
  many.settle(sent[0] as ProducerBatch<number>, answer(0), 500)
  assert.equal(many.drain(HERE, 1e6, 500).length, 1)
})

test('what may have been written keeps its number and epoch, though the batch before it is given up', () => {
  const made = established()
  const first = sendBatch(made, 1, 0)
  const second = sendBatch(made, 2, 500)
  made.settle(first, NO_ANSWER, 600)
  made.settle(second, NO_ANSWER, 600)
  assert.deepEqual(made.expire(1000), [first])
  add(made, 3, 1000)
  assert.deepEqual(made.drain(HERE, 1e6, 1050), [second])
  assert.deepEqual(sequenceOf(second), [0, 2])
  assert.deepEqual(made.ready(1100), [], 'what is new would come behind a hole')
  made.settle(second, answer(0), 1110)
  // Where it came in, so had the first.
  assert.deepEqual(sequenceOf(made.drain(HERE, 1e6, 1120)[0] as ProducerBatch<number>), [0, 3])
})

test('where the batch before it was not written, what follows tells, and starts again', () => {
  const made = established()
  const first = sendBatch(made, 1, 0)
  const second = sendBatch(made, 2, 500)
  made.settle(first, NO_ANSWER, 600)
  made.settle(second, NO_ANSWER, 600)
  made.expire(1000)
  assert.deepEqual(made.drain(HERE, 1e6, 1050), [second])
  assert.equal(made.settle(second, answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 1110).type, 'retry')
  assert.deepEqual(made.drain(HERE, 1e6, 1400), [second])
  assert.deepEqual(sequenceOf(second), [1, 0])
})

test('what may have been written keeps its number and epoch, though another partition raises the epoch', () => {
  const made = established()
  const other = [{ topic: 't', partition: 1 }]
  const held = sendBatch(made, 1, 0)
  made.settle(held, NO_ANSWER, 20)
  made.append('t', 1, { timestamp: 1, key: null, value: Buffer.alloc(1), headers: [] }, 2, 20)
  const [refused] = made.drain(other, 1e6, 40)
  made.settle(refused as ProducerBatch<number>, answer(ErrorCode.INVALID_RECORD), 50)
  made.append('t', 1, { timestamp: 1, key: null, value: Buffer.alloc(1), headers: [] }, 3, 50)
  assert.deepEqual(sequenceOf(made.drain(other, 1e6, 60)[0] as ProducerBatch<number>), [1, 0])
  add(made, 4, 60)
  assert.deepEqual(made.drain(HERE, 1e6, 200), [held])
  assert.deepEqual(sequenceOf(held), [0, 1])
  assert.deepEqual(made.drain(HERE, 1e6, 200), [])
  made.settle(held, answer(0), 210)
  assert.deepEqual(sequenceOf(made.drain(HERE, 1e6, 220)[0] as ProducerBatch<number>), [1, 0])
})

test('a hole in the numbers raises the epoch once all has come back, and what is left starts at 0', () => {
  const broken = established()
  const first = sendBatch(broken, 1, 0)
  const second = sendBatch(broken, 2, 20)
  assert.deepEqual(broken.settle(first, answer(ErrorCode.MESSAGE_TOO_LARGE), 30), {
    type: 'failed',
    errorCode: ErrorCode.MESSAGE_TOO_LARGE,
  })
  add(broken, 3, 30)
  assert.deepEqual(broken.ready(100), [], 'the second is under way with a number of the old epoch')
  assert.equal(broken.settle(second, answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 100).type, 'retry')
  assert.deepEqual(broken.drain(HERE, 1e6, 300), [second])
  assert.deepEqual(sequenceOf(second), [1, 0])
  broken.settle(second, answer(0), 310)
  assert.deepEqual(sequenceOf(broken.drain(HERE, 1e6, 320)[0] as ProducerBatch<number>), [1, 1])
})

test('a broker that forgot the producer is met under a new epoch', () => {
  for (const errorCode of [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]) {
    const forgotten = established()
    const sent = sendBatch(forgotten, 1, 0)
    assert.equal(forgotten.settle(sent, answer(errorCode), 10).type, 'retry')
    assert.deepEqual(forgotten.drain(HERE, 1e6, 200), [sent])
    assert.deepEqual(sequenceOf(sent), [1, 0])
  }
})

test('until the first batch is taken no second one is sent: refused, the broker would begin with the second', () => {
  const fresh = accumulator()
  const first = sendBatch(fresh, 1, 0)
  add(fresh, 2, 20)
  assert.deepEqual(fresh.ready(100), [])
  assert.equal(fresh.settle(first, answer(ErrorCode.NOT_LEADER_OR_FOLLOWER), 100).type, 'retry')
  assert.deepEqual(fresh.drain(HERE, 1e6, 300), [first])
  assert.deepEqual(fresh.ready(300), [])
  fresh.settle(first, answer(0), 310)
  assert.deepEqual(fresh.drain(HERE, 1e6, 310)[0]?.tags, [2])
})

test('another partition goes on under its old epoch until nothing of it is under way', () => {
  const two = accumulator()
  const other = [{ topic: 't', partition: 1 }]
  const record = { timestamp: 1, key: null, value: Buffer.alloc(1), headers: [] }
  two.append('t', 1, record, 1, 0)
  const [held] = two.drain(other, 1e6, 10)
  const failed = sendBatch(two, 2, 0)
  two.settle(failed, answer(ErrorCode.INVALID_RECORD), 20)
  assert.deepEqual(sequenceOf(sendBatch(two, 3, 20)), [1, 0])
  two.append('t', 1, record, 4, 20)
  assert.deepEqual(two.drain(other, 1e6, 100), [])
  two.settle(held as ProducerBatch<number>, answer(0), 110)
  assert.deepEqual(sequenceOf(two.drain(other, 1e6, 120)[0] as ProducerBatch<number>), [1, 0])
})

test('the last epoch asks for a new producer id', () => {
  const last = new Accumulator<number>(OPTIONS)
  last.identify({ producerId: 7, epoch: 0x7ffe })
  const first = sendBatch(last, 1, 0)
  last.settle(first, answer(ErrorCode.INVALID_RECORD), 10)
  assert.ok(last.needsIdentity)
  last.identify({ producerId: 8, epoch: 0 })
  const next = sendBatch(last, 2, 20)
  assert.equal(batch.producerId(next.bytes as Buffer, 0), 8)
  assert.deepEqual(sequenceOf(next), [0, 0])
})

test('what expires does so when the accumulator wants to be woken for it, whatever the digits of the time', () => {
  const late = accumulator()
  const createdAt = 24.1
  const first = sendBatch(late, 1, createdAt)
  assert.equal(late.settle(first, NO_ANSWER, createdAt + 999.9).type, 'retry')
  const at = late.wakeAt() ?? 0
  assert.ok(at - createdAt < 1000)
  assert.deepEqual(late.expire(at), [first])
})

test('nothing is tried for longer than the delivery timeout', () => {
  const late = accumulator()
  const first = sendBatch(late, 1, 0)
  assert.equal(late.settle(first, NO_ANSWER, 500).type, 'retry')
  assert.deepEqual(late.expire(999), [])
  assert.deepEqual(late.expire(1000), [first])
  const second = sendBatch(late, 2, 1000)
  assert.deepEqual(sequenceOf(second), [1, 0], 'whether the first was written is not known: a new epoch')
  assert.deepEqual(late.settle(second, NO_ANSWER, 2000), {
    type: 'failed',
    errorCode: ErrorCode.REQUEST_TIMED_OUT,
  })
  assert.ok(late.empty)
})

test('without idempotence batches carry no numbers', () => {
  const plain = new Accumulator<number>({ ...OPTIONS, idempotent: false })
  const first = sendBatch(plain, 1, 0)
  assert.equal(batch.producerId(first.bytes as Buffer, 0), -1)
  assert.equal(plain.settle(first, NO_ANSWER, 20).type, 'retry')
  assert.deepEqual(plain.drain(HERE, 1e6, 200), [first])
})

test('without idempotence as well, what a broken connection brings back is sent again in its order', () => {
  const plain = new Accumulator<number>({ ...OPTIONS, idempotent: false })
  const sent = [1, 2, 3].map(tag => sendBatch(plain, tag, tag * 20))
  for (const each of sent) plain.settle(each, NO_ANSWER, 100)
  assert.deepEqual(
    sent.flatMap(() => plain.drain(HERE, 1e6, 1000)),
    sent,
  )
})

/** A broker that keeps the numbers as Kafka's does (whom it does not know may begin anywhere), behind a network that loses requests and answers. */
class SequencedLog {
  readonly written: number[] = []
  #epoch = -1
  #next = 0
  #recent: { epoch: number; sequence: number }[] = []

  append(sent: ProducerBatch<number>): number {
    const [epoch, sequence] = sequenceOf(sent)
    if (this.#recent.some(each => each.epoch === epoch && each.sequence === sequence)) return 0
    if (epoch < this.#epoch) return ErrorCode.INVALID_PRODUCER_EPOCH
    const due = epoch > this.#epoch ? (this.#epoch < 0 ? sequence : 0) : this.#next
    if (sequence !== due) return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    this.#epoch = epoch
    this.#next = sequence + sent.recordsCount
    this.#recent = [...this.#recent, { epoch, sequence }].slice(-5)
    this.written.push(...sent.tags)
    return 0
  }
}

interface Sending {
  readonly random: SeededRandom
  readonly log: SequencedLog
  /** What was sent and is not answered. */
  readonly wire: ProducerBatch<number>[]
  settle(sent: ProducerBatch<number>, outcome: Parameters<Accumulator<number>['settle']>[1]): void
}

/** 60 records are appended and sent over time, what `begin` returns says what becomes of them, and the log has each once and in order. */
function allWritten(begin: () => (sending: Sending) => void): void {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new SeededRandom(seed)
    const sender = accumulator({ deliveryTimeoutMs: 1e9 })
    const log = new SequencedLog()
    const wire: ProducerBatch<number>[] = []
    const happens = begin()
    let now = 0
    let next = 0
    const settle: Sending['settle'] = (sent, outcome) => void sender.settle(sent, outcome, now)
    while (next < 60 || !sender.empty) {
      now += random.between(1, 60)
      for (let count = random.below(4); count > 0 && next < 60; count--) add(sender, next++, now)
      if (wire.length < 5) wire.push(...sender.drain(HERE, 1e6, now))
      happens({ random, log, wire, settle })
    }
    assert.deepEqual(
      log.written,
      Array.from({ length: 60 }, (_, tag) => tag),
      `seed ${seed}`,
    )
  }
}

test('whatever the network loses, every record is written once and in order', () => {
  allWritten(() => ({ random, log, wire, settle }) => {
    if (wire.length === 0 || !random.chance(0.5)) return
    // One connection: what is lost takes all behind it along, and each may have been written before.
    const broken = random.chance(0.3)
    for (const sent of wire.splice(0, broken ? wire.length : 1)) {
      const refused = random.chance(0.1) ? ErrorCode.NOT_LEADER_OR_FOLLOWER : undefined
      const errorCode = broken && random.chance(0.5) ? undefined : (refused ?? log.append(sent))
      settle(sent, broken || errorCode === undefined ? NO_ANSWER : answer(errorCode))
    }
  })
})

test('what waits at a leader that fell silent is known again as a repeat, however much its successor takes', () => {
  allWritten(() => {
    const unanswered: ProducerBatch<number>[] = []
    return ({ random, log, wire, settle }) => {
      if (random.chance(0.1)) {
        // Another one leads, and has what the one before had taken; that one never says so.
        for (const sent of wire.slice(0, random.below(wire.length + 1))) log.append(sent)
        unanswered.push(...wire.splice(0))
      }
      const sent = wire.shift()
      if (sent !== undefined) settle(sent, answer(log.append(sent)))
      // Its connection breaks in the end.
      if (random.chance(0.05)) for (const lost of unanswered.splice(0)) settle(lost, NO_ANSWER)
    }
  })
})

test('whatever is lost, refused and given up, nothing is written twice or out of order', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = new SeededRandom(seed)
    const sender = accumulator({ deliveryTimeoutMs: random.pick([400, 1000]) })
    const logs = [new SequencedLog(), new SequencedLog()]
    const wires: ProducerBatch<number>[][] = [[], []]
    const told = new Set<number>()
    const failed = new Set<number>()
    let now = 0
    let next = 0
    const note = (sent: ProducerBatch<number>, outcome: Parameters<typeof sender.settle>[1]): void => {
      const { type } = sender.settle(sent, outcome, now)
      if (type !== 'retry') for (const tag of sent.tags) (type === 'written' ? told : failed).add(tag)
    }
    while (next < 120 || !sender.empty) {
      now += random.between(1, 60)
      for (let count = random.below(4); count > 0 && next < 120; count--) {
        const record = { timestamp: 1, key: null, value: Buffer.alloc(10), headers: [] }
        sender.append('t', next % 2, record, next++, now)
      }
      for (const batch of sender.expire(now)) for (const tag of batch.tags) failed.add(tag)
      for (const [partition, wire] of wires.entries()) {
        if (wire.length < 5) wire.push(...sender.drain([{ topic: 't', partition }], 1e6, now))
        if (wire.length === 0 || random.chance(0.5)) continue
        const broken = random.chance(0.4)
        for (const sent of wire.splice(0, broken ? wire.length : 1)) {
          const refused = random.chance(0.15)
            ? random.pick([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.INVALID_RECORD])
            : undefined
          const errorCode = broken && random.chance(0.5) ? undefined : (refused ?? logs[partition]?.append(sent) ?? 0)
          note(sent, broken || errorCode === undefined ? NO_ANSWER : answer(errorCode))
        }
      }
    }
    for (const { written } of logs) {
      assert.deepEqual(
        written,
        [...new Set(written)].sort((a, b) => a - b),
        `seed ${seed}`,
      )
      for (const tag of written) assert.ok(told.has(tag) || failed.has(tag))
    }
    const written = new Set(logs.flatMap(log => log.written))
    for (const tag of told) assert.ok(written.has(tag), `seed ${seed}: ${tag} is missing`)
  }
})

test('what one leader did not take is sent to the next one at once', () => {
  const made = accumulator()
  add(made, 1, 0)
  const [batch] = made.drain([{ topic: 't', partition: 0, leaderEpoch: 3 }], 1e6, 10)
  assert.ok(batch !== undefined)
  made.settle(batch, NO_ANSWER, 20)
  made.hasten('t', 0, 3)
  assert.equal(made.wakeAt(), 120)
  made.hasten('t', 0, 4)
  assert.equal(made.ready(20).length, 1)
})
