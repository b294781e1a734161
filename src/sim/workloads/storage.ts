import type { SeededRandom } from '#base/random.ts'
import type { Log } from '#storage/log.ts'
import { LOG_CONFIG_DEFAULT, type LogConfig } from '#storage/log-config.ts'
import { LogFolders } from '#storage/log-folders.ts'
import { StorageError } from '#storage/storage-error.ts'
import { appendNowTo, LastBatchFold, plainBatch } from '#storage/testing/rig.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import type { Disk, File } from '#world/world.ts'
import { holds, PartitionLogChecker } from '../checkers/partition-log.ts'
import { breakDisk, healDisk } from '../faults/disk.ts'
import type { Workload } from '../kernel.ts'

const FOLDER = '/data'
const TOPIC_ID = 'AAAAAAAAAAAAAAAAAAAAAQ'
const LIVES = 5
/** A log whose disk works again takes writes within this. */
const CURE_MS_MAX = 60_000

/** `ack-unsynced` answers before the sync, `ack-early` before the write, and so on: see where each is asked for. */
const MUTANTS = [
  'sync-lies',
  'ack-unsynced',
  'ack-early',
  'bit-flip',
  'gap',
  'start-refused',
  'never-cured',
  'stale-fold',
]

/**
 * One log, several lives of its process: batches are appended, read and flushed while the disk is slow, full, failing or
 * hanging, and each life ends in a clean stop, a dead process or a power cut, at times in the middle of a start.
 */
export const storage: Workload = {
  name: 'storage',
  mutants: MUTANTS,
  async run(simulation, mutant) {
    const { random } = simulation
    const node = simulation.node('broker')
    const syncsBeforeAck = mutant === 'ack-unsynced' || random.chance(0.5)
    const checker = new PartitionLogChecker(syncsBeforeAck)
    const config: LogConfig = {
      ...LOG_CONFIG_DEFAULT,
      segmentBytes: random.between(1000, 30_000),
      indexIntervalBytes: random.pick([100, 1000, 4096]),
      segmentIndexBytes: random.pick([120, 4096]),
      flushMessages: syncsBeforeAck && mutant !== 'ack-unsynced' ? 1 : Number.POSITIVE_INFINITY,
      flushMs: random.chance(0.5) ? Number.POSITIVE_INFINITY : random.between(1, 100),
    }
    // The operator's folder; what is made inside of it is the product's to keep.
    await node.world.disk.makeFolder(FOLDER)
    await node.world.disk.syncFolder('/')
    node.disk.faults.syncLies = mutant === 'sync-lies'
    for (let life = 0; life < LIVES; life++) {
      await new Life(simulation, node, config, checker, mutant).run()
    }
  },
}

/** From a start of the process to its end. */
class Life {
  readonly #simulation: Simulation
  readonly #random: SeededRandom
  readonly #node: FakeNode
  readonly #config: LogConfig
  readonly #checker: PartitionLogChecker
  readonly #mutant: string | undefined
  readonly #fold = new LastBatchFold()
  #over = false
  #broken: unknown
  /** Every promise of this life that is not awaited ends here when it fails. */
  readonly #fails = (error: unknown): void => {
    this.#broken ??= error
  }

  constructor(
    simulation: Simulation,
    node: FakeNode,
    config: LogConfig,
    checker: PartitionLogChecker,
    mutant: string | undefined,
  ) {
    this.#simulation = simulation
    this.#random = simulation.random
    this.#node = node
    this.#config = config
    this.#checker = checker
    this.#mutant = mutant
  }

  async run(): Promise<void> {
    const random = this.#random
    const starting = this.#start()
    if (random.chance(0.15)) {
      // The next start finds a start that was interrupted.
      const dies = this.#simulation.wait(random.fraction() * 8).then(() => undefined)
      if ((await Promise.race([starting, dies])) === undefined) {
        starting.catch(() => {})
        this.#kill(undefined)
        return
      }
    }
    const { folders, log } = await starting
    const found = await this.#checker.recovered(log)
    this.#checkFold(found)
    this.#checker.durable(log.durableOffset)

    const working = [this.#produce(log), this.#read(log), this.#flush(log), this.#disturb(log)]
    for (const work of working) work.catch(this.#fails)
    const end = this.#simulation.schedule.now / 1000 + random.between(5, random.chance(0.1) ? 5000 : 300)
    while (this.#simulation.schedule.now / 1000 < end && this.#broken === undefined) await this.#simulation.wait(5)
    if (this.#broken !== undefined) throw this.#broken
    if (random.chance(0.25)) {
      this.#over = true
      await Promise.all(working)
      await this.#cured(log)
      if (this.#broken !== undefined) throw this.#broken
      await folders.close()
      this.#checker.durable(log.endOffset)
    }
    this.#kill(log)
  }

  async #start(): Promise<{ folders: LogFolders; log: Log }> {
    const { clock, random, log: logger, disk } = this.#node.world
    const world = {
      clock,
      random,
      log: logger,
      disk: this.#mutant === 'bit-flip' ? flipping(disk, this.#random) : disk,
    }
    healDisk(this.#node.disk)
    if (this.#mutant === 'start-refused') this.#node.disk.faults.readFails = 0.02
    try {
      const folders = await LogFolders.open({ ...world, paths: [FOLDER], nodeId: 1, checkpointEveryMs: 50 })
      const { log } = await folders.open({
        topic: 'topic',
        topicId: TOPIC_ID,
        partition: 0,
        config: this.#config,
        fold: this.#fold,
      })
      return { folders, log }
    } catch (error) {
      throw new Error(`the start was refused: ${(error as Error).stack}`)
    } finally {
      this.#node.disk.faults.readFails = 0
    }
  }

  #kill(log: Log | undefined): void {
    this.#over = true
    if (log !== undefined) this.#checker.durable(log.durableOffset)
    if (this.#random.chance(0.5)) {
      this.#node.crash()
    } else {
      this.#checker.powerCut()
      this.#node.powerCut()
    }
  }

  /** What the log told of producers when it was opened is what its batches tell. */
  #checkFold(found: readonly Buffer[]): void {
    const expected = new LastBatchFold()
    for (const bytes of this.#mutant === 'stale-fold' ? found.slice(0, -1) : found) expected.apply(bytes, 0)
    holds(
      JSON.stringify(expected.snapshot()) === JSON.stringify(this.#fold.snapshot()),
      `producers are not restored: ${JSON.stringify(this.#fold.snapshot())} for ${JSON.stringify(expected.snapshot())}`,
    )
  }

  async #produce(log: Log): Promise<void> {
    const random = this.#random
    while (!this.#over) {
      if (log.failure !== undefined) {
        await this.#simulation.wait(random.between(1, 100))
        continue
      }
      const base = log.nextOffset + (this.#mutant === 'gap' && random.chance(0.02) ? 1 : 0)
      const size = random.chance(0.1) ? 2000 : random.between(1, 300)
      const bytes = plainBatch(base, random.between(1, 5), size, this.#node.world.clock.now(), {
        producerId: random.between(1, 3),
        producerEpoch: 0,
        baseSequence: base,
        leaderEpoch: 0,
      })
      const attempt = this.#checker.attempted(bytes)
      if (this.#mutant === 'ack-early') this.#checker.acknowledged(attempt)
      const now = appendNowTo({ log, fold: this.#fold }, bytes) ?? Promise.resolve()
      const written = now.then(
        () => this.#checker.acknowledged(attempt),
        error => {
          if (!(error instanceof StorageError)) this.#fails(error)
        },
      )
      if (random.chance(0.5)) await written
      if (random.chance(0.4)) await this.#simulation.wait(random.fraction() * 20)
    }
  }

  async #read(log: Log): Promise<void> {
    const random = this.#random
    while (!this.#over) {
      await this.#simulation.wait(random.fraction() * 10)
      const { endOffset } = log
      if (endOffset === 0) continue
      const from = random.chance(0.5) ? random.below(endOffset) : endOffset - 1
      try {
        const range = await log.read(from, random.below(5000), endOffset)
        // Also while it cuts off what a failed write left.
        holds(range !== undefined, `offset ${from} of ${endOffset} cannot be read`)
        this.#checker.read(await log.readBytes(range), from)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
      }
    }
  }

  async #flush(log: Log): Promise<void> {
    while (!this.#over) {
      await this.#simulation.wait(this.#random.between(1, 400))
      try {
        await log.flush()
        this.#checker.durable(log.durableOffset)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
      }
    }
  }

  async #disturb(log: Log): Promise<void> {
    const random = this.#random
    while (!this.#over) {
      await this.#simulation.wait(random.between(1, 200))
      if (random.chance(0.5) || this.#over) continue
      this.#node.trace('disk', 0, 0, breakDisk(this.#node.disk, random))
      await this.#simulation.wait(random.between(1, 300))
      if (this.#mutant !== 'never-cured') healDisk(this.#node.disk)
      await this.#cured(log)
    }
  }

  async #cured(log: Log): Promise<void> {
    const { schedule } = this.#simulation
    for (const began = schedule.now; log.failure !== undefined; ) {
      await this.#simulation.wait(100)
      holds(
        schedule.now - began < CURE_MS_MAX * 1000,
        `the disk works and the log refuses writes for ${CURE_MS_MAX} ms: ${log.failure?.message}`,
      )
    }
  }
}

/** A disk that at times reads a bit wrong. */
function flipping(disk: Disk, random: SeededRandom): Disk {
  return {
    ...disk,
    open: async (path, how) => {
      const file: File = await disk.open(path, how)
      return {
        size: () => file.size(),
        read: async (into, position) => {
          const count = await file.read(into, position)
          if (count > 0 && random.chance(0.02)) into[random.below(count)] = 0xaa
          return count
        },
        write: (parts, position) => file.write(parts, position),
        writeNow: (parts, position) => file.writeNow(parts, position),
        truncate: size => file.truncate(size),
        sync: () => file.sync(),
        close: () => file.close(),
      }
    },
  }
}
