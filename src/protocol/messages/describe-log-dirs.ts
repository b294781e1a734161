import { array, bool, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeLogDirsRequest = request(
  { apiKey: 35, name: 'DescribeLogDirsRequest', versions: '1-5', flexible: '2+', listeners: ['broker'] },
  { topics: array('0+', { topic: string('0+'), partitions: array('0+', 'int32') }, { nullable: '0+' }) },
)
export type DescribeLogDirsRequest = MessageOf<typeof DescribeLogDirsRequest>

export const DescribeLogDirsResponse = response(
  { apiKey: 35, name: 'DescribeLogDirsResponse', versions: '1-5', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('3+', { ignorable: true }),
    results: array('0+', {
      errorCode: int16('0+'),
      logDir: string('0+'),
      topics: array('0+', {
        name: string('0+'),
        partitions: array('0+', {
          partitionIndex: int32('0+'),
          partitionSize: int64('0+'),
          offsetLag: int64('0+'),
          isFutureKey: bool('0+'),
        }),
      }),
      totalBytes: int64('4+', { default: -1, ignorable: true }),
      usableBytes: int64('4+', { default: -1, ignorable: true }),
      isCordoned: bool('5+', { ignorable: true }),
    }),
  },
)
export type DescribeLogDirsResponse = MessageOf<typeof DescribeLogDirsResponse>
