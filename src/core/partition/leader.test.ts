import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BatchBuilder } from '#records/builder.ts'
import { type LeaderEffect, type LeaderOptions, PartitionLeader } from './leader.ts'
import { ProducerStates } from './producers.ts'

function batch(count: number, producer?: { id: number; epoch: number; sequence: number }): Buffer {
  const builder = new BatchBuilder(
    producer === undefined
      ? {}
      : { producerId: producer.id, producerEpoch: producer.epoch, baseSequence: producer.sequence },
  )
  for (let i = 0; i < count; i++) builder.append(1000 + i, null, Buffer.from('v'))
  return builder.build()
}

const LAG_MS = 30_000

function leader(endOffset = 0, options: Partial<LeaderOptions> = {}): PartitionLeader<number> {
  return new PartitionLeader<number>({
    nodeId: 1,
    epoch: 3,
    endOffset,
    highWatermark: endOffset,
    replicas: [1],
    isr: [1],
    partitionEpoch: 10,
    minInSync: 1,
    producers: new ProducerStates(),
    lagTimeMaxMs: LAG_MS,
    eligibleEpoch: () => 100,
    now: 0,
    ...options,
  })
}

function produce(of: PartitionLeader<number>, bytes: Buffer, token: number, acks: -1 | 0 | 1 = -1) {
  return of.step({ kind: 'produce', buffer: bytes, at: 0, size: bytes.length, acks, token }, 0)
}

/** Effects in a form that reads well in a comparison. */
function told(effects: readonly LeaderEffect<number>[]): string[] {
  return effects.map(effect => {
    switch (effect.kind) {
      case 'append':
        return `append ${effect.firstOffset}..${effect.lastOffset}`
      case 'answer':
        return `answer ${effect.answer.token} ${effect.answer.error ?? 'ok'} ${effect.answer.baseOffset}`
      case 'highWatermark':
        return `highWatermark ${effect.offset}`
      case 'alterIsr':
        return `alterIsr ${effect.proposal.isr.map(({ brokerId }) => brokerId)} at ${effect.proposal.partitionEpoch}`
    }
  })
}

test('acks=all and acks=1 wait for the log, acks=0 does not', () => {
  const one = leader(10)
  assert.deepEqual(told(produce(one, batch(2), 1)), ['append 10..11'])
  assert.deepEqual(told(produce(one, batch(1), 2, 1)), ['append 12..12'])
  assert.deepEqual(told(produce(one, batch(1), 3, 0)), ['append 13..13', 'answer 3 ok 13'])
  assert.deepEqual(told(one.step({ kind: 'stored', endOffset: 12 }, 0)), ['highWatermark 12', 'answer 1 ok 10'])
  assert.deepEqual(told(one.step({ kind: 'stored', endOffset: 14 }, 0)), ['highWatermark 14', 'answer 2 ok 12'])
})

test('fewer replicas in sync than wanted refuse acks=all before anything is written, and only that', () => {
  const one = leader(0, { replicas: [1, 2], minInSync: 2 })
  assert.deepEqual(told(produce(one, batch(1), 1)), ['answer 1 NOT_ENOUGH_REPLICAS -1'])
  assert.deepEqual(told(produce(one, batch(1), 2, 1)), ['append 0..0'])
})

test('a repeat is answered with its first offset, when it is stored as the first one is', () => {
  const one = leader()
  const sent = () => batch(3, { id: 7, epoch: 0, sequence: 0 })
  assert.deepEqual(told(produce(one, sent(), 1)), ['append 0..2'])
  assert.deepEqual(told(produce(one, sent(), 2)), [])
  assert.deepEqual(told(one.step({ kind: 'stored', endOffset: 3 }, 0)), [
    'highWatermark 3',
    'answer 1 ok 0',
    'answer 2 ok 0',
  ])
  assert.deepEqual(told(produce(one, sent(), 3)), ['answer 3 ok 0'])
})

test('a gap is refused, and so is an old epoch; a new epoch starts at 0', () => {
  const one = leader()
  produce(one, batch(2, { id: 7, epoch: 1, sequence: 0 }), 1)
  assert.deepEqual(told(produce(one, batch(1, { id: 7, epoch: 1, sequence: 3 }), 2)), [
    'answer 2 OUT_OF_ORDER_SEQUENCE_NUMBER -1',
  ])
  assert.deepEqual(told(produce(one, batch(1, { id: 7, epoch: 0, sequence: 2 }), 3)), [
    'answer 3 INVALID_PRODUCER_EPOCH -1',
  ])
  assert.deepEqual(told(produce(one, batch(1, { id: 7, epoch: 2, sequence: 5 }), 4)), [
    'answer 4 OUT_OF_ORDER_SEQUENCE_NUMBER -1',
  ])
  assert.deepEqual(told(produce(one, batch(1, { id: 7, epoch: 2, sequence: 0 }), 5)), ['append 2..2'])
})

test('after a failed write the same offsets are given again and the retry is no repeat', () => {
  const one = leader()
  const first = () => batch(2, { id: 7, epoch: 0, sequence: 0 })
  produce(one, first(), 1)
  one.step({ kind: 'stored', endOffset: 2 }, 0)
  const second = () => batch(1, { id: 7, epoch: 0, sequence: 2 })
  produce(one, second(), 2)
  assert.deepEqual(told(one.step({ kind: 'storeFailed', endOffset: 2, message: 'full' }, 0)), [
    'answer 2 KAFKA_STORAGE_ERROR -1',
  ])
  assert.deepEqual(told(produce(one, second(), 3)), ['append 2..2'])
  assert.deepEqual(told(produce(one, first(), 4)), ['answer 4 ok 0'])
})

test('whoever waits is told when the leadership ends', () => {
  const one = leader()
  produce(one, batch(1), 1)
  assert.deepEqual(told(one.step({ kind: 'resigned' }, 0)), ['answer 1 NOT_LEADER_OR_FOLLOWER -1'])
})

test('every produce is answered once, offsets are dense, the watermark never falls', () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('produce' as const),
      count: fc.integer({ min: 1, max: 5 }),
      acks: fc.constantFrom(-1, 0, 1),
    }),
    fc.record({ kind: fc.constant('store' as const), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ kind: fc.constant('fail' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), steps => {
      const one = leader()
      let token = 0
      let next = 0
      let stored = 0
      let watermark = 0
      const ends: number[] = []
      const answered = new Map<number, number>()
      const take = (effects: readonly LeaderEffect<number>[]) => {
        for (const effect of effects) {
          if (effect.kind === 'append') {
            assert.equal(effect.firstOffset, next)
            next = effect.lastOffset + 1
            ends.push(next)
          } else if (effect.kind === 'answer') {
            answered.set(effect.answer.token, (answered.get(effect.answer.token) ?? 0) + 1)
          } else if (effect.kind === 'highWatermark') {
            assert.ok(effect.offset > watermark)
            watermark = effect.offset
          }
        }
      }
      for (const each of steps) {
        if (each.kind === 'produce') take(produce(one, batch(each.count), token++, each.acks as -1 | 0 | 1))
        else if (each.kind === 'store') {
          const due = ends.filter(end => end > stored)
          if (due.length === 0) continue
          stored = due[Math.floor(each.part * (due.length - 1))] as number
          take(one.step({ kind: 'stored', endOffset: stored }, 0))
        } else {
          next = stored
          ends.length = 0
          take(one.step({ kind: 'storeFailed', endOffset: stored, message: 'no' }, 0))
        }
      }
      take(one.step({ kind: 'resigned' }, 0))
      for (let each = 0; each < token; each++) assert.equal(answered.get(each), 1, `token ${each}`)
    }),
  )
})

const THREE = { replicas: [1, 2, 3], isr: [1, 2, 3], minInSync: 2 }

function fetched(of: PartitionLeader<number>, replica: number, offset: number, now = 0, brokerEpoch = 100) {
  return of.step({ kind: 'followerFetched', replica, offset, startOffset: 0, leaderStart: 0, brokerEpoch }, now)
}

test('acks=all waits for all in sync; who left counts until the controller said so', () => {
  const one = leader(0, THREE)
  produce(one, batch(1), 1)
  one.step({ kind: 'stored', endOffset: 1 }, 0)
  assert.deepEqual(told(fetched(one, 2, 1)), [])
  assert.deepEqual(told(fetched(one, 3, 0)), [])
  assert.equal(one.wakeAt(0), LAG_MS + 1)
  const [effect] = one.step({ kind: 'tick' }, LAG_MS + 1)
  assert.ok(effect?.kind === 'alterIsr')
  assert.deepEqual(told([effect]), ['alterIsr 1,2 at 10'])
  assert.deepEqual(told(one.step({ kind: 'tick' }, 2 * LAG_MS)), [], 'one is under way')
  const answer = { kind: 'accepted', isr: [1, 2], leaderEpoch: 3, partitionEpoch: 11 } as const
  assert.deepEqual(told(one.step({ kind: 'isrAnswered', proposal: effect.proposal, answer }, 2 * LAG_MS)), [
    'highWatermark 1',
    'answer 1 ok 0',
  ])
})

test('who was close to join is waited for no longer when its time is over, though nobody stirs', () => {
  // What was under way when the epoch began comes to the log after the follower outside was caught up, and died.
  const one = leader(95, { ...THREE, isr: [1, 2], nextOffset: 100 })
  fetched(one, 2, 95)
  assert.deepEqual(told(fetched(one, 3, 95)), [], 'not up to where the epoch began')
  one.step({ kind: 'stored', endOffset: 100 }, 10)
  assert.deepEqual(told(fetched(one, 2, 100, 20)), [])
  assert.equal(one.wakeAt(20), LAG_MS + 1)
  assert.deepEqual(told(one.step({ kind: 'tick' }, LAG_MS + 1)), ['highWatermark 100'])
  assert.equal(one.wakeAt(LAG_MS + 1), undefined)
})

test('who is proposed counts for the watermark before the answer, whichever way that comes', () => {
  const one = leader(5, { ...THREE, isr: [1, 2], highWatermark: 3 })
  fetched(one, 2, 5)
  assert.deepEqual(told(fetched(one, 3, 4)), [], 'not up to where the epoch began')
  assert.deepEqual(told(fetched(one, 3, 5)), ['alterIsr 1,2,3 at 10'])
  produce(one, batch(1), 1)
  one.step({ kind: 'stored', endOffset: 6 }, 0)
  assert.deepEqual(told(fetched(one, 2, 6, 3 * LAG_MS)), [], '3 may be in sync by now')
  const event = { kind: 'assigned', replicas: [1, 2, 3], isr: [1, 2], partitionEpoch: 11 } as const
  assert.deepEqual(told(one.step(event, 3 * LAG_MS)), ['highWatermark 6', 'answer 1 ok 5'])
})

test('who is fenced, leaves, or lives another life does not join; too few in sync hold the watermark', () => {
  const epochs = new Map([[2, 100]])
  const one = leader(5, { ...THREE, isr: [1], highWatermark: 5, eligibleEpoch: id => epochs.get(id) })
  assert.deepEqual(told(fetched(one, 3, 5)), [])
  assert.deepEqual(told(fetched(one, 2, 5, 0, 99)), [])
  assert.deepEqual(told(produce(one, batch(1), 1)), ['answer 1 NOT_ENOUGH_REPLICAS -1'])
  produce(one, batch(1), 2, 1)
  assert.deepEqual(told(one.step({ kind: 'stored', endOffset: 6 }, 0)), ['answer 2 ok 5'])
  assert.equal(one.highWatermark, 5)
  epochs.set(3, 100)
  assert.deepEqual(told(one.step({ kind: 'brokersChanged' }, 0)), ['alterIsr 1,3 at 10'])
})

test('what the controller refuses is asked again later, and what it leaves open waits for the metadata, but not for ever', () => {
  const one = leader(5, { ...THREE, isr: [1, 2] })
  const [first] = fetched(one, 3, 5)
  assert.ok(first?.kind === 'alterIsr')
  const refuse = (
    proposal: typeof first.proposal,
    error: 'INELIGIBLE_REPLICA' | 'INVALID_UPDATE_VERSION',
    now: number,
  ) => told(one.step({ kind: 'isrAnswered', proposal, answer: { kind: 'refused', error } }, now))
  assert.deepEqual(refuse(first.proposal, 'INELIGIBLE_REPLICA', 0), [])
  assert.deepEqual(told(fetched(one, 3, 5, 50)), [])
  const [second] = fetched(one, 3, 5, 150)
  assert.ok(second?.kind === 'alterIsr')
  assert.deepEqual(refuse(second.proposal, 'INVALID_UPDATE_VERSION', 200), [])
  assert.deepEqual(told(fetched(one, 3, 5, 5_000)), [])
  // They did not come, so what was refused may have been said of a change that never was.
  assert.equal(one.wakeAt(5_000), 5_200)
  const [third] = one.step({ kind: 'tick' }, 5_200)
  assert.ok(third?.kind === 'alterIsr')
  assert.equal(third.proposal, second.proposal)
  assert.deepEqual(told(fetched(one, 3, 5, 10_000)), [], 'under way once more')
  const event = { kind: 'assigned', replicas: [1, 2, 3], isr: [1, 2, 3], partitionEpoch: 12 } as const
  one.step(event, 10_000)
  assert.deepEqual(one.replicas.isr, [1, 2, 3])
})
