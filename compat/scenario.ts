/**
 * What every suite has in common. A suite is a program that is given a server's address and reports by lines:
 *
 *   ok NAME                  a scenario passed
 *   failed NAME: message     it did not
 *   skipped NAME: reason     this client cannot do it
 *   restart                  asks for the server to be killed and started on the same data; answered by a line on stdin
 */
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'

export const address: string = process.argv[2] ?? '127.0.0.1:9092'

/** Different in every run, so that runs can follow each other on one server. */
export const unique: string = process.pid.toString(36) + Date.now().toString(36)

export const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const

/** One scenario may take this long, in milliseconds. */
const LIMIT_MS = 60_000

const oneLine = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ⏎ ').slice(0, 1_500)

/** An error with its causes and the errors that it gathers. */
function whole(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner = [
    ...(error instanceof AggregateError ? error.errors : []),
    ...(error.cause === undefined ? [] : [error.cause]),
  ]
  return [`${error.name}: ${error.message}`, ...inner.map(whole)].join(' ⏎ by ')
}

export async function scenario(name: string, perform: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${LIMIT_MS / 1000} s`)), LIMIT_MS)
  })
  try {
    await Promise.race([perform(), limit])
    process.stdout.write(`ok ${name}\n`)
  } catch (error) {
    const text = whole(error)
    process.stdout.write(`failed ${name}: ${oneLine(text)}\n`)
    if (process.env.COMPAT_STACK !== undefined) process.stderr.write(`${error instanceof Error ? error.stack : text}\n`)
    process.exitCode = 1
  } finally {
    clearTimeout(timer)
  }
}

/** Ends the program: clients leave timers behind that are of no interest here. */
export function finish(): never {
  process.exit()
}

/** Resolves when the server was killed and answers again. */
export function restartServer(): Promise<void> {
  const lines = createInterface({ input: process.stdin })
  process.stdout.write('restart\n')
  return new Promise((resolve, reject) => {
    lines.once('line', () => {
      resolve()
      lines.close()
      process.stdin.pause()
    })
    lines.once('close', () => reject(new Error('nobody answers the request for a restart')))
  })
}

export interface Pair {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly (readonly [string, Buffer])[]
}

/** Records of every shape: keys and values that are there, empty and null; headers with text and any bytes. */
export function recordsOfEveryShape(count = 60): Pair[] {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  const values = [
    Buffer.from('a value'),
    Buffer.alloc(0),
    null,
    bytes,
    Buffer.from('ñandú — 記録'),
    Buffer.alloc(5_000, 'x'),
  ]
  return Array.from({ length: count }, (_, i) => ({
    key: i % 4 === 3 ? null : i % 4 === 2 ? Buffer.alloc(0) : Buffer.from(`key-${i}`),
    value: values[i % values.length] as Buffer | null,
    headers:
      i % 3 === 0
        ? []
        : ([
            ['trace', Buffer.from(`t-${i}`)],
            ['bytes', bytes],
            ['empty', Buffer.alloc(0)],
          ] as const),
  }))
}

export function assertSameRecords(actual: readonly Pair[], expected: readonly Pair[]): void {
  assert.equal(actual.length, expected.length, `${actual.length} records came back of ${expected.length}`)
  const text = ({ key, value, headers }: Pair): string =>
    JSON.stringify([
      key?.toString('base64') ?? null,
      value?.toString('base64') ?? null,
      headers.map(([name, bytes]) => [name, bytes.toString('base64')]),
    ])
  actual.forEach((record, i) => {
    assert.equal(text(record), text(expected[i] as Pair), `record ${i} came back changed`)
  })
}

export async function until(what: string, holds: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`${what}: not after ${limitMs / 1000} s`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
