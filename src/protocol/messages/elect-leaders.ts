import { array, int8, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const ElectLeadersRequest = request(
  { apiKey: 43, name: 'ElectLeadersRequest', versions: '0-2', flexible: '2+', listeners: ['broker', 'controller'] },
  {
    electionType: int8('1+'),
    topicPartitions: array('0+', { topic: string('0+'), partitions: array('0+', 'int32') }, { nullable: '0+' }),
    timeoutMs: int32('0+', { default: 60000 }),
  },
)
export type ElectLeadersRequest = MessageOf<typeof ElectLeadersRequest>

export const ElectLeadersResponse = response(
  { apiKey: 43, name: 'ElectLeadersResponse', versions: '0-2', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('1+'),
    replicaElectionResults: array('0+', {
      topic: string('0+'),
      partitionResult: array('0+', {
        partitionId: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+' }),
      }),
    }),
  },
)
export type ElectLeadersResponse = MessageOf<typeof ElectLeadersResponse>
