/** CPU profiles of our server by its inspector: one per workload, without start-up and warm-up. */
import { writeFileSync } from 'node:fs'
import { aligned } from './table.ts'

/** Microseconds between two looks at the stack. */
const INTERVAL_US = 500
const ANSWER_LIMIT_MS = 60_000
const SHOWN = 25

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
}

/** The Chrome DevTools format of a .cpuprofile. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  /** Microseconds since the sample before. */
  readonly timeDeltas: readonly number[]
}

export class Profiler {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (message: { result?: unknown; error?: { message: string } }) => void>()
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as { id?: number; result?: unknown; error?: { message: string } }
      if (message.id !== undefined) this.#waiting.get(message.id)?.(message)
    })
  }

  static async open(url: string): Promise<Profiler> {
    const socket = new WebSocket(url)
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => resolve())
      socket.addEventListener('error', () => reject(new Error(`no inspector at ${url}`)))
    })
    const profiler = new Profiler(socket)
    await profiler.#ask('Profiler.enable')
    await profiler.#ask('Profiler.setSamplingInterval', { interval: INTERVAL_US })
    return profiler
  }

  async start(): Promise<void> {
    await this.#ask('Profiler.start')
  }

  async stop(file: string): Promise<CpuProfile> {
    const { profile } = (await this.#ask('Profiler.stop')) as { profile: CpuProfile }
    writeFileSync(file, JSON.stringify(profile))
    return profile
  }

  close(): void {
    this.#socket.close()
  }

  #ask(method: string, params: object = {}): Promise<unknown> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const limit = setTimeout(() => reject(new Error(`no answer to ${method}`)), ANSWER_LIMIT_MS)
      this.#waiting.set(id, ({ result, error }) => {
        clearTimeout(limit)
        this.#waiting.delete(id)
        if (error === undefined) resolve(result)
        else reject(new Error(`${method}: ${error.message}`))
      })
      this.#socket.send(JSON.stringify({ id, method, params }))
    })
  }
}

/** The functions that took most time themselves. "(program)" is native code: system calls, mostly. */
export function summary({ nodes, samples, timeDeltas }: CpuProfile, root: string): string {
  const byId = new Map(nodes.map(node => [node.id, node]))
  const selfUs = new Map<string, number>()
  let busyUs = 0
  let allUs = 0
  samples.forEach((id, i) => {
    const us = timeDeltas[i] ?? 0
    const frame = byId.get(id)?.callFrame
    allUs += us
    if (frame === undefined || frame.functionName === '(idle)') return
    busyUs += us
    const file = frame.url.replace(`file://${root}/`, '')
    const where = file === '' ? '' : `${file}:${frame.lineNumber + 1}`
    const name = `${frame.functionName || '(anonymous)'}\t${where}`
    selfUs.set(name, (selfUs.get(name) ?? 0) + us)
  })
  const most = [...selfUs].sort((a, b) => b[1] - a[1]).slice(0, SHOWN)
  const lines = most.map(([name, us]) => {
    const [functionName = '', where = ''] = name.split('\t')
    return [`  ${functionName}`, where, `${((us / busyUs) * 100).toFixed(1)} %`, `${(us / 1e6).toFixed(2)} s`]
  })
  const busy = `  busy ${(busyUs / 1e6).toFixed(2)} s of ${(allUs / 1e6).toFixed(2)} s; by time in the function itself:`
  return `${busy}\n${aligned(lines)}`
}
