import { hostPort } from '#base/host-port.ts'
import { VERSION } from '#base/version.ts'
import { meansAnyAddress } from '#core/config/listeners.ts'
import type { ServerConfig } from '#core/config/server.ts'
import { optimizeSoon } from '#world/real/optimizer.ts'
import { realWorld } from '#world/real/real.ts'
import { onStopSignal } from '#world/real/stop-signals.ts'
import type { Address, World } from '#world/world.ts'
import { otherProblem, refuseOtherLayout, startBrokers } from './start/brokers.ts'
import { HELP, nodeConfig, readFlags, type StartPlan } from './start/flags.ts'
import { startOneNode } from './start/one-node.ts'
import { startFailure } from './start-failure.ts'

/** What runs in this process: a node, or several. */
interface Running {
  readonly clusterId: string | undefined
  readonly nodeIds: readonly number[]
  readonly listeners: readonly { readonly name?: string; readonly address: Address; readonly forControllers: boolean }[]
  /** Resolves with what became of it, should a part fail by itself. */
  readonly failed: Promise<string>
  stop(): Promise<void>
}

/** Runs `tidemark start` with these arguments until a signal. Returns the exit code: 0 stopped, 1 failed, 2 misused. */
export async function start(args: readonly string[]): Promise<number> {
  const plan = readFlags(args, process.env, process.stderr.isTTY)
  if (plan === 'help') {
    process.stdout.write(HELP)
    return 0
  }
  if ('problem' in plan) return misused(plan.problem)
  const config = nodeConfig(plan.sources)
  if ('problem' in config) return misused(config.problem)
  const problem = otherProblem(plan, config)?.problem
  return problem === undefined ? await run(plan, config) : misused(problem)
}

function misused(problem: string): number {
  // Several lines are a list of what is wrong with the configuration.
  const isList = problem.includes('\n') && !problem.startsWith('error: ')
  process.stderr.write(
    isList ? `${problem}\nerror: the node was not started\n` : `error: ${problem.replace(/^error: /, '')}\n`,
  )
  return 2
}

async function run(plan: StartPlan, config: ServerConfig): Promise<number> {
  // The pool that does the work of files is one for all threads, and is made when it is first used.
  if (plan.brokers > 1) process.env.UV_THREADPOOL_SIZE ??= String(4 * plan.brokers)
  optimizeSoon()
  const world = realWorld({ log: plan.log })
  const fatal = (error: unknown) => {
    world.log.error({ err: error }, 'the node stops: something happened that must not, and going on could do harm')
    process.exit(70)
  }
  process.on('uncaughtException', fatal)
  process.on('unhandledRejection', fatal)
  // Heard from now on: whoever asks for the stop of a node that is starting gets a clean one, a moment later.
  const abort = new AbortController()
  const asked = new Promise<void>(resolve => {
    onStopSignal(() => {
      abort.abort()
      resolve()
    })
  })
  let running: Running
  try {
    refuseOtherLayout(plan, config)
    running = plan.brokers > 1 ? await several(plan, config, abort.signal) : await one(world, config, abort.signal)
  } catch (error) {
    if (abort.signal.aborted) {
      world.log.info({}, 'stopped before it was up')
      return 0
    }
    process.stderr.write(`error: ${startFailure(error)}\n`)
    return 1
  }
  tellUp(world, plan, config, running)
  const failed = await Promise.race([asked, running.failed])
  if (failed !== undefined) {
    world.log.error(
      { reason: failed },
      'all brokers of this process stop: one of them failed, and going on could do harm',
    )
    process.exit(70)
  }
  world.log.info({}, 'stopping')
  await running.stop()
  world.log.info({}, 'stopped')
  return 0
}

async function one(world: World, config: ServerConfig, abort: AbortSignal): Promise<Running> {
  const node = await startOneNode(world, config, abort)
  return {
    clusterId: node.clusterId,
    nodeIds: [config.nodeId],
    listeners: node.listeners.map(({ name, address }) => ({
      name,
      address,
      forControllers: config.listeners.some(listener => listener.name === name && listener.forControllers),
    })),
    failed: new Promise(() => {}),
    stop: () => node.stop(),
  }
}

async function several(plan: StartPlan, config: ServerConfig, abort: AbortSignal): Promise<Running> {
  const brokers = await startBrokers(plan, config, abort)
  return { ...brokers, listeners: brokers.clientAddresses.map(address => ({ address, forControllers: false })) }
}

function tellUp(world: World, { log }: StartPlan, { logDirs }: ServerConfig, running: Running): void {
  // Programs that read the log are told in the log.
  if (log.format === 'line') {
    process.stdout.write(welcome(running, logDirs))
    return
  }
  const { clusterId, nodeIds } = running
  world.log.info(
    {
      version: VERSION,
      clusterId,
      ...(nodeIds.length === 1 ? { nodeId: nodeIds[0] } : { nodeIds }),
      listeners: running.listeners.map(
        ({ name, address }) => `${name === undefined ? '' : `${name}://`}${hostPort(address)}`,
      ),
      logDirs,
      tookMs: Math.round(process.uptime() * 1000),
    },
    'the node is up',
  )
}

function welcome({ nodeIds, clusterId, listeners }: Running, logDirs: readonly string[]): string {
  const at = listeners
    .filter(({ forControllers }) => !forControllers)
    .map(({ address: { host, port } }) => hostPort({ host: meansAnyAddress(host) ? 'localhost' : host, port }))
  const [first] = at
  const elsewhere = first === 'localhost:9092' ? '' : ` --bootstrap ${first}`
  // Who runs a checkout has no `tidemark` to call.
  const tidemark = process.env.npm_lifecycle_event === undefined ? 'tidemark' : 'npm run -s tidemark --'
  const nodes = nodeIds.length === 1 ? `node ${nodeIds[0]}` : `nodes ${nodeIds.join(', ')}`
  const lines = [
    `Tidemark ${VERSION} is up: ${nodes} of ${clusterId === undefined ? 'a cluster that is still to be founded' : `cluster ${clusterId}`}`,
  ]
  if (first === undefined) {
    // A controller alone serves no clients.
    lines.push(
      `  listens   ${listeners.map(({ address }) => hostPort(address)).join(', ')}, for controllers and brokers`,
    )
    lines.push(`  data      ${logDirs.join(', ')}`)
  } else {
    lines.push(`  listens   ${at.join(', ')}`)
    lines.push(`  data      ${logDirs.join(', ')}`)
    lines.push(`  try       ${tidemark} produce hello "first record"${elsewhere}`)
    lines.push(`            ${tidemark} consume hello${elsewhere}`)
  }
  return [...lines, '  stop      Ctrl-C', ''].join('\n')
}
