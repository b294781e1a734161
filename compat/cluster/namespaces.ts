/**
 * Machines that share nothing but the kernel: each is a network namespace with an address of its own on a common bridge, and
 * has a file system of its own. Only root can make them.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { end, root } from '../processes.ts'
import { world } from '../reliability/rig.ts'
import type { Machine, Machines, Settings } from './machines.ts'

const BRIDGE = 'tidemark-br'
const NET = '10.213.77'
const DISK_BYTES = 256 << 20
const PORT = 9092
const STOP_LIMIT_MS = 60_000
/** Nobody's: what is sent there arrives nowhere. */
const NOWHERE = '02:00:00:00:00:01'

function run(command: string): void {
  const [program = '', ...args] = command.split(' ')
  execFileSync(program, args, { stdio: 'pipe' })
}

/** Why there can be no such machines here, if so. */
export function withoutNamespaces(): string | false {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'network namespaces need Linux and root'
  for (const tool of ['ip', 'mkfs.ext4', 'fsfreeze'])
    if (spawnSync('which', [tool]).status !== 0) return `${tool} is missing`
  return false
}

class Namespace implements Machine {
  readonly id: number
  readonly host: string
  readonly data: string
  readonly #dir: string
  readonly #disk: string
  #child: ChildProcess | undefined

  constructor(id: number, dir: string) {
    this.id = id
    this.host = `${NET}.${id}`
    this.#dir = join(dir, `machine-${id}`)
    this.#disk = join(this.#dir, 'disk')
    this.data = join(this.#disk, 'data')
  }

  get #namespace(): string {
    return `tidemark-${this.id}`
  }

  /** The end of its cable at the bridge. */
  get #cable(): string {
    return `tidemark-c${this.id}`
  }

  get #logFile(): string {
    return join(this.#dir, 'node.log')
  }

  log(): readonly string[] {
    return readFileSync(this.#logFile, 'utf8').split('\n')
  }

  prepare(settings: Settings): void {
    mkdirSync(this.#disk, { recursive: true })
    const image = join(this.#dir, 'disk.img')
    run(`truncate -s ${DISK_BYTES} ${image}`)
    run(`mkfs.ext4 -q ${image}`)
    run(`mount -o loop ${image} ${this.#disk}`)
    run(`ip netns add ${this.#namespace}`)
    run(`ip link add ${this.#cable} type veth peer name eth0 netns ${this.#namespace}`)
    run(`ip link set ${this.#cable} master ${BRIDGE} up`)
    this.#inside('ip link set lo up')
    this.#inside(`ip addr add ${this.host}/24 dev eth0`)
    this.#inside('ip link set eth0 up')
    const listeners = `PLAINTEXT://${this.host}:${PORT},CONTROLLER://${this.host}:${PORT + 1}`
    const all = { 'node.id': String(this.id), listeners, 'log.dirs': this.data, ...settings }
    const lines = Object.entries(all).map(([key, value]) => `${key}=${value}\n`)
    writeFileSync(join(this.#dir, 'node.properties'), lines.join(''))
  }

  #inside(command: string): void {
    run(`ip netns exec ${this.#namespace} ${command}`)
  }

  start(): void {
    const log = openSync(this.#logFile, 'a')
    const node = [process.execPath, join(root, 'src', 'main.ts'), 'start', '--log-format', 'json']
    const args = ['netns', 'exec', this.#namespace, ...node, '--config', join(this.#dir, 'node.properties')]
    this.#child = spawn('ip', args, { stdio: ['ignore', log, log], cwd: this.#dir })
    closeSync(log)
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child !== undefined) await end(child, signal, STOP_LIMIT_MS)
  }

  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child?.kill('SIGCONT')
  }

  unplug(): void {
    run(`ip link set ${this.#cable} down`)
  }

  plugIn(): void {
    run(`ip link set ${this.#cable} up`)
  }

  mute(others: readonly Namespace[]): void {
    for (const { host } of others) this.#inside(`ip neigh replace ${host} lladdr ${NOWHERE} dev eth0 nud permanent`)
  }

  unmute(others: readonly Namespace[]): void {
    for (const { host } of others) this.#inside(`ip neigh del ${host} dev eth0`)
  }

  fill(): void {
    spawnSync('dd', ['if=/dev/zero', `of=${join(this.#disk, 'filler')}`, 'bs=1M'])
  }

  drain(): void {
    rmSync(join(this.#disk, 'filler'))
  }

  hang(): void {
    run(`fsfreeze -f ${this.#disk}`)
  }

  unhang(): void {
    spawnSync('fsfreeze', ['-u', this.#disk])
  }

  break(): void {
    run(`mount -o remount,ro,force ${this.#disk}`)
  }

  mend(): void {
    run(`mount -o remount,rw ${this.#disk}`)
  }

  remove(): void {
    this.unhang()
    this.#child?.kill('SIGKILL')
    spawnSync('umount', ['-l', this.#disk])
    spawnSync('ip', ['netns', 'del', this.#namespace])
    spawnSync('ip', ['link', 'del', this.#cable])
  }
}

export class Namespaces implements Machines {
  readonly all: readonly Namespace[]
  readonly world = world
  readonly #dir: string

  constructor(settings: Settings) {
    this.#dir = mkdtempSync(join(tmpdir(), 'tidemark-machines-'))
    this.all = [1, 2, 3].map(id => new Namespace(id, this.#dir))
    process.on('exit', () => this.#remove())
    run(`ip link add ${BRIDGE} type bridge`)
    run(`ip addr add ${NET}.254/24 dev ${BRIDGE}`)
    run(`ip link set ${BRIDGE} up`)
    const voters = this.all.map(({ id, host }) => `${id}@${host}:${PORT + 1}`).join(',')
    for (const machine of this.all)
      machine.prepare({ 'process.roles': 'broker,controller', 'controller.quorum.voters': voters, ...settings })
  }

  get bootstrap(): string {
    return this.all.map(({ host }) => `${host}:${PORT}`).join(',')
  }

  wait(ms: number): Promise<void> {
    return delay(ms)
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      this.#remove()
    }
  }

  #remove(): void {
    for (const machine of this.all) machine.remove()
    spawnSync('ip', ['link', 'del', BRIDGE])
    rmSync(this.#dir, { recursive: true, force: true })
  }
}
