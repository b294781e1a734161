/** Many partitions and many consumers that do nothing: what they cost while nothing happens. */
import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type From, root, Server, type ServerKind } from './server.ts'
import { aligned } from './table.ts'
import { createTopics, type NewTopic, served } from './topics.ts'

interface Options {
  readonly kind: ServerKind
  readonly from: From
  readonly quick: boolean
  /** Hears of the server, to remove it however this ends. */
  track(server: Server): Server
  readonly inspect: boolean
  /** Does the work, and takes a profile of the server meanwhile where one is wanted. */
  profiled<T>(name: string, server: Server, work: () => Promise<T>): Promise<T>
}

interface Measured {
  readonly what: string
  readonly value: string
  readonly limit?: string
  readonly ok?: boolean
}

/** What consumers wait for news at most: `fetch.max.wait.ms` of the Java client by default, and a patient one. */
const MAX_WAITS_MS = [500, 5_000]
const READY_LIMIT_MS = 60_000
const SETTLE_MS = 5_000

/** @returns whether all limits were kept. */
export async function scale({ kind, from, quick, inspect, track, profiled }: Options): Promise<boolean> {
  const topics: NewTopic[] = Array.from({ length: quick ? 10 : 100 }, (_, i) => ({
    name: `scale-${i}`,
    partitions: 100,
  }))
  const partitions = topics.length * 100
  const consumers = quick ? 200 : 2_000
  const idleSeconds = quick ? 5 : 30
  const measured: Measured[] = []
  const note = (what: string, value: string, limit?: string, ok?: boolean): void => {
    measured.push({ what, value, ...(limit === undefined ? {} : { limit }), ...(ok === undefined ? {} : { ok }) })
    process.stdout.write(`  ${what}: ${value}\n`)
  }
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`

  // A session each: with the default of 1,000, half of them would send their whole list each time.
  const settings = { 'max.incremental.fetch.session.cache.slots': String(consumers * 2) }
  const server = track(await Server.create({ kind, from, inspect, settings }))
  note('start, empty folder', seconds(await server.start()))
  note('resident memory, no topics', `${server.residentMiB().toFixed(0)} MiB`)

  let began = performance.now()
  await profiled('scale-create', server, () => createTopics(server.port, topics, 10))
  const createdMs = performance.now() - began
  note(`${partitions} partitions created and served`, seconds(createdMs), '< 30 s', createdMs < 30_000)
  note('resident memory', `${server.residentMiB().toFixed(0)} MiB`)

  await delay(SETTLE_MS)
  const idle = await cpuShare(server, idleSeconds)
  note(`CPU, idle for ${idleSeconds} s`, percent(idle), '< 1 %', idle < 0.01)

  note('clean stop', seconds(await server.stop()))
  began = performance.now()
  await server.start()
  await served(server.port, topics)
  const restartedMs = performance.now() - began
  note('started again, every partition served', seconds(restartedMs), '< 5 s', restartedMs < 5_000)
  note('resident memory', `${server.residentMiB().toFixed(0)} MiB`)
  await delay(SETTLE_MS)
  const idleAgain = await cpuShare(server, idleSeconds)
  note(`CPU, idle for ${idleSeconds} s`, percent(idleAgain), '< 1 %', idleAgain < 0.01)

  for (const maxWaitMs of MAX_WAITS_MS) {
    const driver = await IdleConsumers.start(server.port, consumers, maxWaitMs, topics)
    try {
      // The first fetches of all fall together; after one more wait each, they are as they stay.
      await delay(Math.max(SETTLE_MS, maxWaitMs + 1_000))
      const before = driver.fetches
      const share = await profiled(`scale-wait-${maxWaitMs}`, server, () => cpuShare(server, idleSeconds))
      if (driver.failed !== undefined) throw new Error(`the consumers: ${driver.failed}`)
      const rate = (driver.fetches - before) / idleSeconds
      const what = `${consumers} consumers idle, max wait ${maxWaitMs} ms: CPU`
      note(what, `${percent(share)} at ${rate.toFixed(0)} fetches/s`, '< 3 %', share < 0.03)
      if (driver.withoutSession > 0) note('  fetches without a session', String(driver.withoutSession))
    } finally {
      driver.stop()
    }
    await delay(1_000)
  }
  note('resident memory', `${server.residentMiB().toFixed(0)} MiB`)
  const lines = measured.map(({ what, value, limit = '', ok }) => {
    return [what, '', value, limit, ok === undefined ? '' : ok ? 'ok' : 'missed']
  })
  process.stdout.write(`\n${aligned(lines)}\n`)
  return measured.every(({ ok }) => ok !== false)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`
}

/** Of one core. */
async function cpuShare(server: Server, seconds: number): Promise<number> {
  const before = server.cpuSeconds()
  const began = performance.now()
  await delay(seconds * 1000)
  return (server.cpuSeconds() - before) / ((performance.now() - began) / 1000)
}

interface FromConsumers {
  readonly ready?: number
  readonly fetches?: number
  readonly withoutSession?: number
  readonly failed?: string
}

class IdleConsumers {
  readonly #child: ChildProcess
  readonly #onExit = (): void => void this.#child.kill('SIGKILL')
  fetches = 0
  withoutSession = 0
  failed: string | undefined

  private constructor(child: ChildProcess) {
    this.#child = child
    process.on('exit', this.#onExit)
  }

  static async start(port: number, count: number, maxWaitMs: number, topics: readonly NewTopic[]) {
    const args = [String(port), String(count), String(maxWaitMs), JSON.stringify(topics)]
    const driver = new IdleConsumers(fork(join(root, 'bench', 'idle-consumers.ts'), args))
    await new Promise<void>((resolve, reject) => {
      const limit = setTimeout(() => reject(new Error('the consumers are not ready')), READY_LIMIT_MS)
      driver.#child.on('message', (message: FromConsumers) => {
        driver.failed = message.failed ?? driver.failed
        driver.fetches = message.fetches ?? driver.fetches
        driver.withoutSession = message.withoutSession ?? driver.withoutSession
        if (message.ready === undefined) return
        clearTimeout(limit)
        resolve()
      })
      driver.#child.on('exit', () => {
        driver.failed ??= 'their process ended'
        reject(new Error(`the consumers: ${driver.failed}`))
      })
    })
    return driver
  }

  stop(): void {
    process.off('exit', this.#onExit)
    this.#child.kill('SIGKILL')
  }
}
