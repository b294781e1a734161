import { OFFSETS_TOPIC } from '#core/metadata/topic-name.ts'
import { type Call, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'

const GROUP = 0

/**
 * FindCoordinator (10), versions 0-6. Where a group lives.
 * - `__consumer_offsets` is made when it is first needed, and the answer waits for it.
 * - v4: several keys in one request, errors per key.
 * - Left out until they come: coordinators of transactions (key type 1) and of share groups (2), INVALID_REQUEST.
 */
export function findCoordinator(broker: Broker): ServedApi {
  return serve({
    api: API.FindCoordinator,
    async handle(request, call) {
      if (call.apiVersion >= 4) {
        const coordinators = []
        const pieces = broker.turns.pieces()
        for (const key of request.coordinatorKeys) {
          const wait = pieces.next()
          if (wait) await wait
          coordinators.push(await find(broker, key, request.keyType, call))
        }
        return { coordinators }
      }
      return await find(broker, request.key, request.keyType, call)
    },
  })
}

interface Found {
  readonly key: string
  readonly nodeId: number
  readonly host: string
  readonly port: number
  readonly errorCode: number
  readonly errorMessage: string | null
}

async function find(broker: Broker, key: string, keyType: number, call: Call): Promise<Found> {
  if (keyType !== GROUP) {
    return refused(key, 'INVALID_REQUEST', `this cluster has no coordinators of type ${keyType} yet`)
  }
  if (broker.groups.partitionOf(key) === undefined) await broker.topicCreation.createOffsetsTopic()
  const index = broker.groups.partitionOf(key)
  if (index === undefined) return refused(key, 'COORDINATOR_NOT_AVAILABLE', `${OFFSETS_TOPIC} cannot be created yet`)
  const leader = broker.metadata.image.topicByName(OFFSETS_TOPIC)?.partitions[index]?.leader ?? -1
  const endpoint = broker.endpointsFor(call.caller).find(({ nodeId }) => nodeId === leader)
  if (endpoint === undefined) return refused(key, 'COORDINATOR_NOT_AVAILABLE', 'the coordinator has no leader now')
  const { nodeId, host, port } = endpoint
  return { key, nodeId, host, port, errorCode: ErrorCode.NONE, errorMessage: call.apiVersion < 4 ? 'NONE' : '' }
}

function refused(key: string, error: ErrorName, errorMessage: string): Found {
  return { key, nodeId: -1, host: '', port: -1, errorCode: ErrorCode[error], errorMessage }
}
