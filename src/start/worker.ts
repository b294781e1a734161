// The thread of one broker of several in a process. The main thread sends `stop`; what it is told is a WorkerReport.
import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '#base/assert.ts'
import { meansAnyAddress } from '#core/config/listeners.ts'
import type { ConfigSources } from '#core/config/server.ts'
import type { Address } from '#world/world.ts'
import type { RunningNode } from '../node.ts'
import { startFailure } from '../start-failure.ts'
import { type LogChoice, nodeConfig } from './flags.ts'
import { startOneNode, worldOf } from './one-node.ts'

export interface WorkerOrder {
  readonly sources: ConfigSources
  readonly log: LogChoice
}

export type WorkerReport =
  | {
      readonly kind: 'up'
      readonly clusterId: string | undefined
      readonly clients: readonly Address[]
      readonly controllers: readonly Address[]
    }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'stopped' }

async function run(): Promise<void> {
  const port = parentPort
  assert(port !== null, 'this file is run as a thread')
  const tell = (report: WorkerReport) => port.postMessage(report)
  const abort = new AbortController()
  const asked = new Promise<void>(resolve => {
    port.on('message', () => {
      abort.abort()
      resolve()
    })
  })
  const { sources, log } = workerData as WorkerOrder
  const config = nodeConfig(sources)
  let node: RunningNode | undefined
  if ('problem' in config) tell({ kind: 'refused', reason: config.problem })
  else {
    try {
      node = await startOneNode(worldOf(log), config, abort.signal)
    } catch (error) {
      tell({ kind: 'refused', reason: startFailure(error) })
    }
  }
  if (node !== undefined && !('problem' in config)) {
    const isController = (name: string) => config.listeners.some(each => each.name === name && each.forControllers)
    const of = (controllers: boolean) =>
      node.listeners
        .filter(({ name }) => isController(name) === controllers)
        .map(({ address: { host, port: own } }) => ({ host: meansAnyAddress(host) ? 'localhost' : host, port: own }))
    tell({ kind: 'up', clusterId: node.clusterId, clients: of(false), controllers: of(true) })
    await asked
    await node.stop()
  }
  tell({ kind: 'stopped' })
  port.close()
}

await run()
