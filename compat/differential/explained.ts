/** Where Tidemark answers otherwise than Kafka, and may. Each entry says why; what is in none of them fails the run. */
export interface Explanation {
  readonly api?: string | RegExp
  readonly path?: string | RegExp
  /** What Kafka answers. */
  readonly left?: string | RegExp
  /** What Tidemark answers. */
  readonly right?: string | RegExp
  readonly why: string
}

export const EXPLAINED: readonly Explanation[] = []
