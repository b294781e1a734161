import { DecodeError } from '#base/bytes.ts'
import type { BatchErrorCode } from './batch.ts'

/** Bytes of records that are not what they should be, with the code that Kafka answers for them on Produce. */
export class RecordsError extends DecodeError {
  readonly code: BatchErrorCode

  constructor(code: BatchErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
