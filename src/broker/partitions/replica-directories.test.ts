import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Uuid } from '#base/uuid.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import {
  LOST_DIRECTORY,
  MIGRATING_DIRECTORY,
  type PartitionImage,
  UNASSIGNED_DIRECTORY,
} from '#core/metadata/partition-image.ts'
import type { Log } from '#storage/log.ts'
import type { LogFolders } from '#storage/log-folders.ts'
import { StorageError } from '#storage/storage-error.ts'
import { LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import type { ControllerLink } from '../metadata/controller-link.ts'
import type { Partition } from './partition.ts'
import { ReplicaDirectories } from './replica-directories.ts'

const TOPIC = 'AAAAAAAAAAAAAAAAAAAAAg' as Uuid
const HERE = 'AAAAAAAAAAAAAAAAAAAAEA' as Uuid
const ELSEWHERE = 'AAAAAAAAAAAAAAAAAAAAEQ' as Uuid
const FULL = new StorageError('ENOSPC', '/a', 'no space left')

interface Assignment {
  readonly directories: readonly { readonly id: Uuid }[]
}

/** Broker 1 with all that it hosts in one directory, and what it tells the controller. */
function rig(metadataVersion = 17) {
  const clock = new ManualClock()
  const told: Uuid[] = []
  const link = {
    ask: async (_api: unknown, { directories }: Assignment) => {
      told.push(...directories.map(({ id }) => id))
      return { errorCode: 0 }
    },
    rest: async () => {},
  } as unknown as ControllerLink
  const folders = {
    failures: 0,
    directoryOf: () => HERE,
    folders: [],
    directoryIds: [HERE],
    hungDirectoryIds: [] as Uuid[],
  }
  const directories = new ReplicaDirectories({
    nodeId: 1,
    link,
    clock,
    log: new LinesLogger(),
    brokerEpoch: () => 7,
    folders: folders as unknown as LogFolders,
    image: () => ({ metadataVersion }) as MetadataImage,
  })
  const log = { folder: '/a/topic-0', endOffset: 0 } as { folder: string; endOffset: number; failure?: StorageError }
  const partition = { topicId: TOPIC, index: 0, log: log as Log, gone: false, leads: false, inSync: [1], leaderId: 2 }
  const turn = () => new Promise(resolve => setImmediate(resolve))
  return { clock, told, directories, folders, log, partition: partition as unknown as Partition, turn }
}

function wanted(directory: Uuid, leader = 2, replicas = [1, 2], eligible: readonly number[] = []): PartitionImage {
  return {
    replicas,
    eligibleLeaderReplicas: eligible,
    directories: replicas.map(id => (id === 1 ? directory : ELSEWHERE)),
    leader,
  } as unknown as PartitionImage
}

test('the controller is told where a replica lies when it thinks otherwise, and can take it', async () => {
  for (const [known, version, says] of [
    [UNASSIGNED_DIRECTORY, 17, [HERE]],
    [MIGRATING_DIRECTORY, 17, [HERE]],
    [ELSEWHERE, 17, [HERE]],
    [HERE, 17, []],
    [UNASSIGNED_DIRECTORY, 16, []],
  ] as const) {
    const { directories, partition, told, turn } = rig(version)
    directories.report(partition, wanted(known))
    await turn()
    assert.deepEqual(told, says, `${known} ${version}`)
  }
})

test('an empty log in the place of one that was elsewhere is not offered before somebody else leads', async () => {
  for (const [endOffset, leader, replicas, says] of [
    [0, -1, [1, 2], []],
    [0, 2, [1, 2], [HERE]],
    [5, -1, [1, 2], [HERE]],
    // Nobody else has more.
    [0, -1, [1], [HERE]],
  ] as const) {
    const { directories, partition, log, told, turn } = rig()
    log.endOffset = endOffset
    directories.report(partition, wanted(ELSEWHERE, leader, [...replicas]))
    await turn()
    assert.deepEqual(told, says, `${endOffset} ${leader} ${replicas}`)
  }
})

test('an empty log that was handed over leads again where it is eligible, so that nobody waits for ever', async () => {
  for (const [known, eligible, says] of [
    [LOST_DIRECTORY, [1], [HERE]],
    [LOST_DIRECTORY, [2], []],
    [ELSEWHERE, [1], []],
  ] as const) {
    const { directories, partition, log, told, turn } = rig()
    log.endOffset = 0
    directories.report(partition, wanted(known, -1, [1, 2], eligible))
    await turn()
    assert.deepEqual(told, says, `${known} ${eligible}`)
  }
})

test('a replica whose disk is full takes no part until there is space, and is then told where it lies', async () => {
  const { clock, directories, folders, log, partition, told, turn } = rig()
  log.failure = FULL
  folders.failures++
  const look = () => directories.lookForLost([partition])
  assert.deepEqual(look(), [])
  assert.ok(directories.mayTakePart(partition))
  clock.advance(15_000)
  assert.deepEqual(look(), [])
  assert.equal(directories.mayTakePart(partition), false)
  directories.report(partition, wanted(UNASSIGNED_DIRECTORY))
  await turn()
  assert.deepEqual(told, [LOST_DIRECTORY])
  delete log.failure
  assert.deepEqual(look(), [partition])
  assert.ok(directories.mayTakePart(partition))
  await turn()
  assert.deepEqual(told, [LOST_DIRECTORY, HERE])
})

test('a log that cannot be made or opened is handed over as one that cannot be written, and one replica stays', async () => {
  for (const [hangs, directory, leader, isr, afterMs] of [
    [true, HERE, 1, [1, 2], 0],
    [true, HERE, 2, [1, 2], 3_000],
    [false, HERE, 1, [1, 2], 5_000],
    [false, UNASSIGNED_DIRECTORY, 1, [1, 2], 5_000],
    [false, HERE, 2, [1, 2], 15_000],
    [true, HERE, 1, [1], undefined],
    [false, HERE, 1, [1], undefined],
    // Nobody who could stand in for it, as all of them may be in the same case.
    [true, HERE, -1, [1, 2], undefined],
    [false, LOST_DIRECTORY, 2, [2], undefined],
    // In a folder that is offline, which the cluster knows.
    [false, ELSEWHERE, 2, [1, 2], undefined],
  ] as const) {
    const { clock, directories, folders, told, turn } = rig()
    if (hangs) folders.hungDirectoryIds.push(HERE)
    const since = clock.monotonic()
    const partition = { ...wanted(directory, leader), isr } as PartitionImage
    const says = async (): Promise<boolean> => {
      directories.reportUnopened(TOPIC, 0, partition, since)
      await turn()
      return told.length > 0
    }
    const what = `${hangs} ${directory} ${leader} ${isr}`
    if (afterMs !== undefined && afterMs > 0) {
      clock.advance(afterMs - 1)
      assert.equal(await says(), false, what)
      clock.advance(1)
    } else if (afterMs === undefined) clock.advance(60_000)
    assert.equal(await says(), afterMs !== undefined, what)
    assert.ok(told.every(id => id === LOST_DIRECTORY))
  }
})
