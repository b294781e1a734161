import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken } from './forwarded.ts'

/** UnregisterBroker (64), version 0. Decided by the active controller (KIP-631). */
export function unregisterBroker(broker: Broker): ServedApi {
  return serve({
    api: API.UnregisterBroker,
    barrier: true,
    handle: (request, call) =>
      broker.forwarding.forwardAndFollow(API.UnregisterBroker, call, request, errorCode => failed(errorCode), isTaken),
  })
}
