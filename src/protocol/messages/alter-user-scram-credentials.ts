import { array, bytes, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const AlterUserScramCredentialsRequest = request(
  {
    apiKey: 51,
    name: 'AlterUserScramCredentialsRequest',
    versions: '0',
    flexible: '0+',
    listeners: ['broker', 'controller'],
  },
  {
    deletions: array('0+', { name: string('0+'), mechanism: int8('0+') }),
    upsertions: array('0+', {
      name: string('0+'),
      mechanism: int8('0+'),
      iterations: int32('0+'),
      salt: bytes('0+'),
      saltedPassword: bytes('0+'),
    }),
  },
)
export type AlterUserScramCredentialsRequest = MessageOf<typeof AlterUserScramCredentialsRequest>

export const AlterUserScramCredentialsResponse = response(
  { apiKey: 51, name: 'AlterUserScramCredentialsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    results: array('0+', {
      user: string('0+'),
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+' }),
    }),
  },
)
export type AlterUserScramCredentialsResponse = MessageOf<typeof AlterUserScramCredentialsResponse>
