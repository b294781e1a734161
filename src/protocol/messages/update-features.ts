import { array, bool, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const UpdateFeaturesRequest = request(
  { apiKey: 57, name: 'UpdateFeaturesRequest', versions: '0-2', flexible: '0+', listeners: ['broker', 'controller'] },
  {
    timeoutMs: int32('0+', { default: 60000 }),
    featureUpdates: array('0+', {
      feature: string('0+'),
      maxVersionLevel: int16('0+'),
      allowDowngrade: bool('0'),
      upgradeType: int8('1+', { default: 1 }),
    }),
    validateOnly: bool('1+'),
  },
)
export type UpdateFeaturesRequest = MessageOf<typeof UpdateFeaturesRequest>

export const UpdateFeaturesResponse = response(
  { apiKey: 57, name: 'UpdateFeaturesResponse', versions: '0-2', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+' }),
    results: array(
      '0-1',
      { feature: string('0+'), errorCode: int16('0+'), errorMessage: string('0+', { nullable: '0+' }) },
      { ignorable: true },
    ),
  },
)
export type UpdateFeaturesResponse = MessageOf<typeof UpdateFeaturesResponse>
