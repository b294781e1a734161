/** `<topic>-<partition>` and what Kafka hangs on such a name: `.<32 hex digits>-delete`, `-future`, `-stray`. */
export interface PartitionFolderName {
  readonly topic: string
  readonly partition: number
  readonly state: 'live' | 'delete' | 'future' | 'stray'
}

const NAME_LENGTH_MAX = 255

export function partitionFolderName(topic: string, partition: number): string {
  return `${topic}-${partition}`
}

/** Undefined for folders that are no partition's. */
export function parsePartitionFolderName(name: string): PartitionFolderName | undefined {
  const suffixed = /^(.+)\.[0-9a-f]{32}-(delete|future|stray)$/.exec(name)
  const plain = suffixed?.[1] ?? name
  const state = (suffixed?.[2] ?? 'live') as PartitionFolderName['state']
  const parts = /^(.+)-(\d{1,10})$/.exec(plain)
  // A name that had to be cut to make room for the suffix may have lost its number.
  if (parts === null) return suffixed === null ? undefined : { topic: plain, partition: -1, state }
  return { topic: parts[1] as string, partition: Number(parts[2]), state }
}

/** The name of a folder that waits to be deleted, or that belongs nowhere. Cut, as in Kafka, to what file systems take. */
export function suffixedFolderName(
  topic: string,
  partition: number,
  state: 'delete' | 'future' | 'stray',
  random: Uint8Array,
): string {
  const suffix = `-${partition}.${Buffer.from(random).toString('hex')}-${state}`
  return topic.slice(0, NAME_LENGTH_MAX - suffix.length) + suffix
}

/** Whether a partition's folder lies in one of `log.dirs`, and not in another one below it. */
export function isRightIn(path: string, folder: string): boolean {
  return folder.lastIndexOf('/') === path.length && folder.startsWith(path)
}
