/** What a configuration belongs to, by the numbers of requests and records (KIP-133, KIP-412, KIP-714, KIP-848). */
export const CONFIG_RESOURCE = { TOPIC: 2, BROKER: 4, BROKER_LOGGER: 8, CLIENT_METRICS: 16, GROUP: 32 } as const

export interface ConfigResource {
  /** One of `CONFIG_RESOURCE`; any other that a record named is kept as it is. */
  readonly type: number
  /** A topic's, group's or subscription's name, a broker's id; '' for what all brokers share. */
  readonly name: string
}

export function configResourceKey(type: number, name: string): string {
  return `${type}:${name}`
}
