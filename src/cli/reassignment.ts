import { readFileSync } from 'node:fs'
import { type ClusterDescription, describeCluster } from '#client/admin/cluster.ts'
import {
  alterReassignments,
  copiesOf,
  listReassignments,
  type PlanBroker,
  type PlannedChange,
  type PlanPartition,
  planProblem,
  planReassignment,
} from '#client/admin/reassignments.ts'
import { clearThrottle, setThrottle, throttled } from '#client/admin/throttle.ts'
import { listTopics } from '#client/admin/topics.ts'
import { type Client, ClientError } from '#client/client.ts'
import { wholeNumber } from './arguments.ts'
import { missingTopic, UsageError } from './context.ts'
import { bytes, counted, print, printJson, remark, table } from './output.ts'
import { parseReassignmentFile, toReassignmentFile } from './reassignment-file.ts'
import { followProgress, THROTTLED } from './reassignment-progress.ts'

export interface ReassignOptions {
  readonly brokers?: string
  readonly topics?: string
  readonly replicas?: number
  readonly file?: string
  readonly execute?: boolean
  readonly throttle?: number
  readonly wait?: boolean
  readonly status?: boolean
  readonly cancel?: boolean
  readonly unthrottle?: boolean
}

export async function planAndExecute(client: Client, options: ReassignOptions, json: boolean): Promise<void> {
  const changes = options.file === undefined ? await plan(client, options) : await planOf(client, options.file)
  if (changes.length === 0) {
    if (json) printJson({ ...toReassignmentFile([]), before: toReassignmentFile([]), copies: 0 })
    else print('nothing to do: all replicas are where they shall be')
    return
  }
  const copies = changes.reduce((sum, change) => sum + copiesOf(change), 0)
  if (options.execute !== true) {
    if (json) {
      const before = toReassignmentFile(changes.map(change => ({ ...change, replicas: change.before })))
      printJson({ ...toReassignmentFile(changes), before, copies })
      return
    }
    showPlan(changes)
    print('')
    print(`${counted(changes.length, 'partition')} would change, ${counted(copies, 'replica')} would be copied`)
    print('do it with --execute; keep the plan with --json > plan.json')
    return
  }
  if (options.throttle !== undefined) await setThrottle(client, changes, options.throttle)
  const refused = await alterReassignments(client, changes).catch((error: unknown) => {
    if (options.throttle !== undefined) remark(THROTTLED)
    throw error
  })
  for (const { error } of refused) if (!json) remark(`error: ${error.message} (${error.code})`)
  if (refused.length > 0) process.exitCode = 1
  const began = changes.length - refused.length
  if (json) {
    printJson({
      began,
      copies,
      refused: refused.map(({ topic, partition, error: { code, message } }) => ({ topic, partition, code, message })),
    })
  } else if (began > 0) {
    print(`began to reassign ${counted(began, 'partition')} of ${changes.length}`)
    if (options.throttle !== undefined) print(`copies are bounded to ${bytes(options.throttle)}/s at each broker`)
  }
  if (began === 0) {
    // It would stay for the next one, unless that takes it away; another one that goes on may be meant to have it.
    const isSet = options.throttle !== undefined
    if (isSet && (await listReassignments(client)).length === 0) await unthrottle(client, json, true)
    else if (isSet) remark(THROTTLED)
    return
  }
  if (options.wait === true) {
    await followProgress(client, json)
    if (options.throttle !== undefined) await unthrottle(client, json, true)
  } else if (!json) print('see how far it is with: tidemark topics reassign --status --wait')
}

async function plan(client: Client, options: ReassignOptions): Promise<PlannedChange[]> {
  const brokers = await brokersOf(client, options.brokers ?? '')
  const partitions = await partitionsOf(client, options.topics)
  const problem = planProblem(brokers, partitions, options.replicas)
  if (problem !== undefined) throw new UsageError(problem, 'name more brokers, or ask for fewer --replicas')
  const missing = missingRacks(brokers)
  if (missing !== undefined) remark(missing)
  return planReassignment(brokers, partitions, options.replicas)
}

/**
 * Where only some brokers have a rack, what they are places of is not known of the others. Kafka refuses to plan then
 * (KIP-36); ours takes those without for one rack more, so that it is right as soon as they have one.
 */
export function missingRacks(brokers: readonly PlanBroker[]): string | undefined {
  const without = brokers.filter(({ rack }) => rack === '').map(({ id }) => id)
  if (without.length === 0 || without.length === brokers.length) return undefined
  const [which, they] =
    without.length === 1
      ? [`broker ${without[0]} has`, 'it counts']
      : [`brokers ${without.join(', ')} have`, 'they count']
  return `warning: ${which} no rack: ${they} as one rack of no name, so replicas may share a real one; set broker.rack of all`
}

/** The brokers that are named, all of which must live: a copy to one that does not would wait for it. */
async function brokersOf(client: Client, text: string): Promise<PlanBroker[]> {
  const { brokers } = await describeCluster(client)
  const hosts = await hostsOf(client, brokers)
  const ids =
    text === 'all'
      ? brokers.filter(({ fenced }) => !fenced).map(({ id }) => id)
      : [...new Set(text.split(',').map(part => wholeNumber('a broker of --brokers')(part.trim())))]
  return ids.map(wanted => {
    const found = brokers.find(({ id }) => id === wanted)
    if (found === undefined) {
      throw new UsageError(`there is no broker ${wanted}`, `there are ${brokers.map(({ id }) => id).join(', ')}`)
    }
    if (found.fenced) throw new UsageError(`broker ${wanted} is down`, 'start it first, or leave it out')
    return { id: found.id, host: hosts.get(found.id) ?? found.host, rack: found.rack ?? '' }
  })
}

/** The brokers' hosts as others know them: each but the second is told of by the second, and that one by the first. */
async function hostsOf(client: Client, brokers: ClusterDescription['brokers']): Promise<ReadonlyMap<number, string>> {
  const [first, second] = brokers.filter(({ fenced }) => !fenced)
  if (first === undefined || second === undefined) return new Map()
  const told = await Promise.all([first.id, second.id].map(id => describeCluster(client, id)))
  const hosts = told.map(description => new Map(description.brokers.map(({ id, host }) => [id, sameHost(host)])))
  return new Map(brokers.map(({ id, host }) => [id, hosts[id === second.id ? 0 : 1]?.get(id) ?? host]))
}

function sameHost(host: string): string {
  return host === '::1' || host.startsWith('127.') ? 'localhost' : host
}

/** Where partitions shall be as things are: what reassignments that go on would remove no longer counts. */
async function partitionsOf(client: Client, names: string | undefined): Promise<PlanPartition[]> {
  const all = await listTopics(client)
  const wanted = names?.split(',').map(name => name.trim())
  for (const name of wanted ?? []) if (!all.some(topic => topic.name === name)) throw await missingTopic(client, name)
  const leaving = new Map<string, readonly number[]>()
  for (const { topic, partition, removing } of await listReassignments(client)) {
    leaving.set(`${topic}-${partition}`, removing)
  }
  return all
    .filter(({ name }) => wanted === undefined || wanted.includes(name))
    .flatMap(({ name: topic, partitions }) =>
      partitions.map(({ partition, replicas }) => {
        const removing = leaving.get(`${topic}-${partition}`) ?? []
        return { topic, partition, replicas: replicas.filter(id => !removing.includes(id)) }
      }),
    )
}

async function planOf(client: Client, path: string): Promise<PlannedChange[]> {
  const wanted = parseReassignmentFile(readText(path))
  const now = new Map((await partitionsOf(client, undefined)).map(each => [`${each.topic}-${each.partition}`, each]))
  return wanted.flatMap(({ topic, partition, replicas }) => {
    const before = now.get(`${topic}-${partition}`)?.replicas
    if (before === undefined) {
      throw new ClientError('UNKNOWN_TOPIC_OR_PARTITION', `there is no partition ${topic}-${partition}`, {
        hint: 'the plan is of another cluster, or the topic was deleted since',
      })
    }
    const same = before.length === replicas.length && before.every((id, at) => id === replicas[at])
    return same ? [] : [{ topic, partition, before, replicas }]
  })
}

function readText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function showPlan(changes: readonly PlannedChange[]): void {
  const rows = changes.map(change => {
    const { topic, partition, before, replicas } = change
    const leader = before[0] === replicas[0] ? null : `${before[0]} to ${replicas[0]}`
    return [topic, partition, before.join(','), replicas.join(','), copiesOf(change), leader]
  })
  print(table(['TOPIC', 'PARTITION', 'REPLICAS', 'NEW REPLICAS', 'COPIES', 'PREFERRED LEADER'], rows))
}

export async function cancel(client: Client, options: ReassignOptions, json: boolean): Promise<void> {
  const wanted = options.topics?.split(',').map(name => name.trim())
  const all = await listReassignments(client)
  const chosen = all.filter(({ topic }) => wanted === undefined || wanted.includes(topic))
  const refused = await alterReassignments(
    client,
    chosen.map(({ topic, partition }) => ({ topic, partition, replicas: null })),
  )
  // What ended before it could be cancelled is done.
  const failed = refused.filter(({ error }) => error.code !== 'NO_REASSIGNMENT_IN_PROGRESS')
  if (failed.length > 0) process.exitCode = 1
  const cancelled = chosen.length - refused.length
  if (json) {
    printJson({
      cancelled,
      refused: failed.map(({ topic, partition, error: { code, message } }) => ({ topic, partition, code, message })),
    })
  } else {
    for (const { error } of failed) remark(`error: ${error.message} (${error.code})`)
    print(chosen.length === 0 ? 'no reassignment goes on' : `cancelled ${counted(cancelled, 'reassignment')}`)
  }
  if (chosen.length === all.length && failed.length === 0) await unthrottle(client, json, true)
}

/** @param quiet says nothing where there is nothing to take away, or one value is printed already. */
export async function unthrottle(client: Client, json: boolean, quiet = false): Promise<void> {
  const found = await throttled(client)
  await clearThrottle(client, found)
  if (json) {
    if (!quiet) printJson(found)
    return
  }
  const some = found.brokers.length + found.topics.length > 0
  if (some) print('the throttle is taken away')
  else if (!quiet) print('nothing is throttled')
}
