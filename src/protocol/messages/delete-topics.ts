import { array, int16, int32, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const DeleteTopicsRequest = request(
  { apiKey: 20, name: 'DeleteTopicsRequest', versions: '1-6', flexible: '4+', listeners: ['broker', 'controller'] },
  {
    topics: array('6+', { name: string('6+', { nullable: '6+', default: null }), topicId: uuid('6+') }),
    topicNames: array('0-5', 'string', { ignorable: true }),
    timeoutMs: int32('0+'),
  },
)
export type DeleteTopicsRequest = MessageOf<typeof DeleteTopicsRequest>

export const DeleteTopicsResponse = response(
  { apiKey: 20, name: 'DeleteTopicsResponse', versions: '1-6', flexible: '4+' },
  {
    throttleTimeMs: int32('1+', { ignorable: true }),
    responses: array('0+', {
      name: string('0+', { nullable: '6+' }),
      topicId: uuid('6+', { ignorable: true }),
      errorCode: int16('0+'),
      errorMessage: string('5+', { nullable: '5+', default: null, ignorable: true }),
    }),
  },
)
export type DeleteTopicsResponse = MessageOf<typeof DeleteTopicsResponse>
