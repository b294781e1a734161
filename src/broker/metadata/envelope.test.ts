import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChannelError, type ChannelErrorCode } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { ControllerLink } from './controller-link.ts'
import { forwardInEnvelope } from './envelope.ts'

const ADDRESS = { host: '127.0.0.1', port: 1 }

/** Forwards one DescribeQuorum over a link that fails: what the client is answered, and how often it was sent. */
async function forward(failure: ChannelErrorCode, when: 'connecting' | 'asking') {
  let asked = 0
  const fail = () => Promise.reject(new ChannelError(failure, ADDRESS, failure))
  const ask = () => {
    asked++
    return fail()
  }
  const link = {
    connected: () => (when === 'connecting' ? fail() : Promise.resolve({ open: true, ask })),
    lookElsewhere() {},
  } as unknown as ControllerLink
  const call = { apiVersion: 2, clientId: null, caller: { remote: ADDRESS } }
  const answer = await forwardInEnvelope(link, API.DescribeQuorum, call as never, { topics: [] }, 1000, errorCode => ({
    errorCode,
  }))
  return [answer.errorCode, asked]
}

test('a request that may have been done is not sent again, and its client is told in the form of the API', async () => {
  assert.deepEqual(await forward('closed', 'asking'), [ErrorCode.REQUEST_TIMED_OUT, 1])
  assert.deepEqual(await forward('timed-out', 'asking'), [ErrorCode.REQUEST_TIMED_OUT, 1])
})

test('where no controller can be reached, the client is told to look for one', async () => {
  assert.deepEqual(await forward('refused', 'connecting'), [ErrorCode.NOT_CONTROLLER, 0])
  assert.deepEqual(await forward('timed-out', 'connecting'), [ErrorCode.NOT_CONTROLLER, 0])
})
