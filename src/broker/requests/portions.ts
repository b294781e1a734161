/** What a coordinator is asked for in one go, so that the loop goes to others in between. */
const PORTION = 2000

export interface Portion<Topic> {
  readonly topics: Topic[]
  /** The first topic is the rest of the last one of the portion before. */
  readonly goesOn: boolean
}

/**
 * A request's list of topics with their partitions as several, none of which names more than some thousand partitions
 * and topics. `withPartitions` makes a topic of a part of its partitions. One portion at least, which may be empty.
 */
export function* portionsOf<Topic, Of>(
  topics: readonly Topic[],
  partitionsOf: (topic: Topic) => readonly Of[],
  withPartitions: (topic: Topic, partitions: Of[]) => Topic,
): Generator<Portion<Topic>> {
  let portion: Topic[] = []
  let goesOn = false
  let left = PORTION
  for (const topic of topics) {
    const partitions = partitionsOf(topic)
    let from = 0
    do {
      if (left <= 0) {
        yield { topics: portion, goesOn }
        portion = []
        goesOn = from > 0
        left = PORTION
      }
      const upTo = Math.min(partitions.length, from + left)
      portion.push(
        from === 0 && upTo === partitions.length ? topic : withPartitions(topic, partitions.slice(from, upTo)),
      )
      left -= upTo - from + 1
      from = upTo
    } while (from < partitions.length)
  }
  if (portion.length > 0 || topics.length === 0) yield { topics: portion, goesOn }
}

interface AnsweredTopic<Of> {
  readonly name?: string | undefined
  readonly topicId?: string | undefined
  readonly partitions?: readonly Of[] | undefined
}

/** The answers to portions as one: a topic that was asked for in two of them is answered once. */
export function joined<Of, Topic extends AnsweredTopic<Of>>(
  portions: readonly { readonly topics: readonly Topic[]; readonly goesOn: boolean }[],
): Topic[] {
  const joined: Topic[] = []
  /** The partitions of the last topic, if it was asked for in several portions. */
  let gathered: Of[] | undefined
  for (const { topics, goesOn } of portions) {
    for (const [index, topic] of topics.entries()) {
      const last = joined.at(-1)
      // What nobody has may be answered behind the others.
      if (index > 0 || !goesOn || last?.name !== topic.name || last?.topicId !== topic.topicId) {
        joined.push(topic)
        gathered = undefined
        continue
      }
      if (gathered === undefined) {
        gathered = [...(last?.partitions ?? [])]
        joined[joined.length - 1] = { ...topic, partitions: gathered }
      }
      for (const partition of topic.partitions ?? []) gathered.push(partition)
    }
  }
  return joined
}
