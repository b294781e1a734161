import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { type ServedApi, type Service, serve } from './service.ts'

/**
 * ApiVersions (18), versions 0-4. What this listener serves, and the cluster's features.
 * - An unknown version is answered by the connection, in version 0 (KIP-511).
 * - v3: the client's name and version must be words, or INVALID_REQUEST; they are kept for logs.
 * - Below v4 a feature whose range starts at 0 is left out: old Java clients cannot read it.
 */
export function apiVersions(
  service: () => Service,
  features: () => {
    readonly supported: ReadonlyMap<string, { readonly min: number; readonly max: number }>
    readonly finalized: ReadonlyMap<string, number>
    readonly epoch: number
  },
): ServedApi {
  return serve({
    api: API.ApiVersions,
    handle(request, call) {
      if (call.apiVersion >= 3) {
        const { clientSoftwareName: name, clientSoftwareVersion: version } = request
        if (!SOFTWARE_WORD.test(name) || !SOFTWARE_WORD.test(version)) {
          return { errorCode: ErrorCode.INVALID_REQUEST }
        }
        call.caller.softwareName = name.slice(0, WORD_KEPT)
        call.caller.softwareVersion = version.slice(0, WORD_KEPT)
      }
      const apiKeys = [...service().values()]
        .map(({ api, advertised }) => ({ apiKey: api.key, minVersion: advertised.first, maxVersion: advertised.last }))
        .sort((a, b) => a.apiKey - b.apiKey)
      const { supported, finalized, epoch } = features()
      return {
        errorCode: ErrorCode.NONE,
        apiKeys,
        supportedFeatures: [...supported]
          .filter(([, range]) => call.apiVersion >= 4 || range.min > 0)
          .map(([name, range]) => ({ name, minVersion: range.min, maxVersion: range.max })),
        finalizedFeaturesEpoch: epoch,
        finalizedFeatures: [...finalized].map(([name, level]) => ({
          name,
          maxVersionLevel: level,
          minVersionLevel: level,
        })),
      }
    },
  })
}

/** KIP-511. */
const SOFTWARE_WORD = /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/
/** Of these words, this much is kept. */
const WORD_KEPT = 256
