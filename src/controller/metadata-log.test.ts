import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '#storage/storage-error.ts'
import { MemoryDisk } from '#storage/testing/memory-disk.ts'
import { LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import { MetadataLog } from './metadata-log.ts'

const TOPIC_ID = 'AAAAAAAAAAAAAAAAAAAAAg'
const TOPICS = 100

test('a log that is being mended is not taken for a shorter one', async () => {
  const disk = new MemoryDisk()
  const open = disk.open.bind(disk)
  disk.open = async (path, how) => {
    const file = await open(path, how)
    const read = async (into: Uint8Array, position: number) => {
      // The end is where a log is mended.
      for (let turn = position > 10_000 ? 20 : 0; turn > 0; turn--) await new Promise(setImmediate)
      return await file.read(into, position)
    }
    return { ...file, read }
  }
  const clock = new ManualClock()
  const log = await MetadataLog.open({ disk, clock, log: new LinesLogger(), folder: '/data' })
  const append = (name: string) =>
    log.appendRecords(1, [{ type: 'Topic', version: 0, value: { name, topicId: TOPIC_ID } }]).done
  for (let topic = 0; topic < TOPICS; topic++) await append(`${'long'.repeat(30)}-${topic}`)

  disk.fault = (operation, path) => (operation === 'write' && path.endsWith('.log') ? 'ENOSPC' : undefined)
  await assert.rejects(append('refused'), StorageError)
  const offsets: Promise<number | undefined>[] = []
  const fold = async (): Promise<number | undefined> => {
    try {
      return (await log.fold()).image.offset
    } catch (error) {
      assert.ok(error instanceof StorageError)
      return undefined
    }
  }
  disk.fault = () => undefined
  clock.advance(6000)
  for (let turn = 0; turn < 300; turn++) {
    offsets.push(fold())
    await new Promise(setImmediate)
  }
  for (const offset of await Promise.all(offsets)) assert.ok(offset === undefined || offset === TOPICS - 1, `${offset}`)
  await append('later')
  assert.equal(await fold(), TOPICS)
  await log.close()
})
