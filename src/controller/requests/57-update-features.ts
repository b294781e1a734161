import { type Call, HANG_UP, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorText } from '#protocol/errors.ts'
import type { UpdateFeaturesRequest, UpdateFeaturesResponse } from '#protocol/messages/update-features.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

type Update = UpdateFeaturesRequest['featureUpdates'][number]
interface Outcome {
  readonly errorCode: number
  readonly errorMessage: string | null
}
type Answer = InputOf<typeof UpdateFeaturesResponse>

const UPGRADE = 1

/**
 * UpdateFeatures (57), versions 0-2 (KIP-584, KIP-778).
 * - kraft.version is raft's own: raised to 1, it makes records of a static list of voters (KIP-853), after the other
 *   features of the request. Where it could not be raised now, nothing else of the request is done either.
 *   INVALID_UPDATE_VERSION as long as not every voter has told its directory. It is never lowered.
 */
export function updateFeatures(controller: Controller): ServedApi {
  const ofMetadata = command(controller, {
    api: API.UpdateFeatures,
    command: (request, { apiVersion: version }) => ({ kind: 'update-features', request, version }),
    refused: ({ featureUpdates }, refusal) => ({
      ...refusal,
      results: featureUpdates.map(({ feature }) => ({ feature, ...refusal })),
    }),
  })
  return serve({
    api: API.UpdateFeatures,
    async handle(request, call) {
      const metadata = (asked: UpdateFeaturesRequest) => ofMetadata.handle(asked, call) as Answer | Promise<Answer>
      const others = request.featureUpdates.filter(update => !isRaise(update))
      if (others.length !== request.featureUpdates.length - 1) return await metadata(request)
      const isOnly = others.length === 0 && !request.validateOnly
      const raised = await recordVoters(controller, call, !isOnly)
      if (raised === undefined) return HANG_UP
      if (isOnly || raised.errorCode !== ErrorCode.NONE) return answerOf(request, call, raised)
      if (others.length > 0) {
        const answer = await metadata({ ...request, featureUpdates: others })
        if (answer.errorCode !== ErrorCode.NONE) return answer
      }
      const outcome = request.validateOnly ? raised : await recordVoters(controller, call, false)
      return outcome === undefined ? HANG_UP : answerOf(request, call, outcome)
    },
  })
}

function answerOf({ featureUpdates }: UpdateFeaturesRequest, { apiVersion }: Call, outcome: Outcome): Answer {
  const results = apiVersion < 2 ? featureUpdates.map(({ feature }) => ({ feature, ...outcome })) : []
  return { ...outcome, results }
}

function isRaise({ feature, maxVersionLevel, upgradeType }: Update): boolean {
  return feature === 'kraft.version' && maxVersionLevel === 1 && upgradeType === UPGRADE
}

async function recordVoters(
  controller: Controller,
  { caller }: Call,
  validateOnly: boolean,
): Promise<Outcome | undefined> {
  const answer = await controller.ask<'record-voters'>({ kind: 'record-voters', validateOnly }, caller)
  if (answer?.errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER) {
    return { errorCode: ErrorCode.NOT_CONTROLLER, errorMessage: errorText(ErrorCode.NOT_CONTROLLER) }
  }
  return answer === undefined ? undefined : { errorCode: answer.errorCode, errorMessage: answer.message }
}
