import { controllerOf, nodesOf, type Overview } from './cluster-overview.ts'
import { quorumTable } from './commands/voters.ts'
import { type Cell, counted, table } from './output.ts'

/** What `tidemark cluster` prints, line by line: first what keeps all else from being mended, and its cure. */
export function reportOf(found: Overview): string[] {
  const { description, quorum } = found
  const controller = controllerOf(found)
  const nodes = nodesOf(found)
  const rows = nodes.map((each): Cell[] => [
    each.id,
    each.host === null ? null : `${each.host}:${each.port}`,
    each.rack,
    each.roles.map(role => (role === 'controller' && each.id === controller ? 'active controller' : role)).join(', '),
    each.state,
    each.leads,
    each.replicas,
    each.behind,
  ])
  return [
    `cluster ${description.clusterId}, controller ${controller < 0 ? 'unknown' : controller}`,
    ...uncontrolled(found),
    `${counted(nodes.length, 'node')}${racksOf(description.brokers)}, ${sizeOf(found)}`,
    '',
    table(['NODE', 'ADDRESS', 'RACK', 'ROLES', 'STATE', 'LEADS', 'REPLICAS', 'BEHIND'], rows),
    ...(quorum === undefined ? [] : ['', ...quorumLines(quorum)]),
    '',
    ...partitionLines(found),
  ]
}

/** Without an active controller nothing is decided, and nobody knows of the controllers but they. */
function uncontrolled({ isLeaderless, isSilent }: Overview): string[] {
  if (isLeaderless) {
    return [
      '',
      'no controller leads: nothing can be changed, and no leader elected; this is what the brokers knew last',
      'start controllers until a majority of those that vote runs; where it does, see in their logs whom they do not reach',
      '',
    ]
  }
  if (!isSilent) return []
  return [
    '',
    'the active controller does not answer: this is what a broker was told last',
    'see its log and its disk; where it hangs, stop it, and another one takes over',
    '',
  ]
}

function quorumLines(quorum: NonNullable<Overview['quorum']>): string[] {
  const { leaderId, leaderEpoch, highWatermark } = quorum
  return [`quorum: leader ${leaderId}, epoch ${leaderEpoch}, committed to ${highWatermark}`, quorumTable(quorum)]
}

function sizeOf({ health }: Overview): string {
  const { topics, partitions, replicas } = health
  return `${counted(topics, 'topic')}, ${counted(partitions, 'partition')}, ${counted(replicas, 'replica')}`
}

/** Those without a rack count as one that has no name where replicas are placed, which is seldom meant. */
function racksOf(brokers: readonly { readonly rack: string | null }[]): string {
  const racks = new Set(brokers.flatMap(({ rack }) => rack ?? [])).size
  const without = brokers.filter(({ rack }) => rack === null).length
  if (racks === 0) return ''
  return ` in ${counted(racks, 'rack')}${without === 0 ? '' : ` (${without} without one)`}`
}

/** How many partitions are named in a line. */
const NAMED_MAX = 5

function partitionLines({ health, reassignments, isLeaderless, isSilent }: Overview): string[] {
  const isOld = isLeaderless || isSilent
  const states = [
    ['offline', health.offline],
    ['under min.insync', health.underMinIsr],
    ['under-replicated', health.underReplicated],
    ['not preferred', health.notPreferred],
    ['reassigning', reassignments ?? []],
  ] as const
  const wrong = states.filter(([, list]) => list.length > 0)
  if (wrong.length === 0) {
    return [`partitions${isOld ? ' as they were then' : ''}: all led by their preferred replicas, all replicas in sync`]
  }
  const named = wrong.map(([state, list]): Cell[] => {
    const names = list.slice(0, NAMED_MAX).map(({ topic, partition }) => `${topic}-${partition}`)
    return [state, list.length, `${names.join(', ')}${list.length > NAMED_MAX ? ', …' : ''}`]
  })
  const lines = [table(['PARTITIONS', 'COUNT', 'WHICH'], named)]
  // Who elects is the active controller.
  if (!isOld && health.notPreferred.some(({ electable }) => electable)) {
    lines.push('give leadership back with: tidemark cluster elect')
  }
  if ((reassignments ?? []).length > 0) lines.push('see how far they are with: tidemark topics reassign --status')
  return lines
}
