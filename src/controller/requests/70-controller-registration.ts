import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * ControllerRegistration (70), version 0. A controller tells its endpoints and what it supports (KIP-919).
 */
export function controllerRegistration(controller: Controller): ServedApi {
  return command(controller, {
    api: API.ControllerRegistration,
    command: (request, { apiVersion: version }) => ({ kind: 'register-controller', request, version }),
    refused: (_, refusal) => refusal,
  })
}
