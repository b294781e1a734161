import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken } from './forwarded.ts'

/** AlterPartitionReassignments (45), versions 0-1: begin and cancel, decided by the active controller (KIP-455). */
export function alterPartitionReassignments(broker: Broker): ServedApi {
  return serve({
    api: API.AlterPartitionReassignments,
    barrier: true,
    handle: (request, call) =>
      broker.forwarding.forwardAndFollow(
        API.AlterPartitionReassignments,
        call,
        request,
        errorCode => ({ ...failed(errorCode), responses: [] }),
        ({ responses = [] }) => responses.some(({ partitions = [] }) => partitions.some(isTaken)),
      ),
  })
}
