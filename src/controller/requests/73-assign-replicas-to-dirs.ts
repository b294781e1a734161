import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * AssignReplicasToDirs (73), version 0. A broker says in which of its folders replicas lie (KIP-858).
 */
export function assignReplicasToDirs(controller: Controller): ServedApi {
  return command(controller, {
    api: API.AssignReplicasToDirs,
    command: (request, { apiVersion: version }) => ({ kind: 'assign-replicas-to-dirs', request, version }),
    refused: (_, { errorCode }) => ({ errorCode, directories: [] }),
  })
}
