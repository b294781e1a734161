import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock, Logger } from '#world/world.ts'
import { Complaints } from './complaints.ts'
import { LogFolders } from './log-folders.ts'
import { StorageError } from './storage-error.ts'
import { folderOptions, openPartition, T0 } from './testing/folders.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, ManualClock, plainBatch } from './testing/rig.ts'

test('a kind of line is said once a minute, with how many were left out since', () => {
  let now = 0
  const lines: unknown[] = []
  const note = (level: string) => (fields: object, message: string) => void lines.push([level, fields, message])
  const log = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
  } as unknown as Logger
  const complaints = new Complaints({ monotonic: () => now } as Clock, log)
  complaints.tell('warn', 'full', { folder: 'a-0' }, 'the disk is full')
  complaints.tell('warn', 'full', { folder: 'a-1' }, 'the disk is full')
  complaints.tell('error', 'broken', { folder: 'a-1' }, 'the disk is broken')
  now = 59_999
  complaints.tell('warn', 'full', { folder: 'a-2' }, 'the disk is full')
  now = 60_000
  complaints.tell('warn', 'full', { folder: 'a-3' }, 'the disk is full')
  now = 120_000
  complaints.tell('warn', 'full', { folder: 'a-4' }, 'the disk is full')
  assert.deepEqual(lines, [
    ['warn', { folder: 'a-0' }, 'the disk is full'],
    ['debug', { folder: 'a-1' }, 'the disk is full'],
    ['error', { folder: 'a-1' }, 'the disk is broken'],
    ['debug', { folder: 'a-2' }, 'the disk is full'],
    ['warn', { folder: 'a-3', unsaid: 2 }, 'the disk is full'],
    ['warn', { folder: 'a-4' }, 'the disk is full'],
  ])
})

test('a disk that is full is complained of once for all of its logs, and again while it lasts', async () => {
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const world = { ...folderOptions(disk, { paths: ['/a'] }), clock }
  const folders = await LogFolders.open(world)
  const partitions = []
  for (let index = 0; index < 4; index++) partitions.push(await openPartition(folders, index))
  disk.fault = operation => (operation === 'write' ? 'ENOSPC' : undefined)
  for (const each of partitions) await assert.rejects(appendTo(each, plainBatch(0, 5, 10, T0)), StorageError)
  const said = () => world.log.lines.filter(line => line.startsWith('error'))
  assert.equal(said().length, 1, said().join('\n'))
  for (let turn = 0; turn < 20; turn++) {
    clock.advance(6000)
    for (const { log } of partitions) await log.flush().catch(() => undefined)
  }
  assert.ok(said().length === 2 || said().length === 3, said().join('\n'))
  assert.match(said()[1] as string, /free space.*"unsaid":\d+/)
  disk.fault = () => undefined
  await folders.close()
})
