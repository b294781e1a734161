import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * AlterPartitionReassignments (45), versions 0-1: begin and cancel (KIP-455).
 */
export function alterPartitionReassignments(controller: Controller): ServedApi {
  return command(controller, {
    api: API.AlterPartitionReassignments,
    command: (request, { apiVersion: version }) => ({ kind: 'alter-partition-reassignments', request, version }),
    refused: (_, refusal) => ({ ...refusal, responses: [] }),
  })
}
