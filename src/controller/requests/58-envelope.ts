import { ByteReader, DecodeError } from '#base/bytes.ts'
import { REQUEST_ELEMENTS_MAX } from '#core/metadata/topics.ts'
import { type Answer, type Call, type ServedApi, type Service, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { decode } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { decodeRequestHeader, encodeResponseFrame } from '#protocol/frames.ts'
import type { Controller } from '../controller.ts'
import { NotControllerError } from '../term.ts'

/** What a broker may pass on: what clients ask of it and only the controller can do. */
const FORWARDABLE: ReadonlySet<number> = new Set(
  [
    API.CreateTopics,
    API.DeleteTopics,
    API.AlterConfigs,
    API.IncrementalAlterConfigs,
    API.CreatePartitions,
    API.ElectLeaders,
    API.AlterPartitionReassignments,
    API.ListPartitionReassignments,
    API.UpdateFeatures,
    API.UnregisterBroker,
    API.DescribeQuorum,
    API.AddRaftVoter,
    API.RemoveRaftVoter,
  ].map(({ key }) => key),
)

const FRAME_SIZE_BYTES = 4

/**
 * Envelope (58), version 0. A client's request as it came to a broker, header and body, and back the answer's (KIP-590).
 * - NOT_CONTROLLER is the envelope's own error, so that the broker tries again elsewhere. It means that nothing was done;
 *   a change that the next leader may yet commit is REQUEST_TIMED_OUT in the API's own form.
 * - What is no request, or none that is passed on, is INVALID_REQUEST; a version that is not served UNSUPPORTED_VERSION.
 * - The principal is not looked at: there is no authorizer.
 */
export function envelope(controller: Controller, service: () => Service): ServedApi {
  return serve({
    api: API.Envelope,
    async handle({ requestData, clientHostAddress }, call) {
      if (!controller.isActive) return { errorCode: ErrorCode.NOT_CONTROLLER }
      if (clientHostAddress.length !== 4 && clientHostAddress.length !== 16) {
        return { errorCode: ErrorCode.INVALID_REQUEST }
      }
      const inner = open(requestData, service(), call)
      if (typeof inner === 'number') return { errorCode: inner }
      const { served, request, innerCall, correlationId } = inner
      let answer: Answer<object>
      try {
        answer = await served.handle(request, innerCall)
      } catch (error) {
        if (!(error instanceof NotControllerError)) throw error
        return { errorCode: ErrorCode.NOT_CONTROLLER }
      }
      if (typeof answer === 'symbol') return { errorCode: ErrorCode.UNKNOWN_SERVER_ERROR }
      const parts = encodeResponseFrame(served.api, innerCall.apiVersion, correlationId, answer)
      const frame = Buffer.concat(parts.filter(part => Buffer.isBuffer(part)))
      return { responseData: frame.subarray(FRAME_SIZE_BYTES), errorCode: ErrorCode.NONE }
    },
  })
}

function open(bytes: Buffer, service: Service, call: Call) {
  try {
    const reader = new ByteReader(bytes)
    // What is more is refused by the broker that would pass it on.
    reader.elementsLeft = 2 * REQUEST_ELEMENTS_MAX
    const { apiKey, apiVersion, correlationId, clientId } = decodeRequestHeader(reader)
    const served = service.get(apiKey)
    if (served === undefined || !FORWARDABLE.has(apiKey)) return ErrorCode.INVALID_REQUEST
    if (apiVersion < served.versions.first || apiVersion > served.versions.last) return ErrorCode.UNSUPPORTED_VERSION
    const before = reader.elementsLeft
    const request = decode(served.api.request, apiVersion, reader)
    const elements = before - reader.elementsLeft
    const innerCall: Call = { ...call, apiKey, apiVersion, clientId, size: bytes.length, elements, passedOn: true }
    return { served, request, innerCall, correlationId }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
    return ErrorCode.INVALID_REQUEST
  }
}
