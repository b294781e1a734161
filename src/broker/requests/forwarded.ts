// What the APIs share that change the cluster. They go to the active controller in an Envelope (KIP-590) and are answered
// as it answers. Later requests of the connection wait, and so does the answer until this broker has taken up what was
// changed: a client that creates a topic can use it at once.
import { failed } from '#core/metadata/answer.ts'
import { ErrorCode } from '#protocol/errors.ts'

/** Whether one thing that a request asked for was done. */
export function isTaken({ errorCode = ErrorCode.NONE }: { readonly errorCode?: number | undefined }): boolean {
  return errorCode === ErrorCode.NONE
}

/** The whole of a change of configurations refused, resource by resource. */
export function refusedResources(
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
