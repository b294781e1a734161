import type { NodeId } from '#base/units.ts'
import { VERSION } from '#base/version.ts'
import { ApiVersionsRequest, ApiVersionsResponse } from '#protocol/messages/api-versions.ts'
import { UpdateFeaturesRequest, UpdateFeaturesResponse } from '#protocol/messages/update-features.ts'
import type { Client } from '../client.ts'
import { throwIfError } from '../errors.ts'
import { describeCluster } from './cluster.ts'

const API_VERSIONS = { request: ApiVersionsRequest, response: ApiVersionsResponse }
const UPDATE_FEATURES = { request: UpdateFeaturesRequest, response: UpdateFeaturesResponse }

export interface Feature {
  readonly name: string
  /** What the cluster is at; 0 where nothing is finalized. */
  readonly level: number
  /** The levels that every broker that runs supports: none where `max` is less than `min`. */
  readonly min: number
  readonly max: number
}

/** What may be raised, and how far the cluster is (KIP-584). Controllers that are no brokers are not asked. */
export async function describeFeatures(client: Client): Promise<Feature[]> {
  const { brokers } = await describeCluster(client)
  const live = brokers.filter(({ fenced }) => !fenced)
  const answers = await Promise.all(live.map(({ id }) => featuresOf(client, id)))
  const newest = answers.toSorted((a, b) => b.finalizedFeaturesEpoch - a.finalizedFeaturesEpoch)[0]
  const names = new Set(answers.flatMap(({ supportedFeatures }) => supportedFeatures.map(({ name }) => name)))
  for (const { name } of newest?.finalizedFeatures ?? []) names.add(name)
  return [...names].sort().map(name => {
    // A level of 0 is what everybody supports who does not know the feature.
    const spans = answers.map(answer => answer.supportedFeatures.find(each => each.name === name))
    return {
      name,
      level: newest?.finalizedFeatures.find(each => each.name === name)?.maxVersionLevel ?? 0,
      min: Math.max(...spans.map(span => span?.minVersion ?? 0)),
      max: Math.min(...spans.map(span => span?.maxVersion ?? 0)),
    }
  })
}

function featuresOf(client: Client, id: NodeId) {
  const asked = { clientSoftwareName: 'tidemark', clientSoftwareVersion: VERSION }
  return client.ask(id, API_VERSIONS, asked, {
    check: ({ errorCode }) => throwIfError(errorCode, `the features of broker ${id}`),
  })
}

/** `downgrade` loses nothing, or is refused. */
const UPGRADE_TYPES = { upgrade: 1, downgrade: 2 } as const

/** Finalizes levels: all of them, or none where the active controller refuses one (KIP-584, KIP-778). */
export async function updateFeatures(
  client: Client,
  levels: readonly { readonly name: string; readonly level: number }[],
  type: keyof typeof UPGRADE_TYPES,
  options: { readonly validateOnly?: boolean } = {},
): Promise<void> {
  const featureUpdates = levels.map(({ name: feature, level: maxVersionLevel }) => ({
    feature,
    maxVersionLevel,
    upgradeType: UPGRADE_TYPES[type],
  }))
  const { requestTimeoutMs: timeoutMs } = client.options
  const { validateOnly = false } = options
  await client.ask(
    'any',
    UPDATE_FEATURES,
    { timeoutMs, featureUpdates, validateOnly },
    {
      check: ({ errorCode, errorMessage, results }) => {
        throwIfError(errorCode, 'the features', errorMessage)
        for (const { feature, errorCode: code, errorMessage: message } of results) throwIfError(code, feature, message)
      },
    },
  )
}
