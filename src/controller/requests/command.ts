import { REQUEST_ELEMENTS_MAX } from '#core/metadata/topics.ts'
import type { Call, ServedApi } from '#network/service.ts'
import { serve } from '#network/service.ts'
import type { Api } from '#protocol/apis.ts'
import { ErrorCode, errorText } from '#protocol/errors.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import type { Controller } from '../controller.ts'
import { type AnswerOf, type CommandKind, type CommandOf, NotControllerError } from '../term.ts'

/** The whole of a request failed for one reason. */
export interface Refusal {
  readonly errorCode: number
  readonly errorMessage: string
}

interface CommandApi<Kind extends CommandKind, Request extends Schema, Response extends Schema> {
  readonly api: Api<Request, Response>
  readonly command: (request: MessageOf<Request>, call: Call) => CommandOf<Kind>
  /** The answer that repeats a refusal wherever the API's answer has an error. */
  readonly refused: (request: MessageOf<Request>, refusal: Refusal, version: number) => InputOf<Response>
}

/** An API whose answer is what the controller's machine decides. */
export function command<Kind extends CommandKind, Request extends Schema, Response extends Schema>(
  controller: Controller,
  { api, command, refused }: CommandApi<Kind, Request, Response>,
): ServedApi {
  return serve({
    api,
    async handle(request, call) {
      if (call.elements > REQUEST_ELEMENTS_MAX) {
        const errorCode = ErrorCode.POLICY_VIOLATION
        return refused(request, { errorCode, errorMessage: errorText(errorCode) }, call.apiVersion)
      }
      const wasActive = controller.isActive
      try {
        const answer: AnswerOf<Kind> = await controller.submit<Kind>(command(request, call))
        return (answer as unknown as { readonly response: InputOf<Response> }).response
      } catch (error) {
        if (!(error instanceof NotControllerError)) throw error
        // The next leader may commit what this one has appended, so who passed it on must not do so a second time.
        if (call.passedOn === true && !wasActive) throw error
        const errorCode = call.passedOn === true ? ErrorCode.REQUEST_TIMED_OUT : ErrorCode.NOT_CONTROLLER
        return refused(request, { errorCode, errorMessage: errorText(errorCode) }, call.apiVersion)
      }
    },
  })
}
