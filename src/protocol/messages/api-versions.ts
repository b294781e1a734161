import { array, bool, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const ApiVersionsRequest = request(
  { apiKey: 18, name: 'ApiVersionsRequest', versions: '0-4', flexible: '3+', listeners: ['broker', 'controller'] },
  { clientSoftwareName: string('3+', { ignorable: true }), clientSoftwareVersion: string('3+', { ignorable: true }) },
)
export type ApiVersionsRequest = MessageOf<typeof ApiVersionsRequest>

export const ApiVersionsResponse = response(
  { apiKey: 18, name: 'ApiVersionsResponse', versions: '0-4', flexible: '3+' },
  {
    errorCode: int16('0+'),
    apiKeys: array('0+', { apiKey: int16('0+'), minVersion: int16('0+'), maxVersion: int16('0+') }),
    throttleTimeMs: int32('1+', { ignorable: true }),
    supportedFeatures: array(
      '3+',
      { name: string('3+'), minVersion: int16('3+'), maxVersion: int16('3+') },
      { ignorable: true, tag: 0 },
    ),
    finalizedFeaturesEpoch: int64('3+', { default: -1, ignorable: true, tag: 1 }),
    finalizedFeatures: array(
      '3+',
      { name: string('3+'), maxVersionLevel: int16('3+'), minVersionLevel: int16('3+') },
      { ignorable: true, tag: 2 },
    ),
    zkMigrationReady: bool('3+', { ignorable: true, tag: 3 }),
  },
)
export type ApiVersionsResponse = MessageOf<typeof ApiVersionsResponse>
