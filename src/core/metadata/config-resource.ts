/** What a configuration belongs to, by Kafka's numbers in requests and records. */
export const CONFIG_TOPIC = 2
export const CONFIG_BROKER = 4
export const CONFIG_CLIENT_METRICS = 16
export const CONFIG_GROUP = 32

export interface ConfigResource {
  /** One of the `CONFIG_` numbers; any other that a record named is kept as it is. */
  readonly type: number
  /** A topic's, group's or subscription's name, a broker's id; '' for what all brokers share. */
  readonly name: string
}

export function configResourceKey(type: number, name: string): string {
  return `${type}:${name}`
}
