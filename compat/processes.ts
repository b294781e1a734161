/** Servers as processes of this machine: where they are, the ports that they get, how they end. Also for the bench. */
import type { ChildProcess } from 'node:child_process'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const root: string = dirname(dirname(fileURLToPath(import.meta.url)))
export const peer: string = join(root, '..', 'shared', 'peer')

export type ServerKind = 'tidemark' | 'kafka'

/** A port whose successor is free as well: the controller takes it. Below the ports that clients are given. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 21_000 + Math.floor(Math.random() * 10_000)
    if ((await isFree(port)) && (await isFree(port + 1))) return port
  }
}

export function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** @returns the exit code, or the signal that it ended by: SIGKILL when it takes longer than `limitMs`. */
export async function end(child: ChildProcess, signal: NodeJS.Signals, limitMs: number): Promise<number | string> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode ?? child.signalCode ?? 0
  const gone = new Promise<number | string>(resolve =>
    child.once('exit', (code, by) => resolve(code ?? by ?? 'no exit code')),
  )
  child.kill(signal)
  const limit = setTimeout(() => child.kill('SIGKILL'), limitMs)
  const result = await gone
  clearTimeout(limit)
  return result
}

/** Asks again until it holds; what is thrown meanwhile counts as not yet. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const until = performance.now() + limitMs
  let last: unknown
  for (;;) {
    try {
      if (await holds()) return
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() > until) throw new Error(`${what}: not after ${limitMs / 1000} s`, { cause: last })
    await delay(50)
  }
}
