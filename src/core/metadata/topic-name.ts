export const CLUSTER_METADATA_TOPIC = '__cluster_metadata'
export const OFFSETS_TOPIC = '__consumer_offsets'
const TRANSACTION_STATE_TOPIC = '__transaction_state'
const SHARE_GROUP_STATE_TOPIC = '__share_group_state'

const INTERNAL_TOPICS: ReadonlySet<string> = new Set([OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC])
export const TOPIC_NAME_LENGTH_MAX = 249

/** Whether clients are told that the topic is the cluster's own. */
export function isInternalTopic(name: string): boolean {
  return INTERNAL_TOPICS.has(name)
}

/** What is wrong with a topic's name, undefined if nothing is. */
export function topicNameProblem(name: string): string | undefined {
  if (name === '') return 'the empty string is not allowed'
  if (name === '.' || name === '..') return `'${name}' is not allowed`
  if (name.length > TOPIC_NAME_LENGTH_MAX) {
    return `the length of '${name.slice(0, 32)}...' is ${name.length}, which is longer than the max allowed length ${TOPIC_NAME_LENGTH_MAX}`
  }
  if (!/^[a-zA-Z0-9._-]+$/.test(name)) {
    return `'${name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'`
  }
  return undefined
}

/** Names that differ only in `.` and `_` are one name in metrics, so no two topics may have them; undefined if it has neither. */
export function collisionKey(name: string): string | undefined {
  return /[._]/.test(name) ? name.replaceAll('.', '_') : undefined
}
