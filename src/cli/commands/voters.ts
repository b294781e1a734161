import type { Command } from 'commander'
import {
  addVoter,
  describeQuorum,
  hasDirectory,
  type Listener,
  type QuorumDescription,
  type QuorumReplica,
  quorumReplica,
  removeVoter,
} from '#client/admin/quorum.ts'
import { ClientError, parseAddresses } from '#client/client.ts'
import { wholeNumber } from '../arguments.ts'
import { UsageError, wantsJson, withClient } from '../context.ts'
import { type Cell, duration, print, printJson, remark, table } from '../output.ts'

export function addVoters(cluster: Command): void {
  const voters = cluster.command('voters').description('show and change who votes in the quorum of controllers')

  voters
    .command('list', { isDefault: true })
    .alias('ls')
    .description('show who votes, who follows, and how far they are')
    .action(async (_options: object, self: Command) => {
      const quorum = await withClient(self, describeQuorum)
      if (wantsJson(self)) printJson(quorum)
      else print(quorumTable(quorum, true))
    })

  voters
    .command('add <id>')
    .description('let a controller vote that follows the metadata log')
    .option('-d, --directory <id>', 'the id of its metadata folder; found in the quorum without it')
    .option('-a, --address <host:port>', 'where the other controllers reach it; found in the quorum without it')
    .option('-l, --listener <name>', 'the name of that listener', 'CONTROLLER')
    .addHelpText(
      'after',
      `
Start the node first, wait until it has caught up (tidemark cluster voters), then let it vote:
  tidemark cluster voters add 4
  tidemark cluster voters add 4 --address 10.0.0.4:9093`,
    )
    .action(async (text: string, options: AddOptions, self: Command) => {
      const id = wholeNumber('the id')(text)
      await withClient(self, async client => {
        const quorum = await describeQuorum(client)
        if (quorum.voters.some(voter => voter.id === id)) {
          throw new ClientError('DUPLICATE_VOTER', `node ${id} votes already`)
        }
        if (!quorum.voters.some(hasDirectory)) throw fixedVoters()
        const directoryId =
          options.directory ??
          quorumReplica(
            quorum.observers,
            id,
            undefined,
            'follows the metadata log',
            `start node ${id} with --join first`,
          ).directoryId
        const listeners = listenersOf(options) ?? quorum.nodes.find(node => node.id === id)?.listeners ?? []
        if (listeners.length === 0) {
          throw new UsageError(
            `where node ${id} listens as a controller is not known`,
            'give it as --address host:port, with --listener if its name is not CONTROLLER',
          )
        }
        await addVoter(client, { id, directoryId, listeners })
      })
      if (wantsJson(self)) printJson({ added: id })
      else print(`node ${id} votes`)
    })

  voters
    .command('remove <id>')
    .alias('rm')
    .description('take the vote of a controller')
    .option('-d, --directory <id>', 'the id of its metadata folder, where it had several')
    .addHelpText(
      'after',
      `
Remove one whose machine goes for good: votes of the dead count in every majority. Stop it first: a node that was
started with --join votes again as long as it runs.
  tidemark cluster voters remove 4`,
    )
    .action(async (text: string, options: { directory?: string }, self: Command) => {
      const id = wholeNumber('the id')(text)
      const runs = await withClient(self, async client => {
        const { voters } = await describeQuorum(client)
        const voter = quorumReplica(voters, id, options.directory, 'votes')
        if (!hasDirectory(voter)) throw fixedVoters()
        await removeVoter(client, { id, directoryId: voter.directoryId }).catch((error: unknown) => {
          // It voted a moment ago: a leader that removed itself could not say so any more.
          if (!(error instanceof ClientError) || error.code !== 'VOTER_NOT_FOUND') throw error
        })
        return Date.now() - voter.lastFetchTimestamp < RUNS_MS
      })
      if (wantsJson(self)) printJson({ removed: id })
      else print(`node ${id} votes no more`)
      if (runs)
        remark(`hint: node ${id} ran until a moment ago: if it still runs and was started with --join, it joins again`)
    })
}

/** Who fetched so lately may run. */
const RUNS_MS = 5000

/** Voters without folders are those of a list in every node's configuration, which no request changes (KIP-853). */
function fixedVoters(): ClientError {
  return new ClientError('UNSUPPORTED_VERSION', 'the voters of this cluster are a list in its configuration', {
    hint: 'make records of them, which can be changed: tidemark cluster features upgrade kraft.version=1',
  })
}

interface AddOptions {
  readonly directory?: string
  readonly address?: string
  readonly listener: string
}

function listenersOf({ address, listener }: AddOptions): Listener[] | undefined {
  return address === undefined ? undefined : parseAddresses(address).map(each => ({ name: listener, ...each }))
}

/** Who votes and who follows; lag is in records behind the leader. */
export function quorumTable(
  { leaderId, voters, observers }: QuorumDescription,
  withDirectories = false,
  now = Date.now(),
): string {
  const end = Math.max(...voters.map(({ logEndOffset }) => logEndOffset), 0)
  // Another folder under the leader's number is another replica, which is refused its vote.
  const leader = [...voters, ...observers].find(({ id }) => id === leaderId)
  const row =
    (role: string) =>
    (each: QuorumReplica): Cell[] => [
      each.id,
      each === leader ? 'leader' : role,
      each.logEndOffset,
      each.logEndOffset < 0 ? null : end - each.logEndOffset,
      each.lastCaughtUpTimestamp < 0 ? null : `${duration(Math.max(0, now - each.lastCaughtUpTimestamp))} ago`,
      ...(withDirectories ? [hasDirectory(each) ? each.directoryId : null] : []),
    ]
  const titles = ['NODE', 'ROLE', 'END', 'LAG', 'CAUGHT UP', ...(withDirectories ? ['FOLDER'] : [])]
  return table(titles, [...byId(voters).map(row('voter')), ...byId(observers).map(row('observer'))])
}

function byId(replicas: readonly QuorumReplica[]): QuorumReplica[] {
  return replicas.toSorted((a, b) => a.id - b.id)
}
