import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'

/**
 * What changes the cluster goes to the active controller in an Envelope (KIP-590) and is answered as it answers. Later
 * requests of the connection wait, and so does the answer until this broker has taken up what was changed: a client
 * that creates a topic can use it at once.
 * CreateTopics 2-7, DeleteTopics 1-6, CreatePartitions 0-3, AlterConfigs 0-2, IncrementalAlterConfigs 0-1,
 * UpdateFeatures 0-2.
 */
export function forwarded(broker: Broker): ServedApi[] {
  const { image } = broker.metadata
  return [
    serve({
      api: API.CreateTopics,
      barrier: true,
      async handle(request, call) {
        const answer = await broker.forward(API.CreateTopics, call, request, code => ({
          topics: request.topics.map(({ name }) => ({ name, ...failed(code) })),
        }))
        if (!request.validateOnly) {
          const made = (answer.topics ?? []).filter(isTaken)
          await broker.caughtUp(() =>
            made.every(({ name }) => broker.metadata.image.topicByName(name ?? '') !== undefined),
          )
        }
        return answer
      },
    }),
    serve({
      api: API.DeleteTopics,
      barrier: true,
      async handle(request, call) {
        const answer = await broker.forward(API.DeleteTopics, call, request, code => ({
          responses: [...request.topicNames.map(name => ({ name })), ...request.topics].map(topic => ({
            ...topic,
            ...(call.apiVersion >= 5 ? failed(code) : { errorCode: code }),
          })),
        }))
        const gone = (answer.responses ?? []).filter(isTaken)
        await broker.caughtUp(() =>
          gone.every(({ topicId }) => broker.metadata.image.topic(topicId ?? '') === undefined),
        )
        return answer
      },
    }),
    serve({
      api: API.CreatePartitions,
      barrier: true,
      async handle(request, call) {
        const answer = await broker.forward(API.CreatePartitions, call, request, code => ({
          results: request.topics.map(({ name }) => ({ name, ...failed(code) })),
        }))
        if (!request.validateOnly) {
          const made = new Set((answer.results ?? []).filter(isTaken).map(({ name }) => name))
          const wanted = request.topics.filter(({ name }) => made.has(name))
          await broker.caughtUp(() =>
            wanted.every(({ name, count }) => (image.topicByName(name)?.partitions.length ?? count) >= count),
          )
        }
        return answer
      },
    }),
    serve({
      api: API.AlterConfigs,
      barrier: true,
      handle: (request, call) =>
        broker.forwardAndFollow(
          API.AlterConfigs,
          call,
          request,
          code => refusedResources(request, code),
          ({ responses = [] }) => !request.validateOnly && responses.some(isTaken),
        ),
    }),
    serve({
      api: API.IncrementalAlterConfigs,
      barrier: true,
      handle: (request, call) =>
        broker.forwardAndFollow(
          API.IncrementalAlterConfigs,
          call,
          request,
          code => refusedResources(request, code),
          ({ responses = [] }) => !request.validateOnly && responses.some(isTaken),
        ),
    }),
    serve({
      api: API.UpdateFeatures,
      barrier: true,
      handle: (request, call) =>
        broker.forwardAndFollow(
          API.UpdateFeatures,
          call,
          request,
          failed,
          answer => !request.validateOnly && isTaken(answer),
        ),
    }),
  ]
}

function refusedResources(
  request: { readonly resources: readonly { readonly resourceType: number; readonly resourceName: string }[] },
  errorCode: number,
) {
  const responses = request.resources.map(({ resourceType, resourceName }) => ({
    resourceType,
    resourceName,
    ...failed(errorCode),
  }))
  return { responses }
}

/** Whether one thing that a request asked for was done. */
export function isTaken({ errorCode = ErrorCode.NONE }: { readonly errorCode?: number | undefined }): boolean {
  return errorCode === ErrorCode.NONE
}
