import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * ListPartitionReassignments (46), version 0 (KIP-455).
 */
export function listPartitionReassignments(controller: Controller): ServedApi {
  return command(controller, {
    api: API.ListPartitionReassignments,
    command: (request, { apiVersion: version }) => ({ kind: 'list-partition-reassignments', request, version }),
    refused: (_, refusal) => ({ ...refusal, topics: [] }),
  })
}
