import { ErrorCode } from '#protocol/errors.ts'
import type {
  AllocateProducerIdsRequest,
  AllocateProducerIdsResponse,
} from '#protocol/messages/allocate-producer-ids.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { ControllerState } from './controller-state.ts'
import { type MetadataRecord, metadataRecord } from './record.ts'

const BLOCK_SIZE = 1000

/** AllocateProducerIds: KIP-730. Ids are never given twice, so a block of a broker that dies is lost. */
export function allocateProducerIds(
  state: ControllerState,
  request: AllocateProducerIdsRequest,
): { records: MetadataRecord[]; response: InputOf<typeof AllocateProducerIdsResponse> } {
  const { brokerId, brokerEpoch } = request
  const errorCode = state.brokerEpochError(brokerId, brokerEpoch)
  if (errorCode !== ErrorCode.NONE) return { records: [], response: { errorCode } }
  const producerIdStart = state.image.nextProducerId
  if (producerIdStart > Number.MAX_SAFE_INTEGER - BLOCK_SIZE) {
    return { records: [], response: { errorCode: ErrorCode.UNKNOWN_SERVER_ERROR } }
  }
  const nextProducerId = producerIdStart + BLOCK_SIZE
  return {
    records: [metadataRecord('ProducerIds', state.metadataVersion, { brokerId, brokerEpoch, nextProducerId })],
    response: { errorCode, producerIdStart, producerIdLen: BLOCK_SIZE },
  }
}
