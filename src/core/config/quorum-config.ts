import { isLoopback, type Listener, parseHostPort, parseVoter, type Voter } from './listeners.ts'

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** How this node comes to its quorum. */
export interface QuorumConfig {
  /** `controller.quorum.voters`: a fixed list. */
  readonly voters: readonly Voter[]
  /** `controller.quorum.bootstrap.servers` without this node's own address. */
  readonly bootstrap: readonly HostPort[]
  /** `controller.quorum.auto.join.enable` */
  readonly autoJoin: boolean
  /** Whether empty folders become a new cluster: nobody else was named who could know of one. */
  readonly founds: boolean
}

export interface QuorumProblem {
  readonly key: string
  readonly message: string
}

interface Node {
  /** Undefined where nobody gave one. */
  readonly nodeId: number | undefined
  readonly roles: { readonly broker: boolean; readonly controller: boolean }
  readonly listeners: readonly Listener[]
  /** How others reach this node, where that was said. */
  readonly host: string | undefined
  readonly values: ReadonlyMap<string, string>
}

const VOTERS = 'controller.quorum.voters'
const BOOTSTRAP = 'controller.quorum.bootstrap.servers'
const AUTO_JOIN = 'controller.quorum.auto.join.enable'

/** The entries of controller.quorum.voters that can be read. */
export function voterEntries(values: ReadonlyMap<string, string>): Voter[] {
  return items(values.get(VOTERS)).flatMap(text => parseVoter(text) ?? [])
}

/** The entries of controller.quorum.bootstrap.servers that can be read. */
export function bootstrapEntries(values: ReadonlyMap<string, string>): HostPort[] {
  return items(values.get(BOOTSTRAP)).flatMap(text => parseHostPort(text) ?? [])
}

/** Reads what concerns the quorum, and says what in it contradicts the rest. */
export function quorumConfig(node: Node): { quorum: QuorumConfig; problems: QuorumProblem[] } {
  const { nodeId, roles, listeners, values } = node
  const problems: QuorumProblem[] = []
  const wrong = (key: string, message: string): void => {
    problems.push({ key, message })
  }
  for (const text of items(values.get(VOTERS)))
    if (parseVoter(text) === undefined)
      wrong(VOTERS, `${VOTERS} takes id@host:port, and "${text}" is not of that form.`)
  for (const text of items(values.get(BOOTSTRAP)))
    if (parseHostPort(text) === undefined)
      wrong(BOOTSTRAP, `${BOOTSTRAP} takes host:port, and "${text}" is not of that form.`)
  const voters = voterEntries(values)
  const twice = voters.find(({ id }, index) => voters.findIndex(other => other.id === id) !== index)
  if (twice !== undefined) wrong(VOTERS, `${VOTERS} names the node ${twice.id} twice.`)
  const bootstrap = bootstrapEntries(values).filter(address => !isOwn(address, node))
  const autoJoin = values.get(AUTO_JOIN)?.trim().toLowerCase() === 'true'
  const founds = roles.controller && voters.length === 0 && bootstrap.length === 0
  const isVoter = voters.some(({ id }) => id === (nodeId ?? 1))
  if (roles.controller && voters.length > 0 && !isVoter)
    wrong(VOTERS, `${VOTERS} must include this node (${nodeId ?? 1}), as process.roles includes controller.`)
  else if (!roles.controller && isVoter)
    wrong(
      VOTERS,
      `${VOTERS} includes this node (${nodeId ?? 1}), and process.roles does not include controller. Add the role, or remove the node.`,
    )
  const namesItself = bootstrap.length === 0 && bootstrapEntries(values).length > 0
  if (!roles.controller && voters.length === 0 && bootstrap.length === 0 && !namesItself)
    wrong(
      BOOTSTRAP,
      `A broker that is no controller needs one: name the controllers in ${BOOTSTRAP} (--join host:port), or add the role controller.`,
    )
  if (autoJoin && !roles.controller)
    wrong(
      AUTO_JOIN,
      `${AUTO_JOIN} is for controllers, and process.roles does not include controller. Remove one of them.`,
    )
  if (autoJoin && voters.length > 0)
    wrong(AUTO_JOIN, `${AUTO_JOIN} does not go with a fixed list of voters. Remove it, or ${VOTERS}.`)
  if (namesItself && voters.length === 0 && (autoJoin || !roles.controller))
    wrong(
      BOOTSTRAP,
      `${BOOTSTRAP} (--join) names this node itself, which listens on ${listeners.map(({ port }) => port).join(' and ')}. Name another node, or give this one another port (--port).`,
    )
  if (nodeId === undefined && !founds && (voters.length > 1 || bootstrap.length > 0 || !roles.controller))
    wrong('node.id', 'A node that joins others needs a number that none of them has: set node.id (--node-id).')
  return { quorum: { voters, bootstrap, autoJoin, founds }, problems }
}

/**
 * Kafka's own example has the node's address among the bootstrap servers: it is no other to ask. A broker may be named to
 * join, too, so the listeners for clients count as well.
 */
function isOwn({ host, port }: HostPort, { listeners, host: own }: Node): boolean {
  return listeners.some(listener => {
    const { advertised } = listener
    if (listener.port === 0) return false
    if (advertised !== undefined && advertised.host === host && advertised.port === port) return true
    return port === listener.port && (isLoopback(host) || host === listener.host || host === own)
  })
}

function items(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== '')
}
