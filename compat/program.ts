/** Runs a suite's program against a server and hears its lines (scenario.ts says which). */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { root, type Server } from './server.ts'

/** A suite may take this long, in milliseconds; then it has failed. */
const LIMIT_MS = 150_000

export type Tell = (result: 'ok' | 'failed' | 'skipped', name: string, why?: string) => void

export async function perform(suite: string, command: readonly string[], server: Server, tell: Tell): Promise<void> {
  const [program, ...args] = command as [string, ...string[]]
  const child = spawn(program, [...args, server.address], { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] })
  const onExit = (): void => void child.kill('SIGKILL')
  process.on('exit', onExit)
  let late = false
  const limit = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
  }, LIMIT_MS)
  let failed = 0
  const said: string[] = []
  let restarting: Promise<void> | undefined
  const lines = createInterface({ input: child.stdout })
  lines.on('line', line => {
    if (line === 'restart') {
      restarting = server.restart().then(
        () => void child.stdin.write('restarted\n'),
        (error: Error) => {
          failed++
          tell('failed', `${suite} › restart`, error.message.replaceAll('\n', ' ⏎ '))
          child.kill('SIGKILL')
        },
      )
      return
    }
    const [, result, name, why] = /^(ok|failed|skipped) ([^:]+)(?:: (.*))?$/.exec(line) ?? []
    if (result === 'ok' || result === 'failed' || result === 'skipped') {
      if (result === 'failed') failed++
      tell(result, `${suite} › ${name}`, why)
    } else said.push(line)
  })
  const status = await new Promise<number | string>(resolve => {
    child.on('error', error => resolve(error.message))
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'no exit code'))
  })
  clearTimeout(limit)
  process.off('exit', onExit)
  await restarting
  if (failed > 0 || late)
    process.stdout.write(
      said
        .slice(-20)
        .map(line => `    ${suite} | ${line}\n`)
        .join(''),
    )
  if (late) tell('failed', suite, `stopped after ${LIMIT_MS / 1000} s`)
  else if (status !== 0 && failed === 0) tell('failed', suite, `ended with ${status}`)
}
