import { uuidFromRandom } from '#base/uuid.ts'
import { encodeMetadataRecord, type MetadataRecord } from '#core/metadata/record.ts'
import type { Server } from '#network/server.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { serving } from '#network/testing/serving.ts'
import { API } from '#protocol/apis.ts'
import { encodeToBuffer } from '#protocol/codec.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import { SnapshotFooterRecord } from '#protocol/records/control-records.ts'
import { BatchBuilder } from '#records/builder.ts'
import { buildControlBatch, type ControlRecord } from '#records/control.ts'
import type { World } from '#world/world.ts'
import { ControllerLink } from '../controller-link.ts'
import { Controllers } from '../controllers.ts'

const PORT = 9093
const LEADER_EPOCH = 3

/** A machine of the simulation. */
interface Machine {
  readonly host: string
  readonly world: World
}

/** What a controller says, as the test has it, and what it was asked. */
export class ControllerDouble {
  readonly machine: Machine
  readonly asking: Machine
  readonly controllers: Controllers
  readonly link: ControllerLink
  /** Answers of the next registrations and heartbeats; when there are no more, all is well. */
  readonly registrations: ErrorName[] = []
  readonly heartbeats: ErrorName[] = []
  isFenced = false
  shouldShutDown = false
  /** Whether a fetch finds this to be the leader. */
  isLeader = true
  brokerEpoch = 7
  readonly asked: { readonly api: string; readonly at: number; readonly wantShutDown: boolean }[] = []
  /** The metadata log: batches with the offsets of their first records, and how far it is committed. */
  readonly #log: { readonly baseOffset: number; readonly bytes: Buffer }[] = []
  nextOffset = 0
  highWatermark = 0
  /** Whether its log is one that parts from what was fetched. */
  isOther = false
  /** Whether an answer brings all that there is, and not one batch. */
  tellsAll = false
  /** Whether what is appended lies damaged on its disk. */
  rots = false
  readonly fetched: number[] = []
  /** One that answers fetches below its end. */
  snapshot: { readonly endOffset: number; readonly bytes: Buffer } | undefined
  /** How long each byte that may come takes on its way. */
  snapshotMsPerByte = 0

  constructor(machine: Machine, asking: Machine) {
    this.machine = machine
    this.asking = asking
    this.controllers = new Controllers([{ host: this.machine.host, port: PORT }], 'CONTROLLER')
    const { world } = this.asking
    this.link = new ControllerLink(world, this.controllers, 'test', world.log)
  }

  /** One batch of records, committed unless the test says otherwise. */
  append(records: readonly MetadataRecord[], committed = true): void {
    this.#add(batchOf(records, this.nextOffset), records.length, committed)
  }

  /** One batch of raft's own records. */
  appendControl(records: readonly ControlRecord[], committed = true): void {
    const of = { baseOffset: this.nextOffset, leaderEpoch: LEADER_EPOCH, timestamp: 0 }
    this.#add(buildControlBatch(of, records), records.length, committed)
  }

  #add(bytes: Buffer, count: number, committed: boolean): void {
    if (this.rots) bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1
    this.#log.push({ baseOffset: this.nextOffset, bytes })
    this.nextOffset += count
    if (committed) this.highWatermark = this.nextOffset
  }

  cutTo(endOffset: number): void {
    while ((this.#log.at(-1)?.baseOffset ?? -1) >= endOffset) this.#log.pop()
    this.nextOffset = endOffset
  }

  async listen(): Promise<Server> {
    return await serving({ machine: this.machine, name: 'CONTROLLER', port: PORT }, this.#apis())
  }

  count(api: string): number {
    return this.asked.filter(asked => asked.api === api).length
  }

  #note(api: string, wantShutDown = false): void {
    this.asked.push({ api, at: this.machine.world.clock.monotonic(), wantShutDown })
  }

  #apis(): ServedApi[] {
    const registration = serve({
      api: API.BrokerRegistration,
      handle: () => {
        this.#note('registration')
        return { errorCode: ErrorCode[this.registrations.shift() ?? 'NONE'], brokerEpoch: this.brokerEpoch }
      },
    })
    const heartbeat = serve({
      api: API.BrokerHeartbeat,
      handle: ({ wantShutDown }) => {
        this.#note('heartbeat', wantShutDown)
        const { isFenced, shouldShutDown } = this
        return { errorCode: ErrorCode[this.heartbeats.shift() ?? 'NONE'], isFenced, shouldShutDown }
      },
    })
    const fetch = serve({
      api: API.Fetch,
      handle: async ({ topics, maxWaitMs }) => {
        const asked = topics[0]?.partitions[0]
        const from = asked?.fetchOffset ?? 0
        this.fetched.push(from)
        const [found, ...more] = this.#log.filter(({ baseOffset }) => baseOffset >= from)
        const bytes = this.tellsAll ? more.map(each => each.bytes) : []
        if (found === undefined && this.isLeader && !this.isOther) {
          await new Promise<void>(resolve => this.machine.world.clock.after(Math.min(maxWaitMs, 200), resolve))
        }
        const partition = {
          partitionIndex: 0,
          errorCode: this.isLeader ? ErrorCode.NONE : ErrorCode.NOT_LEADER_OR_FOLLOWER,
          highWatermark: this.highWatermark,
          currentLeader: { leaderId: this.isLeader ? 1 : -1, leaderEpoch: LEADER_EPOCH },
          ...(this.snapshot !== undefined &&
            from < this.snapshot.endOffset && {
              snapshotId: { endOffset: this.snapshot.endOffset, epoch: LEADER_EPOCH },
            }),
          ...(this.isOther && { divergingEpoch: { epoch: LEADER_EPOCH, endOffset: 0 } }),
          records:
            this.isLeader && !this.isOther
              ? Buffer.concat([found?.bytes ?? Buffer.alloc(0), ...bytes])
              : Buffer.alloc(0),
        }
        const { host } = this.machine
        return {
          errorCode: ErrorCode.NONE,
          responses: [{ topicId: topics[0]?.topicId ?? '', partitions: [partition] }],
          nodeEndpoints: [{ nodeId: 1, host, port: PORT, rack: null }],
        }
      },
    })
    // In small parts, as a large one comes.
    const fetchSnapshot = serve({
      api: API.FetchSnapshot,
      handle: async ({ topics, maxBytes }) => {
        const wayMs = maxBytes * this.snapshotMsPerByte
        if (wayMs > 0) await new Promise<void>(resolve => this.machine.world.clock.after(wayMs, resolve))
        const position = topics[0]?.partitions[0]?.position ?? 0
        const bytes = this.snapshot?.bytes ?? Buffer.alloc(0)
        const unalignedRecords = bytes.subarray(position, position + 50)
        const snapshotId = { endOffset: this.snapshot?.endOffset ?? 0, epoch: LEADER_EPOCH }
        const part = { index: 0, errorCode: ErrorCode.NONE, snapshotId, size: bytes.length, position, unalignedRecords }
        return { topics: [{ name: topics[0]?.name ?? '', partitions: [part] }] }
      },
    })
    return [registration, heartbeat, fetch, fetchSnapshot]
  }

  uuid(): string {
    return uuidFromRandom(into => this.asking.world.random.fill(into))
  }
}

export function batchOf(records: readonly MetadataRecord[], baseOffset: number): Buffer {
  const builder = new BatchBuilder({ baseOffset, leaderEpoch: LEADER_EPOCH })
  for (const record of records) builder.append(0, null, bytesOf(record))
  return builder.build()
}

/** A record of the type 'Unreadable' breaks off. */
function bytesOf(record: MetadataRecord): Uint8Array {
  return (record.type as string) === 'Unreadable' ? Buffer.from([0, 2, 0]) : encodeMetadataRecord(record)
}

/** As a snapshot: the footer ends it. */
export function snapshotOf(records: readonly MetadataRecord[]): Buffer {
  const value = encodeToBuffer(SnapshotFooterRecord, 0, { version: 0 })
  const at = { baseOffset: records.length, leaderEpoch: LEADER_EPOCH, timestamp: 0 }
  return Buffer.concat([batchOf(records, 0), buildControlBatch(at, [{ type: 'snapshotFooter', value }])])
}
