/** A cluster of our own: several processes on this machine, each with its folder. */
import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readFileSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { end, freePort, root } from '../processes.ts'

export { eventually } from '../processes.ts'

export interface ClusterNode {
  readonly id: number
  readonly port: number
  readonly folder: string
}

/** How long a node may take to stop, in milliseconds. */
const LIMIT_MS = 30_000

export class Nodes {
  readonly #dir: string
  readonly #nodes: readonly ClusterNode[]
  readonly #running = new Map<number, ChildProcess>()
  readonly #onExit = (): void => {
    for (const child of this.#running.values()) child.kill('SIGKILL')
    rmSync(this.#dir, { recursive: true, force: true })
  }

  private constructor(dir: string, nodes: readonly ClusterNode[]) {
    this.#dir = dir
    this.#nodes = nodes
    process.on('exit', this.#onExit)
  }

  /** So many nodes, none of which runs yet; each in a rack of its own. */
  static async create(count: number): Promise<Nodes> {
    const dir = await mkdtemp(join(tmpdir(), 'tidemark-cluster-'))
    const nodes: ClusterNode[] = []
    const taken = new Set<number>()
    while (nodes.length < count) {
      const port = await freePort()
      // A controller takes the port above.
      if (taken.has(port) || taken.has(port + 1) || taken.has(port - 1)) continue
      taken.add(port)
      const id = nodes.length + 1
      nodes.push({ id, port, folder: join(dir, `node-${id}`) })
    }
    return new Nodes(dir, nodes)
  }

  get bootstrap(): string {
    return this.#nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
  }

  /** Of the node that runs now. */
  pid(id: number): number | undefined {
    return this.#running.get(id)?.pid
  }

  log(id: number, lines = 30): string {
    return readFileSync(this.#logFile(id), 'utf8').split('\n').slice(-lines).join('\n')
  }

  #logFile(id: number): string {
    return join(this.#dir, `node-${id}.log`)
  }

  /** The first node founds the cluster, the others follow its log; whether they vote is for the test to say. */
  start(id: number, settings: Readonly<Record<string, string>> = {}): void {
    const [first] = this.#nodes
    const node = this.#nodes.find(each => each.id === id)
    if (first === undefined || node === undefined) throw new Error(`there is no node ${id}`)
    const all: Record<string, string> = {
      ...(node !== first && { 'controller.quorum.bootstrap.servers': `localhost:${first.port + 1}` }),
      'group.initial.rebalance.delay.ms': '0',
      ...settings,
    }
    const log = openSync(this.#logFile(id), 'a')
    const args = ['--node-id', `${id}`, '--port', `${node.port}`, '--data', node.folder, '--rack', `rack-${id}`]
    const overrides = Object.entries(all).flatMap(([key, value]) => ['--override', `${key}=${value}`])
    const child = spawn(process.execPath, [join(root, 'src', 'main.ts'), 'start', ...args, ...overrides], {
      stdio: ['ignore', log, log],
      cwd: this.#dir,
    })
    this.#running.set(id, child)
    child.once('exit', () => {
      if (this.#running.get(id) === child) this.#running.delete(id)
    })
  }

  /** @param signal SIGKILL is a crash, SIGTERM a controlled shutdown. */
  async stop(id: number, signal: NodeJS.Signals): Promise<void> {
    const child = this.#running.get(id)
    if (child === undefined) return
    await end(child, signal, LIMIT_MS)
  }

  async remove(): Promise<void> {
    await Promise.all(this.#nodes.map(({ id }) => this.stop(id, 'SIGKILL')))
    process.off('exit', this.#onExit)
    await rm(this.#dir, { recursive: true, force: true })
  }
}
