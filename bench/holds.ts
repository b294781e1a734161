import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ZERO_UUID } from '#base/uuid.ts'
import { API, type Api } from '#protocol/apis.ts'
import { encodeRequestFrame } from '#protocol/frames.ts'
import { type Field, type Fields, includesVersion } from '#protocol/schema.ts'
import { freePort } from '../compat/processes.ts'

/**
 * How long the largest requests that a socket can send keep a node from everybody else:
 * `node bench/holds.ts [--elements 2000000] [--only Metadata]`. Every array of every request that a broker serves is
 * filled with names that exist, that exist nowhere, and with the longest; meanwhile another connection asks for
 * ApiVersions. What is shown is the longest time that it waits, and how much processor time of the node's thread went by
 * in such a wait at most: what others do on the machine does not count in that.
 */
const { values } = parseArgs({
  options: {
    elements: { type: 'string', default: '2000000' },
    only: { type: 'string' },
    above: { type: 'string', default: '0' },
  },
})
const ELEMENTS = Number(values.elements)
const FRAME_BYTES_MAX = 100_000_000
const LONG = 'l'.repeat(249)

type Names = 'known' | 'unknown' | 'long'

interface Ask {
  readonly what: string
  readonly frame: Buffer
}

function filled(fields: Fields, version: number, path: readonly string[], count: number, names: Names): object {
  let next = 0
  const fill = (fields: Fields, path: readonly string[], inArray: boolean): Record<string, unknown> => {
    const message: Record<string, unknown> = {}
    for (const [name, field] of Object.entries(fields)) {
      if (!includesVersion(field.versions, version) || field.tag !== undefined) continue
      message[name] = value(name, field, path[0] === name ? path.slice(1) : undefined, inArray)
    }
    return message
  }
  const value = (name: string, field: Field, rest: readonly string[] | undefined, inArray: boolean): unknown => {
    switch (field.type) {
      case 'array': {
        // The one that is asked for is long, what it stands in has one element each, and others are empty.
        const length =
          rest === undefined
            ? inArray && NEEDED.has(name)
              ? 1
              : 0
            : rest.length === 0
              ? count
              : rest[0] === '*'
                ? count
                : 1
        const below = rest?.[0] === '*' ? rest.slice(1) : rest
        return Array.from({ length }, () =>
          field.fields === undefined
            ? primitive(name, field.element ?? 'int32', true)
            : fill(field.fields, below ?? [], true),
        )
      }
      case 'struct':
        return field.nullable === undefined ? fill(field.fields as Fields, rest ?? [], inArray) : null
      default:
        return primitive(name, field.type, inArray, field)
    }
  }
  const primitive = (name: string, type: string, inArray: boolean, field?: Field): unknown => {
    switch (type) {
      case 'string':
        if (inArray && /name|topic|id|key|group/i.test(name)) {
          if (names === 'known') return 'known'
          return names === 'long' ? `${LONG.slice(0, 240)}${next++}` : `t${next++}`
        }
        return field?.nullable === undefined ? ((field?.default as string) ?? 'known') : null
      case 'uuid':
        return names !== 'unknown' ? ZERO_UUID : randomBytes(16).toString('base64url')
      case 'bool':
        return name === 'allowAutoTopicCreation' || name.startsWith('include')
      case 'bytes':
      case 'records':
        return Buffer.alloc(0)
      case 'int8':
        return /resourceType/.test(name) ? (names === 'known' ? 4 : 2) : 0
      case 'int32':
        if (/partition(s|Index|Indexes)?$|partitionIndexes/.test(name))
          return names === 'known' ? 0 : next++ % 1_000_000
        return /timeout/i.test(name)
          ? 30_000
          : /numPartitions|count/.test(name)
            ? 1
            : typeof field?.default === 'number'
              ? field.default
              : 0
      case 'int16':
        return /replicationFactor|acks/.test(name) ? 1 : 0
      default:
        return typeof field?.default === 'number' ? field.default : 0
    }
  }
  return fill(fields, path, false)
}

/** Arrays that must have one element for what they stand in to be looked at. */
const NEEDED = new Set(['partitions', 'partitionIndexes'])

/** Paths of arrays: `a` is a long array, `a/*` has the elements of the array above as many, of one inner element each. */
function* arrays(fields: Fields, version: number, above: readonly string[] = []): Generator<readonly string[]> {
  for (const [name, field] of Object.entries(fields)) {
    if (!includesVersion(field.versions, version) || field.tag !== undefined) continue
    if (field.type === 'array') {
      yield [...above, name]
      if (field.fields !== undefined) yield* arrays(field.fields, version, [...above, name])
    } else if (field.type === 'struct' && field.fields !== undefined)
      yield* arrays(field.fields, version, [...above, name])
  }
}

function* asks(): Generator<Ask> {
  for (const api of Object.values(API) as Api[]) {
    if (!(api.request.listeners ?? []).includes('broker')) continue
    if (values.only !== undefined && !values.only.split(',').includes(api.name)) continue
    const version = api.versions.last
    for (const path of arrays(api.request.fields, version)) {
      for (const names of ['unknown', 'known', 'long'] as const) {
        let count = names === 'long' ? Math.min(ELEMENTS, Math.floor(FRAME_BYTES_MAX / 300)) : ELEMENTS
        for (;;) {
          const body = filled(api.request.fields, version, path, count, names)
          const parts = encodeRequestFrame(
            api as never,
            version,
            { correlationId: 1, clientId: 'holds' },
            body as never,
          )
          const frame = Buffer.concat(parts.filter(part => Buffer.isBuffer(part)))
          if (frame.length <= FRAME_BYTES_MAX) {
            yield {
              what: `${api.name} v${version} ${path.join('.')} × ${count} ${names}, ${(frame.length / 1e6).toFixed(1)} MB`,
              frame,
            }
            break
          }
          count = Math.floor((count * FRAME_BYTES_MAX * 0.99) / frame.length)
        }
      }
    }
  }
}

async function dial(port: number): Promise<Socket> {
  for (let attempt = 0; ; attempt++) {
    const socket = connect(port, '127.0.0.1')
    const open = await new Promise<boolean>(resolve => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    if (open) return socket.on('error', () => {})
    if (attempt > 300) throw new Error('the node does not listen')
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

/** Resolves with the size of the answer, or undefined when the connection was closed instead. */
function answer(socket: Socket): Promise<number | undefined> {
  return new Promise(resolve => {
    let head = Buffer.alloc(0)
    let left = -1
    let size = 0
    const take = (chunk: Buffer) => {
      if (left < 0) {
        head = Buffer.concat([head, chunk])
        if (head.length < 4) return
        size = head.readInt32BE(0)
        left = size - (head.length - 4)
      } else left -= chunk.length
      if (left <= 0) done(size)
    }
    const done = (result: number | undefined) => {
      socket.off('data', take)
      socket.off('close', closed)
      resolve(result)
    }
    const closed = () => done(undefined)
    socket.on('data', take)
    socket.on('close', closed)
  })
}

/** Milliseconds that the node's thread was on a processor. */
function cpuMs(pid: number | undefined): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')
  return Number(nanoseconds) / 1e6
}

function smallFrame(api: Api, version: number, body: object): Buffer {
  const parts = encodeRequestFrame(api as never, version, { correlationId: 1, clientId: 'probe' }, body as never)
  return Buffer.concat(parts.filter(part => Buffer.isBuffer(part)))
}

const folder = await mkdtemp(join(tmpdir(), 'tidemark-holds-'))
const port = await freePort()
const properties = join(folder, 'server.properties')
await writeFile(properties, `listeners=PLAINTEXT://127.0.0.1:${port}\nlog.dirs=${join(folder, 'data')}\n`)
let node: ChildProcess | undefined
let died = false
try {
  node = spawn(process.execPath, ['src/main.ts', 'start', '--config', properties], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  node.stderr?.on('data', chunk => {
    said = (said + chunk).slice(-4000)
  })
  node.once('exit', (code, signal) => {
    died = true
    process.stdout.write(`the node ended: ${code ?? signal}\n${said}\n`)
  })
  const probe = await dial(port)
  const create = smallFrame(API.CreateTopics as unknown as Api, 7, {
    topics: [{ name: 'known', numPartitions: 1, replicationFactor: 1 }],
    timeoutMs: 10_000,
  })
  probe.write(create)
  await answer(probe)
  const ping = smallFrame(API.ApiVersions as unknown as Api, 3, {
    clientSoftwareName: 'holds',
    clientSoftwareVersion: '1',
  })
  const rows: { held: number; line: string }[] = []
  for (const { what, frame } of asks()) {
    if (died) break
    const socket = await dial(port)
    const started = performance.now()
    let over = false
    const answered = answer(socket).then(size => {
      over = true
      return size
    })
    socket.write(frame)
    let held = 0
    let heldCpu = 0
    while (!over && !died && performance.now() - started < 8000) {
      const asked = performance.now()
      const askedCpu = cpuMs(node.pid)
      probe.write(ping)
      if ((await answer(probe)) === undefined) break
      held = Math.max(held, performance.now() - asked)
      if (!died) heldCpu = Math.max(heldCpu, cpuMs(node.pid) - askedCpu)
      await new Promise(resolve => setTimeout(resolve, 2))
    }
    const took = performance.now() - started
    const size = over ? await answered : 'none in 8 s'
    socket.destroy()
    const line = `${heldCpu.toFixed(0).padStart(6)} ms of CPU in ${held.toFixed(0).padStart(6)} ms held, ${took.toFixed(0).padStart(6)} ms in all, answer ${size ?? 'closed'}: ${what}`
    if (held >= Number(values.above)) process.stdout.write(`${line}\n`)
    rows.push({ held: heldCpu, line })
  }
  rows.sort((a, b) => b.held - a.held)
  process.stdout.write(
    `\nlongest of ${rows.length}:\n${rows
      .slice(0, 12)
      .map(({ line }) => line)
      .join('\n')}\n`,
  )
  probe.destroy()
} finally {
  node?.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
}
