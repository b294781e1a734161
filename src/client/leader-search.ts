import type { NodeId } from '#base/units.ts'
import type { Client } from './client.ts'

export interface LeaderSearchOptions {
  /** Topics that are not there are to be made. */
  readonly create?: boolean
  /** These were asked for, and answered or not. */
  readonly asked: (topics: readonly string[]) => void
  readonly failed?: (error: unknown) => void
  /** The rest behind a request is over. */
  readonly rested: () => void
}

/** Asks who leads topics, one request after another and not as fast as answers come. */
export class LeaderSearch {
  readonly #client: Client
  readonly #options: LeaderSearchOptions
  readonly #stale = new Set<string>()
  #isAsking = false
  #closed = false

  constructor(client: Client, options: LeaderSearchOptions) {
    this.#client = client
    this.#options = options
  }

  ask(topics: Iterable<string>): void {
    for (const topic of topics) this.#stale.add(topic)
    if (this.#isAsking || this.#stale.size === 0 || this.#closed) return
    this.#isAsking = true
    const { create = false, asked, failed, rested } = this.#options
    const { metadata, options } = this.#client
    const topicsNow = [...this.#stale]
    this.#stale.clear()
    metadata
      .refresh(topicsNow, { create })
      .catch((error: unknown) => failed?.(error))
      .then(() => {
        asked(topicsNow)
        return this.#client.pause(options.retryBackoffMs)
      })
      .finally(() => {
        this.#isAsking = false
        this.ask([])
        rested()
      })
  }

  /** What was said of these topics led nowhere, or to this leader in vain: others are asked. */
  misled(topics: Iterable<string>, leader: NodeId): void {
    const all = new Set(topics)
    for (const topic of all) this.#client.metadata.doubt(topic, leader)
    this.ask(all)
  }

  close(): void {
    this.#closed = true
  }
}
