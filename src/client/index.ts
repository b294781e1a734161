/** The public client. */
export { admin } from './admin/admin.ts'
export { Client, type ClientOptions, type ClientWorld, connect } from './client.ts'
export { type ConsumedRecord, Consumer, type ConsumerOptions, type OffsetSpec } from './consumer.ts'
export { ClientError } from './errors.ts'
export { Producer, type ProducerOptions, type RecordMetadata } from './producer.ts'
export type { NewRecord } from './records.ts'
