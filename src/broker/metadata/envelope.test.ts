import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChannelError, type ChannelErrorCode } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { encodeToBuffer } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Clock } from '#world/world.ts'
import type { ControllerLink } from './controller-link.ts'
import { forwardInEnvelope } from './envelope.ts'

const ADDRESS = { host: '127.0.0.1', port: 1 }
const VERSION = 2

/** What becomes of one attempt: nobody can be reached, one who was reached fails, or answers the envelope. */
type Attempt =
  | { readonly connecting: ChannelErrorCode }
  | { readonly asking: ChannelErrorCode }
  | { readonly envelope: number }

const NOT_CONTROLLER: Attempt = { envelope: ErrorCode.NOT_CONTROLLER }
const TAKEN: Attempt = { envelope: ErrorCode.NONE }

/** The answer that a controller gives to DescribeQuorum, header and body. */
const ANSWER = Buffer.concat([
  Buffer.from([0, 0, 0, 0, 0]),
  encodeToBuffer(API.DescribeQuorum.response, VERSION, { errorCode: ErrorCode.NONE, errorMessage: 'taken' }),
])

interface Options {
  readonly asksOnly?: boolean
  /** When the client leaves, in attempts. */
  readonly goneAfter?: number
}

/**
 * Forwards one request over a link whose attempts go as said, the last one for ever, and half a second apart. What the
 * client is answered, how often the request was sent, and how long it took.
 */
async function forward(attempts: readonly Attempt[], { asksOnly = false, goneAfter }: Options = {}) {
  let sent = 0
  let tried = 0
  let now = 0
  let leave = () => {}
  const fail = (code: ChannelErrorCode) => Promise.reject(new ChannelError(code, ADDRESS, code))
  const channelOf = (attempt: Attempt) => ({
    open: true,
    address: ADDRESS,
    ask: () => {
      sent++
      if ('asking' in attempt) return fail(attempt.asking)
      const errorCode = 'envelope' in attempt ? attempt.envelope : ErrorCode.NONE
      return Promise.resolve({ errorCode, responseData: errorCode === ErrorCode.NONE ? ANSWER : null })
    },
  })
  const link = {
    connected() {
      const attempt = attempts[Math.min(tried++, attempts.length - 1)] as Attempt
      if (goneAfter === tried) leave()
      return 'connecting' in attempt ? fail(attempt.connecting) : Promise.resolve(channelOf(attempt))
    },
    lookElsewhere() {},
    wasTaken() {},
    rest() {
      now += 500
      return Promise.resolve()
    },
  } as unknown as ControllerLink
  const caller = {
    remote: ADDRESS,
    whenGone(run: () => void) {
      leave = run
      return () => {}
    },
  }
  const clock = { monotonic: () => now } as Clock
  const answer = await forwardInEnvelope(
    link,
    API.DescribeQuorum,
    { apiVersion: VERSION, clientId: null, caller } as never,
    { topics: [] },
    { clock, patienceMs: 30_000, timeoutMs: 1000, asksOnly },
    errorCode => ({ errorCode }),
  )
  return { errorCode: answer.errorCode, sent, tookMs: now }
}

test('a request that may have been done is not sent again, and its client is told in the form of the API', async () => {
  for (const asking of ['closed', 'timed-out', 'protocol'] as const) {
    const { errorCode, sent } = await forward([{ asking }])
    assert.deepEqual([errorCode, sent], [ErrorCode.REQUEST_TIMED_OUT, 1], asking)
  }
})

test('what only asks is sent again, whatever became of it', async () => {
  const { errorCode, sent } = await forward([{ asking: 'closed' }, { asking: 'timed-out' }, TAKEN], { asksOnly: true })
  assert.deepEqual([errorCode, sent], [ErrorCode.NONE, 3])
})

test('while there is no controller it is waited for, and who does not take a request passes it on to the next', async () => {
  const { errorCode, sent, tookMs } = await forward([
    ...Array.from({ length: 12 }, (): Attempt => ({ connecting: 'refused' })),
    NOT_CONTROLLER,
    NOT_CONTROLLER,
    { asking: 'overloaded' },
    TAKEN,
  ])
  assert.deepEqual([errorCode, sent], [ErrorCode.NONE, 4])
  assert.equal(tookMs, 15 * 500)
})

test('where no controller takes it for as long as the request may take, its client is told to look for one', async () => {
  for (const attempt of [{ connecting: 'refused' }, { connecting: 'timed-out' }, NOT_CONTROLLER] as const) {
    const { errorCode, tookMs } = await forward([attempt])
    assert.deepEqual([errorCode, tookMs], [ErrorCode.NOT_CONTROLLER, 30_000])
  }
})

test('nobody waits for a client that has left', async () => {
  const { sent, tookMs } = await forward([NOT_CONTROLLER], { goneAfter: 3 })
  assert.deepEqual([sent, tookMs], [3, 1000])
})

test('what a controller refuses or cannot take for another reason is not tried elsewhere', async () => {
  const refused = await forward([{ envelope: ErrorCode.UNSUPPORTED_VERSION }])
  assert.deepEqual([refused.errorCode, refused.sent], [ErrorCode.UNSUPPORTED_VERSION, 1])
  const tooLarge = await forward([{ asking: 'unsendable' }])
  assert.deepEqual([tooLarge.errorCode, tooLarge.sent], [ErrorCode.INVALID_REQUEST, 1])
})
