/** What happens to one of three machines, and for how long clients miss what. */
import { alterConfigs } from '../../src/client/admin/configs.ts'
import { electLeaders } from '../../src/client/admin/elections.ts'
import { describeQuorum } from '../../src/client/admin/quorum.ts'
import { describeTopic } from '../../src/client/admin/topics.ts'
import { type Client, ClientError, connect } from '../../src/client/client.ts'
import { Consumer } from '../../src/client/consumer.ts'
import { Producer } from '../../src/client/producer.ts'
import type { Machine, Machines } from './machines.ts'
import { makeTopic } from './trial.ts'

const TOPIC = 'outages'
const PATIENCE_MS = 1_000
const PAUSE_MS = 20
const SETTLE_LIMIT_MS = 120_000
const VALUE = Buffer.alloc(1024, 'x')

interface Scene {
  /** To which it happens. It leads one of the three partitions. */
  readonly victim: Machine
  readonly others: readonly Machine[]
  wait(ms: number): Promise<void>
}

export interface Fault {
  /** Whether the victim is the active controller. */
  readonly ofController?: boolean
  /** Real machines have one clock, and no firewall. */
  readonly simulatedOnly?: boolean
  /** For how long it lasts, in milliseconds: longer than a session, an election and what clients wait add up to. */
  readonly ms: number
  begin(scene: Scene): Promise<void> | void
  end(scene: Scene): Promise<void> | void
}

type Kind = Omit<Fault, 'ofController'>

const killed: Kind = {
  ms: 12_000,
  begin: ({ victim }) => victim.kill(),
  end: ({ victim }) => victim.start(),
}
const bothKilled: Kind = {
  ms: 12_000,
  begin: async ({ victim, others: [other] }) => {
    await Promise.all([victim.kill(), other?.kill()])
  },
  end: ({ victim, others: [other] }) => {
    victim.start()
    other?.start()
  },
}
const paused: Kind = { ms: 25_000, begin: ({ victim }) => victim.pause(), end: ({ victim }) => victim.goOn() }
const cutOff: Kind = { ms: 25_000, begin: ({ victim }) => victim.unplug(), end: ({ victim }) => victim.plugIn() }
const deaf: Kind = {
  ms: 25_000,
  begin: ({ victim, others }) => {
    for (const other of others) other.mute([victim])
  },
  end: ({ victim, others }) => {
    for (const other of others) other.unmute([victim])
  },
}
const dumb: Kind = {
  ms: 25_000,
  begin: ({ victim, others }) => victim.mute(others),
  end: ({ victim, others }) => victim.unmute(others),
}
const walled: Kind = {
  ms: 40_000,
  simulatedOnly: true,
  begin: ({ victim }) => victim.wall?.(),
  end: ({ victim }) => victim.unwall?.(),
}
const full: Kind = { ms: 40_000, begin: ({ victim }) => victim.fill(), end: ({ victim }) => victim.drain() }
const hung: Kind = { ms: 25_000, begin: ({ victim }) => victim.hang(), end: ({ victim }) => victim.unhang() }
const broken: Kind = {
  ms: 40_000,
  begin: ({ victim }) => victim.break(),
  end: async ({ victim }) => {
    await victim.kill()
    victim.mend()
    victim.start()
  },
}
const jumped: Kind = {
  ms: 10_000,
  simulatedOnly: true,
  begin: ({ victim }) => victim.setClock?.(3_600_000),
  end: ({ victim }) => victim.setClock?.(0),
}
const restarted: Kind = {
  ms: 5_000,
  begin: async ({ victim }) => {
    await victim.stop()
    victim.start()
  },
  end: () => {},
}

export const FAULTS: Readonly<Record<string, Fault>> = {
  'a process killed': killed,
  'the process of the active controller killed': { ...killed, ofController: true },
  'two of three processes killed': bothKilled,
  'a clean restart': restarted,
  'a clean restart of the active controller': { ...restarted, ofController: true },
  'a process stopped (SIGSTOP)': paused,
  'the process of the active controller stopped (SIGSTOP)': { ...paused, ofController: true },
  'a machine cut off': cutOff,
  'the machine of the active controller cut off': { ...cutOff, ofController: true },
  'a machine that the other nodes do not reach, while it reaches them': deaf,
  'a machine that does not reach the other nodes, while they reach it': dumb,
  'a machine that nobody can dial, while it dials others': walled,
  'the machine of the active controller that nobody can dial': { ...walled, ofController: true },
  'a disk full': full,
  'a disk full at the active controller': { ...full, ofController: true },
  'a disk that fails': broken,
  'a disk that hangs': hung,
  'a disk that hangs at the active controller': { ...hung, ofController: true },
  'a clock an hour ahead': jumped,
}

/** Does something again and again, and notes when it succeeded. */
class Probe {
  readonly #now: () => number
  readonly #successes: number[] = []

  constructor(machines: Machines, attempt: () => Promise<unknown>) {
    this.#now = () => machines.world.clock.monotonic()
    void this.#run(machines, attempt)
  }

  async #run(machines: Machines, attempt: () => Promise<unknown>): Promise<never> {
    for (;;) {
      try {
        await attempt()
        this.#successes.push(this.#now())
      } catch (error) {
        if (!(error instanceof ClientError)) throw error
      }
      await machines.wait(PAUSE_MS)
    }
  }

  /** The longest time without a success that ends after `from`; one that has not ended ends now. */
  gap(from: number): Gap {
    let longest = { ms: 0, endsAt: from }
    let before = from
    for (const at of [...this.#successes, this.#now()]) {
      if (at >= from && at - before > longest.ms) longest = { ms: at - before, endsAt: at }
      before = at
    }
    return longest
  }
}

interface Gap {
  readonly ms: number
  readonly endsAt: number
}

/** A gap by the clock of the fault: how long it took, or how long after the end of the fault. */
export interface Felt {
  readonly ms: number
  readonly afterEnd: boolean
}

export const MEASURES = ['written where it led', 'read', 'written where it followed', 'metadata changed'] as const
export type Measured = Readonly<Record<(typeof MEASURES)[number], Felt>>

/** Clients that give up on an answer soon; any others wait for it as long as they do by default. */
const IMPATIENT = { connectTimeoutMs: 500, requestTimeoutMs: PATIENCE_MS, callTimeoutMs: PATIENCE_MS }

export class Outage {
  readonly #machines: Machines
  readonly #limits: Partial<typeof IMPATIENT>

  constructor(machines: Machines, { patient = false }: { readonly patient?: boolean } = {}) {
    this.#machines = machines
    this.#limits = patient ? {} : IMPATIENT
  }

  measure(fault: Fault): Promise<Measured> {
    return this.#machines.run(() => this.#measure(fault))
  }

  async #measure(fault: Fault): Promise<Measured> {
    const machines = this.#machines
    for (const machine of machines.all) machine.start()
    const observer = await this.#until('a broker is there', () => this.#client(), 60_000)
    // The first of each leads it.
    const placement = machines.all.map((_, index) => [0, 1, 2].map(next => ((index + next) % 3) + 1))
    await this.#until('the topic is made', () => makeTopic(observer, TOPIC, placement, { 'min.insync.replicas': '2' }))
    await this.#untilWell(observer)
    const writers = await Promise.all(machines.all.map((_, partition) => this.#writer(partition)))
    const readers = await Promise.all(machines.all.map((_, partition) => this.#reader(partition)))
    const changes = await this.#changer()
    await machines.wait(5_000)
    const { leaderId } = await describeQuorum(observer, { timeoutMs: 10_000 })
    const victim = machines.all.find(({ id }) => (id === leaderId) === (fault.ofController ?? false)) as Machine
    const others = machines.all.filter(each => each !== victim)
    const from = machines.world.clock.monotonic()
    await fault.begin({ victim, others, wait: ms => machines.wait(ms) })
    await machines.wait(fault.ms)
    const end = machines.world.clock.monotonic()
    await fault.end({ victim, others, wait: ms => machines.wait(ms) })
    await this.#untilWell(observer)
    await machines.wait(2_000)
    for (const { id, log } of process.env.OUTAGES_LOGS === undefined
      ? []
      : machines.all.map(at => ({ id: at.id, log: at.log() })))
      process.stdout.write(log.map(line => `    ${id} ${line}\n`).join(''))
    const felt = (...probes: readonly (Probe | undefined)[]): Felt => {
      const gaps = probes.map(probe => probe?.gap(from) ?? { ms: 0, endsAt: from })
      const worst = gaps.reduce((a, b) => (b.ms > a.ms ? b : a))
      const afterEnd = worst.endsAt > end && worst.endsAt - worst.ms < from + PATIENCE_MS
      return { ms: Math.round(afterEnd ? worst.endsAt - end : worst.ms), afterEnd }
    }
    const led = victim.id - 1
    return {
      'written where it led': felt(writers[led]),
      read: felt(readers[led]),
      'written where it followed': felt(...writers.filter((_, index) => index !== led)),
      'metadata changed': felt(changes),
    }
  }

  async #client(): Promise<Client> {
    const { world, bootstrap } = this.#machines
    return await connect({ world, bootstrap, retryBackoffMs: 20, retryBackoffMaxMs: 100, ...this.#limits })
  }

  async #writer(partition: number): Promise<Probe> {
    const { requestTimeoutMs } = this.#limits
    const options = requestTimeoutMs === undefined ? {} : { requestTimeoutMs }
    const producer = new Producer(await this.#client(), { lingerMs: 0, ...options })
    return new Probe(this.#machines, () => producer.send(TOPIC, [{ partition, value: VALUE }]))
  }

  /** Reads what was written long ago, so that it does not wait for writers. */
  async #reader(partition: number): Promise<Probe> {
    const consumer = new Consumer(await this.#client(), { maxWaitMs: 100, partitionBytesMax: 4096 })
    const of = { topic: TOPIC, partition }
    consumer.assign([{ ...of, from: 0 }])
    return new Probe(this.#machines, async () => {
      const records = await consumer.poll(PATIENCE_MS)
      if (records.length === 0) throw new ClientError('TIMED_OUT', 'nothing came', { retriable: true })
      consumer.seek(of, 0)
    })
  }

  async #changer(): Promise<Probe> {
    const client = await this.#client()
    let times = 0
    return new Probe(this.#machines, () => {
      const value = String(1e12 + times++)
      return alterConfigs(client, { type: 'topic', name: TOPIC }, [{ name: 'retention.ms', op: 'set', value }])
    })
  }

  async #untilWell(observer: Client): Promise<void> {
    await this.#until('all replicas are in sync, and led by the first of each', async () => {
      await electLeaders(observer, 'preferred')
      const { partitions } = await describeTopic(observer, TOPIC)
      for (const { isr, leader, partition } of partitions)
        if (isr.length < 3 || leader !== partition + 1) throw new Error(`partition ${partition} is led by ${leader}`)
    })
  }

  async #until<T>(what: string, attempt: () => Promise<T>, limitMs = SETTLE_LIMIT_MS): Promise<T> {
    const { clock } = this.#machines.world
    const until = clock.monotonic() + limitMs
    for (;;)
      try {
        return await attempt()
      } catch (error) {
        if (clock.monotonic() > until) throw new Error(`${what}: not after ${limitMs / 1000} s`, { cause: error })
        await this.#machines.wait(50)
      }
  }
}
