import type { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import { listTopics } from '#client/admin/topics.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import { Administering } from '../actors/administering.ts'
import { Consuming } from '../actors/consuming.ts'
import { FOLDER, Member } from '../actors/member.ts'
import { Observing } from '../actors/observing.ts'
import { Producing, touch } from '../actors/producing.ts'
import { LOOSE_TOPIC, Reshaping } from '../actors/reshaping.ts'
import { dial, eventually, type Scene, type SceneTopic, type Serving } from '../actors/scene.ts'
import type { Death } from '../actors/server.ts'
import { ClusterWatch } from '../checkers/cluster-watch.ts'
import { NodeLedger } from '../checkers/node-ledger.ts'
import { Violation } from '../checkers/partition-log.ts'
import { batchesOnDisk, keptOnDisk, replicasAgree } from '../checkers/replica-logs.ts'
import { loseFolder } from '../faults/disk.ts'
import { Disturbing } from '../faults/disturbing.ts'
import type { Workload } from '../kernel.ts'
import { CLUSTER_MUTANTS } from '../mutants/cluster-mutants.ts'
import { type ClusterPlan, drawPlan } from './cluster-plan.ts'

/** When nothing goes wrong any more, everything that was begun ends within this. */
const CALM_MS_MAX: Millis = 240_000
/** With all nodes there and nothing wrong, every partition takes a record with acks=all again within this. */
const RECOVERED_MS_MAX: Millis = 60_000
/** When one of a healthy cluster dies, every partition that may take a record with acks=all does so within this. */
const FAILOVER_MS_MAX: Millis = 3000
/** When it falls silent it may have been the active controller: a new one is elected first, and gives all a session. */
const SILENCE_MS_MAX: Millis = 8000
/** A client that waits no longer for one who is silent. */
const IMPATIENT = { connectTimeoutMs: 500, requestTimeoutMs: 1000 }
/** When the disk of one hangs it may be the active controller's: another one is elected, and then told of all. */
const HANG_MS_MAX: Millis = 20_000
/** When nobody can dial one it may be the active controller's: another one is elected, and sees that it cannot be dialled. */
const WALL_MS_MAX: Millis = 20_000
/** A disk that hung is not believed at once to be well, the longer the more often it did (DiskWatch): till then it is out. */
const BELIEVED_MS_MAX = 65_000
/** When one of its folders fails it is given up first; who follows there keeps others waiting for as long as it may lag. */
const FOLDER_MS_MAX: Millis = 45_000
const LOOKS_EVERY_MS: Millis = 20

/**
 * A whole cluster, every node through several lives, with its clients on other machines. Which faults there are, and how
 * often, is drawn by the seed. Processes die, and stand still, in any number at any time. Power cuts, which take what was
 * not synced, disks that are replaced, and starts without one of the folders hit one node at a time, and the next only when
 * all replicas of the one before are in sync again: with min.insync.replicas=2 that is what is promised (KIP-966); where all is synced and no disk is
 * replaced, power cuts come as they like.
 */
export const cluster: Workload = {
  name: 'cluster',
  mutants: Object.keys(CLUSTER_MUTANTS),
  limitMs: 24 * 3_600_000,
  patch: mutant => CLUSTER_MUTANTS[mutant]?.() ?? (() => {}),
  async run(simulation) {
    await new Play(simulation).run()
  },
}

class Play implements Scene, Serving {
  readonly simulation: Simulation
  readonly ledger: NodeLedger
  readonly topics: readonly SceneTopic[]
  readonly groups: readonly string[]
  readonly silenced: (() => void)[] = []
  readonly unsure = false
  readonly #random: SeededRandom
  readonly #plan: ClusterPlan
  readonly #watch = new ClusterWatch(topic => topic === LOOSE_TOPIC)
  readonly #members: readonly Member[]
  readonly #clients: FakeNode[] = []
  readonly #disturbing: Disturbing
  readonly #observer: FakeNode
  readonly #observing: Observing
  readonly #administering: Administering
  readonly #reshaping: Reshaping
  readonly #producing: readonly Producing[]
  readonly #consuming: readonly Consuming[]
  readonly #broken = Promise.withResolvers<never>()
  /** Whose unsynced tail a power cut took, or who begins without a folder, until all of its replicas are in sync again. */
  #lossy: Member | undefined
  calm = false
  over = false

  constructor(simulation: Simulation) {
    this.simulation = simulation
    const { random } = simulation
    this.#random = random
    const plan = drawPlan(random)
    this.#plan = plan
    this.ledger = new NodeLedger(plan.allSynced)
    this.topics = plan.topics
    this.groups = plan.groups
    this.#members = plan.members.map(each => {
      const member: Member = new Member(
        this,
        each,
        random.fork(),
        () => this.#silence(),
        () => this.#mayLack(member),
      )
      return member
    })
    this.#disturbing = new Disturbing(this, plan, this.#members, this.#clients)
    this.#observer = simulation.node('observer')
    this.#observing = new Observing(this, this, this.#observer, random.fork())
    this.#administering = new Administering(this, this.#client('admin'), random.fork(), this.#observing, {
      passingReplicas: plan.wipes ? [2, 3] : [1, 2, 3],
      settings: plan.settings,
    })
    this.#reshaping = new Reshaping(
      this,
      this.#client('shaper'),
      random.fork(),
      plan.reshape,
      plan.topics,
      plan.brokers,
    )
    this.#producing = Array.from(
      { length: random.between(1, 3) },
      (_, index) => new Producing(this, this.#client(`producer${index}`), random.fork()),
    )
    this.#consuming = this.groups.flatMap(group =>
      Array.from(
        { length: random.between(1, 2) },
        (_, index) => new Consuming(this, this.#client(`${group}.${index}`), group, random.fork()),
      ),
    )
  }

  readonly fails = (error: unknown): void => this.#broken.reject(error)

  get pace(): number {
    return this.calm ? 1 : this.#plan.pace
  }

  get servers() {
    return this.#members.filter(({ isBroker }) => isBroker).map(({ address }) => address)
  }

  get up(): boolean {
    return this.#members.some(({ up, isBroker }) => up && isBroker)
  }

  async run(): Promise<void> {
    await Promise.race([this.#run(), this.#broken.promise])
  }

  async #run(): Promise<void> {
    const plan = this.#plan
    this.#disturbing.setUp(this.#random)
    await Promise.all(this.#members.map(member => member.prepare()))
    await Promise.all(this.#members.map(member => member.start()))
    await this.#createTopics()
    void this.#guarded(this.#look())
    const acting = [...this.#producing, this.#administering, this.#reshaping].map(actor => this.#guarded(actor.run()))
    if (plan.loose) acting.push(this.#guarded(this.#reshaping.spill(this.#client('spill'), this.#random.fork())))
    for (const actor of this.#consuming) void this.#guarded(actor.run())
    void this.#guarded(this.#observing.probe())
    for (const disturbing of this.#disturbing.begin(this.#random)) void this.#guarded(disturbing)
    if (plan.rolling) await this.#roll()
    else await Promise.all(this.#members.map(member => this.#live(member)))
    this.#calmDown()
    await Promise.all(this.#members.filter(({ up }) => !up).map(member => member.start()))
    await this.#mendFolders()
    await Promise.race([
      this.#finish(acting),
      this.simulation.wait(4 * CALM_MS_MAX).then(() => {
        throw new Error('what was begun does not come to its end')
      }),
    ])
  }

  /** A node through its lives. */
  async #live(member: Member): Promise<void> {
    const random = this.#random.fork()
    for (let life = 0; life < this.#plan.lives; life++) {
      await this.simulation.wait(random.fraction() * this.#plan.lifeMs)
      await this.#end(member, random.pick(this.#plan.deaths), random)
      await this.simulation.wait(random.between(1, random.pick([30, 300, 3000, 20_000])))
      await member.start()
    }
  }

  /** One after another, as when a new release is rolled out. */
  async #roll(): Promise<void> {
    const random = this.#random.fork()
    for (let life = 0; life < this.#plan.lives; life++) {
      for (const member of this.#members) {
        await this.simulation.wait(random.fraction() * random.pick([100, this.#plan.lifeMs]))
        await member.end('stop')
        await this.simulation.wait(random.between(10, 3000))
        await member.start()
      }
    }
  }

  async #end(member: Member, how: Death, random: SeededRandom): Promise<void> {
    // Whose power was cut is never believed to have everything, synced or not: it cannot stand in for an empty disk.
    const takes =
      (how === 'power-cut' && (!this.#plan.allSynced || this.#plan.wipes)) || (how === 'crash' && member.hasFailed)
    const wipes = this.#plan.wipes && member.mayBeWiped && random.chance(0.3)
    if (!takes && !wipes) {
      await member.end(how)
      return
    }
    // One at a time: otherwise it ends in a way that takes nothing.
    if (!this.#isFree(member)) {
      await member.end(member.hasFailed ? 'stop' : 'crash')
      return
    }
    this.#lossy = member
    await member.end(how)
    if (wipes) await member.wipe()
    void this.#guarded(this.#whenInSync(member))
  }

  #isFree(member: Member): boolean {
    return this.#lossy === undefined || (this.#lossy === member && member.hasFailed)
  }

  /** Whether a disk of one may fail, or a folder: as after a power cut, nobody believes it to have everything. */
  #mayLack(member: Member): boolean {
    if (this.#lossy !== undefined) return this.#lossy === member
    this.#lossy = member
    void this.#guarded(this.#whenInSync(member))
    return true
  }

  /** The next power cut may come when nothing that this one took is missing anywhere. */
  async #whenInSync(member: Member): Promise<void> {
    const isWell = (): boolean => member.failing === 0 && member.isInSync && !member.lacksFolder
    while (!this.over && !isWell()) await this.simulation.wait(200)
    if (this.#lossy === member) this.#lossy = undefined
  }

  async #createTopics(): Promise<void> {
    const client = await dial(this, this.#observer, this.#random)
    for (const topic of this.topics) {
      const configs = {
        ...(this.#random.chance(0.5) && { 'internal.segment.bytes': String(this.#random.between(10_000, 50_000)) }),
        'file.delete.delay.ms': String(this.#random.pick([0, 100, 60_000])),
      }
      await this.#administering.create(client, topic, configs)
    }
    client.close()
  }

  async #look(): Promise<void> {
    const stateFile = `${FOLDER}/__cluster_metadata-0/quorum-state`
    const voting = this.#members
      .filter(({ isController }) => isController)
      .map(({ id, node: { disk } }) => ({ id, disk, stateFile }))
    while (!this.over) {
      await this.simulation.wait(LOOKS_EVERY_MS * Math.min(50, this.pace))
      this.#watch.look(
        this.#members.flatMap(member => {
          const { id, running } = member
          return running === undefined ? [] : [{ id, running, lossy: member === this.#lossy && !member.isInSync }]
        }),
        voting,
      )
    }
  }

  /** Every log is written to again, or its folder was given up meanwhile: a new start takes that back. */
  async #mendFolders(): Promise<void> {
    const hasGivenUp = ({ running }: Member): boolean =>
      running?.broker?.logFolders().some(({ online }) => !online) === true
    const writes = ({ running }: Member): boolean =>
      [...(running?.broker?.partitions.all() ?? [])].every(({ log }) => log.failure === undefined)
    await eventually(this, 'a log refuses writes though its disk is well', CALM_MS_MAX, () =>
      this.#members.every(member => hasGivenUp(member) || writes(member)),
    )
    for (const member of this.#members.filter(hasGivenUp)) {
      await member.end('stop')
      await member.start()
    }
  }

  /** Everything that was begun is done, every partition is written to again, and the groups come to the ends. */
  async #finish(acting: readonly Promise<void>[]): Promise<void> {
    await this.#touch(this.topics, RECOVERED_MS_MAX, 'after all was well again')
    await Promise.all(acting)
    await this.#observing.survey()
    const ends = await this.#observing.ends()
    await eventually(this, 'the groups do not come to the ends', CALM_MS_MAX, async () => {
      for (const group of this.groups) {
        const commits = await this.#observing.committed(group)
        for (const [key, end] of ends) if ((commits.get(key) ?? 0) < end) return false
      }
      return true
    })
    await this.#allInSync()
    await this.#oneDies()
    await this.#allInSync()
    await this.#oneHangs()
    await this.#allInSync()
    await this.#oneIsWalled()
    await this.#allInSync()
    await this.#oneFolderFails()
    await this.#controllersFollow()
    this.over = true
    const image = this.#members.find(({ running }) => running?.broker !== undefined)?.running?.broker?.metadata.image
    const places = this.#members.map(member => ({ member, folders: foldersOf(member) }))
    await Promise.all(this.#members.map(member => member.end('stop')))
    if (image !== undefined) this.#compareReplicas(image, places)
    await Promise.all(this.#members.map(member => member.start()))
    await this.#observing.survey()
  }

  /** An acks=all write is acknowledged again within a bounded time. */
  async #touch(topics: readonly SceneTopic[], limitMs: Millis, when: string, but = ''): Promise<void> {
    const client = await dial(this, this.#observer, this.#random)
    await this.#touchWith(client, topics, limitMs, when, but)
    client.close()
  }

  async #touchWith(
    client: Awaited<ReturnType<typeof dial>>,
    topics: readonly SceneTopic[],
    limitMs: Millis,
    when: string,
    but: string,
  ): Promise<void> {
    const origin = this.ledger.origin(`calm@${this.simulation.schedule.now}`)
    const left = new Set<string>()
    for (const { name, partitions } of topics) {
      for (let partition = 0; partition < partitions; partition++) {
        if (`${name}-${partition}` !== but) left.add(`${name}-${partition}`)
      }
    }
    const one = touch(this, client, origin, left, this.#random.fork())
    const inTime = await Promise.race([one.then(() => true), this.simulation.wait(limitMs).then(() => false)])
    if (!inTime) throw new Violation(`${[...left]} take no acks=all write ${limitMs} ms ${when}`)
  }

  /** In a healthy cluster one node dies: whatever has enough replicas without it is written to again soon. */
  async #oneDies(): Promise<void> {
    const random = this.#random.fork()
    const client = await dial(this, this.#observer, random, IMPATIENT)
    const member = random.pick(this.#members)
    const how = random.pick<Death>(['crash', 'stop', 'power-cut'])
    const hasMajority = this.#hasMajorityWithout(member)
    const topics = this.#enduring(member)
    if (how === 'power-cut') this.#lossy = member
    const ending = member.end(how)
    if (hasMajority) {
      const limitMs = how === 'power-cut' ? SILENCE_MS_MAX + this.#plan.sessionTimeoutMs : FAILOVER_MS_MAX
      await this.#touchWith(client, topics, limitMs, `after ${how} of ${member.node.name}`, '')
    }
    await ending
    client.close()
    await member.start()
    if (how === 'power-cut') await this.#whenInSync(member)
  }

  /** In a healthy cluster the disk of one node hangs: whatever has enough replicas without it is written to again. */
  async #oneHangs(): Promise<void> {
    const random = this.#random.fork()
    const client = await dial(this, this.#observer, random, IMPATIENT)
    const member = random.pick(this.#members)
    const topics = this.#enduring(member)
    const { faults } = member.node.disk
    faults.hangs = true
    // Where the log of the metadata lies on the same disk, the controller has to go on elsewhere as well.
    if (member.folders.length > 1 && random.chance(0.5)) faults.within = random.pick(member.folders)
    if (this.#hasMajorityWithout(member)) {
      await this.#touchWith(client, topics, HANG_MS_MAX, `after the disk of ${member.node.name} hung`, '')
      await this.simulation.wait(random.between(1, 20_000))
    }
    member.node.disk.unhang(random.chance(0.3) ? 'fail' : 'go-on')
    client.close()
    await this.simulation.wait(BELIEVED_MS_MAX)
  }

  /** In a healthy cluster nobody can dial one node, though it dials the others: whatever it led others lead. */
  async #oneIsWalled(): Promise<void> {
    const random = this.#random.fork()
    const client = await dial(this, this.#observer, random, IMPATIENT)
    const member = random.pick(this.#members)
    member.wall()
    if (this.#hasMajorityWithout(member)) {
      await this.#touchWith(client, this.topics, WALL_MS_MAX, `after ${member.node.name} was walled in`, '')
    }
    member.unwall()
    client.close()
  }

  /** In a healthy cluster a node loses one of its folders: what lay there is led elsewhere, and lies here again after a start. */
  async #oneFolderFails(): Promise<void> {
    const random = this.#random.fork()
    const member = random.pick(this.#members)
    // Without the log of the metadata it is no controller, which is what happens when one dies.
    const folder = random.pick([...member.folders.slice(member.isController ? 1 : 0), ''])
    if (folder === '' || !member.isBroker) return
    const client = await dial(this, this.#observer, random, IMPATIENT)
    loseFolder(member.node.disk, folder)
    member.node.trace('disk', 0, 0, `${folder} is lost`)
    await this.#touchWith(client, this.#enduring(member), FOLDER_MS_MAX, `after ${member.node.name} lost ${folder}`, '')
    client.close()
    await member.end(random.pick<Death>(['stop', 'crash']))
    await member.start()
    await this.#allInSync()
  }

  #hasMajorityWithout({ id }: Member): boolean {
    const voters = this.#members.flatMap(({ running }) => running?.controller?.voters ?? []).map(voter => voter.id)
    const all = new Set(voters)
    return all.size - (all.has(id) ? 1 : 0) > all.size / 2
  }

  /** The topics that have enough replicas without a node. */
  #enduring({ id }: Member): readonly SceneTopic[] {
    const { image } =
      this.#members.find(({ running }) => running?.broker !== undefined)?.running?.broker?.metadata ?? {}
    return this.topics.filter(({ name }) => {
      const partitions = image?.topicByName(name)?.partitions ?? []
      return partitions.every(({ replicas }) => replicas.length > 2 || !replicas.includes(id))
    })
  }

  async #allInSync(): Promise<void> {
    const client = await dial(this, this.#observer, this.#random)
    await eventually(this, 'replicas stay out of sync', CALM_MS_MAX, async () => {
      const known = await listTopics(client).catch(() => [])
      // A broker whose controller is behind is behind itself.
      const active = this.#members.find(({ running }) => running?.controller?.isActive === true)
      const topics = [...(active?.running?.controller?.image?.topics.values() ?? [])]
      return [known, topics].every(
        each =>
          each.length > 0 &&
          each.every(({ partitions }) => partitions.every(({ replicas, isr }) => isr.length === replicas.length)),
      )
    })
    client.close()
  }

  /** One whose disk hung a moment ago may still have to cut off what it was not to have. */
  async #controllersFollow(): Promise<void> {
    await eventually(this, 'a controller stays behind what the quorum has committed', CALM_MS_MAX, () =>
      this.#members.every(
        ({ running }) => (running?.controller?.highWatermark ?? Number.POSITIVE_INFINITY) >= this.#watch.committed,
      ),
    )
  }

  /** All nodes have stopped: what lies on their disks is the same wherever it lies. */
  #compareReplicas(
    image: MetadataImage,
    places: readonly { readonly member: Member; readonly folders: ReadonlyMap<string, string> }[],
  ): void {
    for (const { name, partitions } of image.topics.values()) {
      for (const [index, { replicas }] of partitions.entries()) {
        const copies = places.flatMap(({ member: { id, node }, folders }) => {
          const folder = folders.get(`${name}-${index}`)
          if (folder === undefined || !replicas.includes(id)) return []
          return [{ who: `n${id}`, batches: keptOnDisk(node.disk, folder, `${name}-${index}`) }]
        })
        const ends = copies.map(({ batches }) => (batches.at(-1)?.last ?? -1) + 1)
        replicasAgree(`${name}-${index}`, copies, Math.min(...ends))
      }
    }
    const logs = this.#members
      .filter(({ isController }) => isController)
      .map(({ node }) => ({ who: node.name, batches: batchesOnDisk(node.disk, `${FOLDER}/__cluster_metadata-0`) }))
    replicasAgree(
      'the metadata log',
      logs,
      Math.min(this.#watch.committed, ...logs.map(({ batches }) => (batches.at(-1)?.last ?? -1) + 1)),
    )
  }

  #silence(): void {
    for (const run of this.silenced.splice(0)) run()
  }

  #calmDown(): void {
    this.calm = true
    this.#disturbing.end()
  }

  #client(name: string): FakeNode {
    const machine = this.simulation.node(name)
    this.#clients.push(machine)
    return machine
  }

  async #guarded(acting: Promise<void>): Promise<void> {
    try {
      await acting
    } catch (error) {
      this.fails(error)
    }
  }
}

/** In which log folder the partitions lie that a node hosts, by name. */
function foldersOf({ running }: Member): ReadonlyMap<string, string> {
  const partitions = [...(running?.broker?.partitions.all() ?? [])]
  return new Map(
    partitions.map(({ topic, index, log }) => [`${topic}-${index}`, log.folder.slice(0, log.folder.lastIndexOf('/'))]),
  )
}
