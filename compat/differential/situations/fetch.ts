import { API } from '#protocol/apis.ts'
import { pick, type Side, type Twin, type Two } from '../twin.ts'
import { batchOf, createTopic, NO_ID, produce, type Situation, T0, UNKNOWN_ID, untilGone } from './tools.ts'

interface Wanted {
  readonly partition: number
  readonly fetchOffset: number
  readonly partitionMaxBytes?: number
  readonly currentLeaderEpoch?: number
  readonly lastFetchedEpoch?: number
  readonly logStartOffset?: number
}

function wanted(version: number, name: string, id: string, ...partitions: readonly Wanted[]) {
  const list = partitions.map(partition => ({ partitionMaxBytes: 1_000_000, ...partition }))
  return version >= 13 ? { topicId: id, partitions: list } : { topic: name, partitions: list }
}

const QUICK = { maxWaitMs: 0, minBytes: 0, maxBytes: 10_000_000 }

async function offsets(twin: Twin): Promise<void> {
  const id = await createTopic(twin, 'f-plain', 2)
  for (let i = 0; i < 6; i++)
    await produce(twin, 'f-plain', batchOf(5, i % 2 === 0 ? {} : { compression: 'lz4' }, T0 + i * 100))
  await twin.call(API.DeleteRecords, 2, {
    topics: [{ name: 'f-plain', partitions: [{ partitionIndex: 0, offset: 7 }] }],
    timeoutMs: 20_000,
  })
  for (const version of twin.versionsOf(API.Fetch)) {
    const ask = (partition: Wanted, options: object = {}) =>
      twin.call(API.Fetch, version, side => ({
        ...QUICK,
        topics: [wanted(version, 'f-plain', id[side], partition)],
        ...options,
      }))
    for (const fetchOffset of [0, 6, 7, 8, 10, 12, 29, 30, 31, 1000, -1, -2]) await ask({ partition: 0, fetchOffset })
    for (const partition of [1, 2, -1]) await ask({ partition, fetchOffset: 0 })
    for (const partitionMaxBytes of [0, 1, 100, 300, 500, -1])
      await ask({ partition: 0, fetchOffset: 7, partitionMaxBytes })
    for (const maxBytes of [0, 1, 250, -1]) await ask({ partition: 0, fetchOffset: 7 }, { maxBytes })
    for (const isolationLevel of [0, 1]) await ask({ partition: 0, fetchOffset: 10 }, { isolationLevel })
    await ask({ partition: 0, fetchOffset: 30 }, { maxWaitMs: 5, minBytes: 1 })
    await ask({ partition: 0, fetchOffset: 10 }, { maxWaitMs: 5, minBytes: 100_000 })
    if (version >= 9)
      for (const currentLeaderEpoch of [-1, 0, 1, 5]) await ask({ partition: 0, fetchOffset: 10, currentLeaderEpoch })
    if (version >= 12)
      for (const lastFetchedEpoch of [-1, 0, 1]) await ask({ partition: 0, fetchOffset: 10, lastFetchedEpoch })
    if (version >= 11) await ask({ partition: 0, fetchOffset: 7 }, { rackId: 'rack1' })
    await twin.call(API.Fetch, version, { ...QUICK, topics: [] })
    await twin.call(API.Fetch, version, {
      ...QUICK,
      topics: [wanted(version, 'f-none', UNKNOWN_ID, { partition: 0, fetchOffset: 0 })],
    })
    await twin.call(API.Fetch, version, {
      ...QUICK,
      topics: [wanted(version, '', NO_ID, { partition: 0, fetchOffset: 0 })],
    })
    await twin.call(API.Fetch, version, side => ({
      ...QUICK,
      topics: [
        wanted(
          version,
          'f-plain',
          id[side],
          { partition: 0, fetchOffset: 7 },
          { partition: 1, fetchOffset: 0 },
          { partition: 5, fetchOffset: 0 },
        ),
        wanted(version, 'f-none', UNKNOWN_ID, { partition: 0, fetchOffset: 0 }),
      ],
    }))
    await twin.call(API.Fetch, version, side => ({
      ...QUICK,
      topics: [
        wanted(version, 'f-plain', id[side], { partition: 0, fetchOffset: 7 }, { partition: 0, fetchOffset: 12 }),
      ],
    }))
  }
  await twin.vary(API.Fetch, 350, side => ({
    ...QUICK,
    topics: [
      {
        topic: 'f-plain',
        topicId: id[side],
        partitions: [
          { partition: 0, fetchOffset: 12, partitionMaxBytes: 1_000_000 },
          { partition: 1, fetchOffset: 0, partitionMaxBytes: 1_000_000 },
        ],
      },
    ],
  }))
}

async function sessions(twin: Twin): Promise<void> {
  const id = await createTopic(twin, 'f-session', 3)
  await produce(twin, 'f-session', batchOf(3), batchOf(4))
  for (const version of twin.versionsOf(API.Fetch, 7)) {
    const connection = `session-${version}`
    const at = (partition: number, fetchOffset: number): Wanted => ({ partition, fetchOffset })
    const ask = (session: Two<number>, sessionEpoch: number, partitions: readonly Wanted[], options: object = {}) =>
      twin.call(
        API.Fetch,
        version,
        side => ({
          ...QUICK,
          sessionId: session[side],
          sessionEpoch,
          topics: partitions.length === 0 ? [] : [wanted(version, 'f-session', id[side], ...partitions)],
          ...options,
        }),
        connection,
      )
    const NONE = [0, 0] as const
    await ask(NONE, -1, [at(0, 0)])
    const opened = await ask(NONE, 0, [at(0, 0), at(1, 0), at(2, 0)])
    const session = pick(opened, answer => answer.sessionId, 0)
    await ask(session, 1, [at(0, 3), at(1, 4)])
    await ask(session, 2, [])
    await produce(twin, 'f-session', batchOf(1), batchOf(1))
    await ask(session, 3, [])
    await ask(session, 4, [at(1, 5)])
    await ask(session, 4, [])
    await ask(session, 7, [])
    const forget = (side: Side) => [
      version >= 13 ? { topicId: id[side], partitions: [0] } : { topic: 'f-session', partitions: [0] },
    ]
    await twin.call(
      API.Fetch,
      version,
      side => ({ ...QUICK, sessionId: session[side], sessionEpoch: 5, topics: [], forgottenTopicsData: forget(side) }),
      connection,
    )
    await ask(session, 6, [at(9, 0)])
    await ask(session, 7, [])
    await ask([77_777, 77_777], 1, [])
    await ask([77_777, 77_777], 0, [at(0, 0)])
    await ask([77_777, 77_777], -1, [at(0, 0)])
    await ask(NONE, 5, [at(0, 0)])
    await ask(NONE, -2, [at(0, 0)])
    await ask(session, -1, [])
    await ask(session, 8, [])
    // A session that begins with nothing, and one replaced by another.
    await ask(NONE, 0, [])
    const again = pick(await ask(NONE, 0, [at(1, 0)]), answer => answer.sessionId, 0)
    await ask(again, 0, [at(1, 1)])
    await ask(again, 1, [])
    await twin.call(API.DeleteRecords, 2, {
      topics: [
        {
          name: 'f-session',
          partitions: [
            { partitionIndex: 0, offset: -1 },
            { partitionIndex: 1, offset: -1 },
          ],
        },
      ],
      timeoutMs: 20_000,
    })
    await produce(twin, 'f-session', batchOf(3), batchOf(4))
  }
}

/** A topic that is deleted and created again: in a session and out of one, by its old id and its new one. */
async function recreated(twin: Twin): Promise<void> {
  for (const version of twin.versionsOf(API.Fetch, 7)) {
    const name = `f-again-${version}`
    const old = await createTopic(twin, name, 1)
    await produce(twin, name, batchOf(3))
    const connection = `again-${version}`
    const ask = (session: Two<number>, sessionEpoch: number, id: Two<string> | undefined, options: object = {}) =>
      twin.call(
        API.Fetch,
        version,
        side => ({
          ...QUICK,
          sessionId: session[side],
          sessionEpoch,
          topics: id === undefined ? [] : [wanted(version, name, id[side], { partition: 0, fetchOffset: 0 })],
          ...options,
        }),
        connection,
      )
    const session = pick(await ask([0, 0], 0, old), answer => answer.sessionId, 0)
    await twin.call(API.DeleteTopics, 4, { topicNames: [name], timeoutMs: 20_000 })
    await untilGone(twin, name)
    await ask(session, 1, undefined)
    await ask(session, 2, undefined)
    const id = await createTopic(twin, name, 1)
    await ask(session, 3, undefined)
    await ask(session, 4, undefined, { maxWaitMs: version >= 13 ? 3_000 : 50, minBytes: 1 })
    await ask([0, 0], -1, old)
    await ask([0, 0], -1, id)
    await ask(session, 5, id)
  }
}

async function epochs(twin: Twin): Promise<void> {
  await createTopic(twin, 'f-epochs', 2)
  await twin.everyVersion(API.OffsetForLeaderEpoch, {
    replicaId: -1,
    topics: [{ topic: 'f-epochs', partitions: [{ partition: 0, leaderEpoch: 0 }] }],
  })
  await produce(twin, 'f-epochs', batchOf(3))
  for (const version of twin.versionsOf(API.OffsetForLeaderEpoch)) {
    for (const leaderEpoch of [-1, 0, 1, 7, -2]) {
      for (const currentLeaderEpoch of [-1, 0, 1]) {
        await twin.call(API.OffsetForLeaderEpoch, version, {
          replicaId: -1,
          topics: [
            {
              topic: 'f-epochs',
              partitions: [
                { partition: 0, leaderEpoch, currentLeaderEpoch },
                { partition: 1, leaderEpoch, currentLeaderEpoch },
              ],
            },
          ],
        })
      }
    }
    await twin.call(API.OffsetForLeaderEpoch, version, {
      replicaId: -2,
      topics: [
        { topic: 'f-none', partitions: [{ partition: 0, leaderEpoch: 0 }] },
        {
          topic: 'f-epochs',
          partitions: [
            { partition: 9, leaderEpoch: 0 },
            { partition: -1, leaderEpoch: 0 },
          ],
        },
      ],
    })
  }
  await twin.vary(API.OffsetForLeaderEpoch, 80, {
    replicaId: -1,
    topics: [
      {
        topic: 'f-epochs',
        partitions: [
          { partition: 0, leaderEpoch: 0, currentLeaderEpoch: -1 },
          { partition: 1, leaderEpoch: 0 },
        ],
      },
    ],
  })
}

export const fetchSituation: Situation = {
  name: 'fetch',
  async perform(twin) {
    await offsets(twin)
    await sessions(twin)
    await recreated(twin)
    await epochs(twin)
  },
}
