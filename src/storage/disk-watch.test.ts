import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DiskWatch } from './disk-watch.ts'
import { HungDiskError, StorageError } from './storage-error.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, LinesLogger, ManualClock, openRig, plainBatch, readAll, TEST_FOLDER } from './testing/rig.ts'

const T0 = 1_700_000_000_000

/** A disk that answers nothing of the kinds named, until it is let go. */
class HangingDisk extends MemoryDisk {
  hangs: readonly string[] = []
  #stuck: (() => void)[] = []

  override async open(path: string, how: { create: boolean; write: boolean }) {
    await this.#when('open')
    const file = await super.open(path, how)
    return {
      ...file,
      writeNow: () => false,
      write: async (parts: readonly Uint8Array[], position: number) => {
        await this.#when('write')
        await file.write(parts, position)
      },
      sync: async () => {
        await this.#when('sync')
        await file.sync()
      },
    }
  }

  async #when(kind: string): Promise<void> {
    while (this.hangs.includes(kind)) await new Promise<void>(resolve => this.#stuck.push(resolve))
  }

  goOn(): void {
    this.hangs = []
    for (const go of this.#stuck.splice(0)) go()
  }
}

function watched() {
  const disk = new HangingDisk()
  const clock = new ManualClock()
  const log = new LinesLogger()
  const changes: boolean[] = []
  const watch: DiskWatch = new DiskWatch({
    disk,
    clock,
    log,
    folder: '/data',
    probeFile: '.probe',
    consequence: 'nobody writes',
    changed: () => changes.push(watch.failure !== undefined),
  })
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 250) {
      clock.advance(250)
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    }
  }
  return { disk, clock, log, watch, changes, pass }
}

test('a write that has not come back for some seconds is a disk that hangs, until it answers for some seconds', async () => {
  const { disk, log, watch, changes, pass } = watched()
  watch.writeBegins()
  await pass(4750)
  assert.equal(watch.failure, undefined)
  disk.hangs = ['open', 'write', 'sync']
  await pass(1000)
  assert.ok((watch.failure as unknown) instanceof HungDiskError)
  assert.deepEqual(changes, [true])
  await pass(60_000)
  assert.ok(watch.failure !== undefined)
  // The write alone came back: the disk still takes no other.
  watch.writeEnds()
  await pass(20_000)
  assert.ok(watch.failure !== undefined)
  disk.goOn()
  await pass(4000)
  assert.ok(watch.failure !== undefined, 'not believed at once')
  await pass(4000)
  assert.equal(watch.failure, undefined)
  assert.deepEqual(changes, [true, false])
  assert.equal(log.lines.length, 2)
  assert.match(log.lines.join('\n'), /answered nothing for 5 s; nobody writes\. Check the disk.*\n.*answers again/)
  assert.equal(disk.contentOf('/data/.probe'), undefined)
})

test('a disk that is only busy does not hang, as long as some write comes back', async () => {
  const { watch, pass } = watched()
  watch.writeBegins()
  for (let times = 0; times < 30; times++) {
    watch.writeBegins()
    await pass(1000)
    watch.writeEnds()
  }
  assert.equal(watch.failure, undefined)
})

test('that the page cache takes writes says nothing of syncs that are waited for', async () => {
  const { watch, pass } = watched()
  watch.syncBegins()
  for (let times = 0; times < 12; times++) {
    watch.writeBegins()
    await pass(500)
    watch.writeEnds()
  }
  assert.ok(watch.failure !== undefined)
})

test('a process that stood still does not blame its disk', async () => {
  const { clock, watch } = watched()
  watch.writeBegins()
  clock.advance(400)
  // Stopped (SIGSTOP) for long: when it goes on its timers are due before it hears of the write.
  clock.advance(60_000)
  clock.advance(250)
  watch.writeEnds()
  clock.advance(5000)
  assert.equal(watch.failure, undefined)
})

test('a disk that hangs again and again is believed later each time', async () => {
  const { watch, pass, clock } = watched()
  const takesMs = async (): Promise<number> => {
    watch.writeBegins()
    while (watch.failure === undefined) await pass(250)
    watch.writeEnds()
    const since = clock.monotonic()
    while (watch.failure !== undefined) await pass(250)
    return clock.monotonic() - since
  }
  const first = await takesMs()
  const second = await takesMs()
  const third = await takesMs()
  assert.ok(second > first + 4000 && third > second + 8000, `${first} ${second} ${third}`)
  await pass(700_000)
  assert.ok((await takesMs()) < first + 1000)
})

test('a log whose disk hangs refuses who waits and who comes, and cuts off what comes back', async () => {
  const disk = new HangingDisk()
  const clock = new ManualClock()
  let hung: HungDiskError | undefined
  const rig = await openRig({}, { disk, clock, refusal: () => hung })
  await appendTo(rig, plainBatch(0, 1, 10, T0))
  disk.hangs = ['write']
  const underWay = appendTo(rig, plainBatch(1, 1, 10, T0))
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  const waiting = appendTo(rig, plainBatch(2, 1, 10, T0))
  let isBack = false
  const back = underWay.then(
    () => assert.fail('it was said to be refused'),
    error => {
      isBack = true
      assert.ok(error instanceof HungDiskError)
    },
  )
  hung = new HungDiskError('/data', 5000)
  rig.log.hangs(hung)
  await assert.rejects(waiting, HungDiskError)
  await assert.rejects(rig.log.append(plainBatch(1, 1, 10, T0)), HungDiskError)
  assert.equal(rig.log.nextOffset, 1)
  assert.equal(isBack, false, 'its bytes are still being written')

  disk.goOn()
  await back
  hung = undefined
  for (let times = 0; times < 20 && rig.log.failure !== undefined; times++) {
    clock.advance(5000)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }
  assert.equal(rig.log.failure, undefined)
  await appendTo(rig, plainBatch(1, 1, 20, T0))
  const size = (await readAll(rig.log)).length
  assert.equal(rig.log.endOffset, 2)
  assert.equal(disk.contentOf(`${TEST_FOLDER}/00000000000000000000.log`)?.length, size)
  await rig.log.close()
})

test('a write that waits for a checkpoint which the disk does not end is one that the disk does not take', async () => {
  const { disk, clock, watch, pass } = watched()
  const rig = await openRig({}, { disk, clock, watch, refusal: () => watch.failure })
  await appendTo(rig, plainBatch(0, 1, 10, T0))
  disk.hangs = ['open']
  const checkpoint = rig.log.checkpoint()
  await pass(10_000)
  assert.equal(watch.failure, undefined, 'nobody waits for it')
  const waiting = appendTo(rig, plainBatch(1, 1, 10, T0))
  waiting.catch(() => {})
  await pass(6000)
  const failure = watch.failure as unknown
  assert.ok(failure instanceof HungDiskError)
  rig.log.hangs(failure)
  await assert.rejects(waiting, HungDiskError)
  disk.goOn()
  await checkpoint
  await pass(30_000)
  assert.equal(watch.failure, undefined)
  assert.equal(rig.log.failure, undefined)
  await appendTo(rig, plainBatch(1, 1, 10, T0))
  watch.stop()
  await rig.log.close()
})

test('a log that failed while its disk hung says what the disk says when it answers', async () => {
  const disk = new HangingDisk()
  const rig = await openRig({}, { disk })
  disk.hangs = ['write']
  const underWay = appendTo(rig, plainBatch(0, 1, 10, T0))
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  rig.log.hangs(new HungDiskError('/data', 5000))
  disk.fault = operation => (operation === 'write' ? 'EIO' : undefined)
  disk.goOn()
  await assert.rejects(underWay, StorageError)
  assert.equal(rig.log.failure?.errno, 'EIO')
  await rig.log.abandon()
})
