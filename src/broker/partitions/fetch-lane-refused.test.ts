import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FramePool } from '#network/frame-pool.ts'
import { serve } from '#network/service.ts'
import { serving } from '#network/testing/serving.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { Deadlines } from '../deadlines.ts'
import { FetchLane, type FetchLaneOptions } from './fetch-lane.ts'
import type { Partition } from './partition.ts'

/** How often a leader is asked in ten seconds that answers `answer` to its nth fetch as a whole. */
async function fetchesOf(answer: (count: number) => ErrorName): Promise<number> {
  const simulation = new Simulation(1)
  const leader = simulation.node('leader')
  const { world } = simulation.node('follower')
  let count = 0
  const fetch = serve({
    api: API.Fetch,
    handle: async ({ maxWaitMs }) => {
      const error = answer(count++)
      if (error === 'NONE')
        await new Promise<void>(resolve => void leader.world.clock.after(maxWaitMs, () => resolve()))
      return { errorCode: ErrorCode[error], sessionId: error === 'NONE' ? 7 : 0, responses: [] }
    },
  })
  const work = async (): Promise<void> => {
    await serving({ machine: leader, name: 'PLAINTEXT', port: 9092 }, [fetch])
    const options = {
      world,
      nodeId: 2,
      broker: () => ({ endPoints: [{ name: 'PLAINTEXT', host: 'leader', port: 9092 }] }),
      listener: 'PLAINTEXT',
      memory: new FramePool(1_000_000),
      terms: () => ({
        waitMs: 500,
        minBytes: 1,
        partitionBytes: 1000,
        answerBytes: 1000,
        backoffMs: 1000,
        timeoutMs: 30_000,
      }),
      deadlines: new Deadlines(world.clock),
      log: world.log,
      brokerEpoch: () => 1,
      hosted: () => undefined,
      throttle: { followerWaitMs: () => 0, followed: () => {} },
    } as unknown as FetchLaneOptions
    const position = { leaderEpoch: 1, offset: 0, lastFetchedEpoch: -1, startOffset: 0 }
    const partition = { topicId: 'Z6qOWWaNR9qZx5b8TV406g', index: 0, fetchPosition: position }
    const lane = new FetchLane(1, 0, options, () => true)
    lane.join(partition as unknown as Partition)
    lane.fetchSoon()
    await simulation.wait(10_000)
    lane.stop()
  }
  await simulation.run(work(), 60_000)
  return count
}

test('a leader that refuses every fetch is not asked as fast as it answers', async () => {
  assert.ok((await fetchesOf(() => 'FETCH_SESSION_TOPIC_ID_ERROR')) < 25)
})

test('a session that the leader forgot is opened anew at once, however often it is forgotten', async () => {
  const forgetful = await fetchesOf(count => (count % 2 === 1 ? 'FETCH_SESSION_ID_NOT_FOUND' : 'NONE'))
  assert.ok(forgetful > 35, `${forgetful} fetches`)
})
