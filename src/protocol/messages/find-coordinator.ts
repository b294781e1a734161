import { array, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const FindCoordinatorRequest = request(
  { apiKey: 10, name: 'FindCoordinatorRequest', versions: '0-6', flexible: '3+', listeners: ['broker'] },
  { key: string('0-3'), keyType: int8('1+'), coordinatorKeys: array('4+', 'string') },
)
export type FindCoordinatorRequest = MessageOf<typeof FindCoordinatorRequest>

export const FindCoordinatorResponse = response(
  { apiKey: 10, name: 'FindCoordinatorResponse', versions: '0-6', flexible: '3+' },
  {
    throttleTimeMs: int32('1+', { ignorable: true }),
    errorCode: int16('0-3'),
    errorMessage: string('1-3', { nullable: '1-3', ignorable: true }),
    nodeId: int32('0-3'),
    host: string('0-3'),
    port: int32('0-3'),
    coordinators: array('4+', {
      key: string('4+'),
      nodeId: int32('4+'),
      host: string('4+'),
      port: int32('4+'),
      errorCode: int16('4+'),
      errorMessage: string('4+', { nullable: '4+', ignorable: true }),
    }),
  },
)
export type FindCoordinatorResponse = MessageOf<typeof FindCoordinatorResponse>
