import { header, int16, int32, type MessageOf, string } from '../schema.ts'

export const RequestHeader = header(
  { name: 'RequestHeader', versions: '1-2', flexible: '2+' },
  {
    requestApiKey: int16('0+'),
    requestApiVersion: int16('0+'),
    correlationId: int32('0+'),
    clientId: string('1+', { nullable: '1+', flexible: 'none' }),
  },
)
export type RequestHeader = MessageOf<typeof RequestHeader>

export const ResponseHeader = header(
  { name: 'ResponseHeader', versions: '0-1', flexible: '1+' },
  { correlationId: int32('0+') },
)
export type ResponseHeader = MessageOf<typeof ResponseHeader>
