import type { Millis } from '#base/units.ts'
import type { BrokerConfigs } from '#core/config/broker-configs.ts'

/** How followers fetch; asked for every fetch, as some of it may change while the broker runs. */
export interface FetchTerms {
  readonly waitMs: Millis
  readonly minBytes: number
  readonly partitionBytes: number
  readonly answerBytes: number
  readonly backoffMs: Millis
  readonly timeoutMs: Millis
}

export function fetchTermsOf(configs: BrokerConfigs): FetchTerms {
  return {
    waitMs: configs.number('replica.fetch.wait.max.ms'),
    minBytes: configs.number('replica.fetch.min.bytes'),
    partitionBytes: configs.number('replica.fetch.max.bytes'),
    answerBytes: configs.number('replica.fetch.response.max.bytes'),
    backoffMs: configs.number('replica.fetch.backoff.ms'),
    timeoutMs: configs.number('replica.socket.timeout.ms'),
  }
}
