import { APIS } from './apis.ts'
import * as headers from './messages/headers.ts'
import * as consumerProtocol from './records/consumer-protocol.ts'
import * as control from './records/control-records.ts'
import * as files from './records/files.ts'
import { GROUP_RECORDS, METADATA_RECORDS, SHARE_RECORDS, TIER_RECORDS, TRANSACTION_RECORDS } from './records/framing.ts'
import * as principal from './records/principal.ts'
import type { Schema } from './schema.ts'

const coordinators = [GROUP_RECORDS, TRANSACTION_RECORDS, SHARE_RECORDS].flatMap(table =>
  Object.values(table).flatMap(({ key, value }): Schema[] => [key, value]),
)

/** Every table there is: requests and responses by key, then what is in logs and files. */
export const SCHEMAS: readonly Schema[] = [
  ...APIS.flatMap(api => [api.request, api.response]),
  ...Object.values(headers),
  ...Object.values(METADATA_RECORDS),
  ...coordinators,
  ...Object.values(TIER_RECORDS),
  ...Object.values(control),
  ...Object.values(consumerProtocol),
  ...Object.values(principal),
  ...Object.values(files),
]

const byName = new Map(SCHEMAS.map(schema => [schema.name, schema]))

export function schemaByName(name: string): Schema | undefined {
  return byName.get(name)
}
