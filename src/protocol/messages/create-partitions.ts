import { array, bool, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const CreatePartitionsRequest = request(
  { apiKey: 37, name: 'CreatePartitionsRequest', versions: '0-3', flexible: '2+', listeners: ['broker', 'controller'] },
  {
    topics: array('0+', {
      name: string('0+'),
      count: int32('0+'),
      assignments: array('0+', { brokerIds: array('0+', 'int32') }, { nullable: '0+' }),
    }),
    timeoutMs: int32('0+'),
    validateOnly: bool('0+'),
  },
)
export type CreatePartitionsRequest = MessageOf<typeof CreatePartitionsRequest>

export const CreatePartitionsResponse = response(
  { apiKey: 37, name: 'CreatePartitionsResponse', versions: '0-3', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    results: array('0+', {
      name: string('0+'),
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+', default: null }),
    }),
  },
)
export type CreatePartitionsResponse = MessageOf<typeof CreatePartitionsResponse>
