import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { NO_DISK_FAULTS } from './fake-disk.ts'
import { Content, SECTOR_BYTES } from './inode.ts'
import { Simulation } from './simulation.ts'

/** For every sector-sized piece of a file, what it has been since it was last known to be durable. */
function possiblePieces(history: readonly Uint8Array[]): Set<string>[] {
  const pieces: Set<string>[] = []
  const longest = Math.max(...history.map(content => content.length), 0)
  for (let at = 0; at < longest; at += SECTOR_BYTES) {
    const seen = new Set<string>([''])
    for (const content of history) {
      const padded = new Uint8Array(SECTOR_BYTES)
      padded.set(content.subarray(at, at + SECTOR_BYTES))
      seen.add(Buffer.from(padded).toString('latin1'))
    }
    seen.add('\0'.repeat(SECTOR_BYTES))
    pieces.push(seen)
  }
  return pieces
}

describe('the disk of the simulation', () => {
  test('a write at once is seen at once, is refused as any other, and is not done by a disk that makes wait', async () => {
    const simulation = new Simulation(3)
    const node = simulation.node('n')
    await simulation.run(
      (async () => {
        const file = await node.world.disk.open('/f', { create: true, write: true })
        const seen = new Uint8Array(6)
        node.disk.faults.writesNow = 1
        assert.ok(file.writeNow([Buffer.from('one'), Buffer.from('two')], 0))
        assert.equal(await file.read(seen, 0), 6)
        assert.equal(Buffer.from(seen).toString(), 'onetwo')
        node.disk.faults.hangs = true
        assert.ok(!file.writeNow([Buffer.from('x')], 6))
        node.disk.unhang()
        node.disk.faults.writesNow = 0
        assert.ok(!file.writeNow([Buffer.from('x')], 6))
        node.disk.faults.writesNow = 1
        node.disk.faults.capacity = node.disk.usedBytes + 1
        assert.throws(() => file.writeNow([Buffer.from('xyz')], 6), { code: 'ENOSPC' })
        assert.equal(await file.size(), 7, 'a prefix, as much as there was space for')
        node.disk.faults.capacity = 1000
        node.disk.faults.writeFails = 1
        assert.throws(() => file.writeNow([Buffer.from('xyz')], 6), { code: 'EIO' })
        node.disk.faults.writeFails = 0
        node.disk.faults.writesNow = 0
        const sizes = new Set<number>()
        for (let count = 0; count < 100; count++) {
          assert.ok(!file.writeNow([Buffer.from('xyz')], 6))
          sizes.add(await file.size())
        }
        assert.ok(sizes.has(8), 'a part may have been taken')
      })(),
    )
  })

  test('one of several folders has the faults, and is replaced by an empty one without that the machine is turned off', async () => {
    const simulation = new Simulation(4)
    const node = simulation.node('n')
    await simulation.run(
      (async () => {
        const open = (path: string) => node.world.disk.open(path, { create: true, write: true })
        await node.world.disk.makeFolder('/a/x')
        await node.world.disk.makeFolder('/ab')
        const [inA, inAb] = [await open('/a/x/f'), await open('/ab/f')]
        for (const file of [inA, inAb]) await file.write([Buffer.from('12345678')], 0)
        node.disk.faults = { ...node.disk.faults, within: '/a', readFails: 1, writeFails: 1, syncFails: 1 }
        await assert.rejects(inA.read(new Uint8Array(8), 0), { code: 'EIO' })
        await assert.rejects(inA.sync(), { code: 'EIO' })
        await assert.rejects(open('/a/g'), { code: 'EIO' })
        await assert.rejects(node.world.disk.list('/a'), { code: 'EIO' })
        await inAb.sync()
        assert.equal(await inAb.read(new Uint8Array(8), 0), 8)
        node.disk.faults = { ...NO_DISK_FAULTS, within: '/a' }
        node.disk.faults.capacity = node.disk.usedBytes + 2
        assert.equal(node.disk.usedBytes, 8)
        await assert.rejects(inA.write([Buffer.from('123')], 8), { code: 'ENOSPC' })
        await inAb.write([Buffer.from('123')], 8)
        node.disk.faults = { ...NO_DISK_FAULTS }
        await node.world.disk.syncFolder('/')

        const boot = await node.world.disk.bootId()
        node.crash()
        node.disk.replace('/a')
        assert.equal(await node.world.disk.bootId(), boot)
        assert.deepEqual(await node.world.disk.list('/a'), [])
        assert.deepEqual(await node.world.disk.list('/ab'), [{ name: 'f', folder: false }])
        node.powerCut()
        assert.deepEqual(await node.world.disk.list('/a'), [])
      })(),
    )
  })

  test('after a power cut: all that was synced, and of what came after only what was written', async () => {
    for (let seed = 0; seed < 300; seed++) {
      const simulation = new Simulation(seed)
      const { random } = simulation
      const node = simulation.node('n')
      await simulation.run(
        (async () => {
          const { disk } = node.world
          await disk.makeFolder('/d')
          await disk.syncFolder('/')
          const file = await disk.open('/d/f', { create: true, write: true })
          await disk.syncFolder('/d')
          const model = new Content()
          let history = [new Uint8Array(0)]
          for (let step = random.between(1, 30); step > 0; step--) {
            const action = random.below(10)
            if (action < 2) {
              await file.sync()
              history = [model.bytes.slice()]
            } else if (action === 2) {
              const size = random.below(model.size + 1)
              await file.truncate(size)
              model.truncate(size)
              history.push(model.bytes.slice())
            } else {
              const bytes = new Uint8Array(random.between(1, 3000)).fill(random.between(1, 255))
              const position = random.chance(0.7) ? model.size : random.below(model.size + 1)
              const parts = [bytes.subarray(0, 1), bytes.subarray(1)]
              if (!file.writeNow(parts, position)) await file.write(parts, position)
              model.write(bytes, position)
              history.push(model.bytes.slice())
            }
          }
          const seen = new Uint8Array(model.size)
          assert.equal(await file.read(seen, 0), model.size)
          assert.deepEqual(seen, model.bytes.slice())

          node.powerCut()
          const found = await node.world.disk.readFile('/d/f')
          assert.ok(found !== undefined, `seed ${seed}: a synced name is gone`)
          if (history.length === 1) assert.deepEqual(found, history[0], `seed ${seed}: synced bytes changed`)
          const possible = possiblePieces(history)
          for (let at = 0; at < found.length; at += SECTOR_BYTES) {
            const piece = found.subarray(at, at + SECTOR_BYTES)
            const known = [...(possible[at / SECTOR_BYTES] ?? [])]
            const text = Buffer.from(piece).toString('latin1')
            // Bytes of one sector were written by several writes at most; each byte must come from some state.
            for (let i = 0; i < text.length; i++) {
              assert.ok(
                known.some(state => state[i] === text[i]),
                `seed ${seed}: byte ${at + i} was never written`,
              )
            }
          }
        })(),
      )
    }
  })

  test('when only the process dies, what had returned is there', async () => {
    for (let seed = 0; seed < 100; seed++) {
      const simulation = new Simulation(seed)
      const node = simulation.node('n')
      await simulation.run(
        (async () => {
          const { disk } = node.world
          await disk.makeFolder('/d')
          const file = await disk.open('/d/f', { create: true, write: true })
          await file.write([Buffer.alloc(5000, 1)], 0)
          void file.write([Buffer.alloc(5000, 2)], 5000)
          await simulation.wait(simulation.random.fraction() * 0.4)
          node.crash()
          const found = await node.world.disk.readFile('/d/f')
          assert.ok(found !== undefined && found.length >= 5000)
          assert.ok(found.subarray(0, 5000).every(byte => byte === 1))
          assert.ok(found.subarray(5000).every(byte => byte === 2))
          // The dead ask in vain.
          const asked = [file.read(new Uint8Array(1), 0), disk.list('/')].map(promise => promise.then(() => 'answered'))
          assert.equal(await Promise.race([...asked, simulation.wait(1000)]), undefined)
        })(),
      )
    }
  })

  test('a rename is durable after its folder was synced, and never half done', async () => {
    const outcomes = new Set<string>()
    for (let seed = 0; seed < 100; seed++) {
      const simulation = new Simulation(seed)
      const node = simulation.node('n')
      const synced = seed % 2 === 0
      await simulation.run(
        (async () => {
          const { disk } = node.world
          const put = async (path: string, text: string): Promise<void> => {
            const file = await disk.open(path, { create: true, write: true })
            await file.write([Buffer.from(text)], 0)
            await file.sync()
            await file.close()
          }
          await put('/a', 'old')
          await disk.syncFolder('/')
          await put('/a.tmp', 'new')
          await disk.rename('/a.tmp', '/a')
          if (synced) await disk.syncFolder('/')
          node.powerCut()
          const found = Buffer.from((await node.world.disk.readFile('/a')) ?? []).toString()
          if (synced) assert.equal(found, 'new')
          else outcomes.add(found)
        })(),
      )
    }
    assert.deepEqual([...outcomes].toSorted(), ['new', 'old'])
  })

  test('a full disk takes a prefix and says so; a failing one says EIO; a hanging one nothing', async () => {
    const simulation = new Simulation(1)
    const node = simulation.node('n')
    await simulation.run(
      (async () => {
        const { disk } = node.world
        node.disk.faults.capacity = 1000
        const file = await disk.open('/f', { create: true, write: true })
        await file.write([Buffer.alloc(900)], 0)
        await assert.rejects(file.write([Buffer.alloc(200)], 900), { code: 'ENOSPC' })
        assert.equal(await file.size(), 1000)
        await file.write([Buffer.alloc(500, 1)], 0)
        assert.deepEqual(await disk.space('/'), { free: 0, total: 1000 })
        node.disk.faults.syncFails = 1
        await assert.rejects(file.sync(), { code: 'EIO' })
        node.disk.faults.syncFails = 0
        node.disk.faults.hangs = true
        let size = -1
        void file.size().then(found => {
          size = found
        })
        await simulation.wait(60_000)
        assert.equal(size, -1)
        node.disk.unhang()
        await simulation.wait(1)
        assert.equal(size, 1000)
        await disk.lock('/l')
        await assert.rejects(disk.lock('/l'), { code: 'EBUSY' })
        node.crash()
        await node.world.disk.lock('/l')
      })(),
    )
  })

  test('a failed sync loses what it says; no later success brings it back', async () => {
    let lost = 0
    for (let seed = 0; seed < 50; seed++) {
      const simulation = new Simulation(seed)
      const node = simulation.node('n')
      await simulation.run(
        (async () => {
          const file = await node.world.disk.open('/f', { create: true, write: true })
          await node.world.disk.syncFolder('/')
          await file.write([Buffer.alloc(100, 1)], 0)
          node.disk.faults.syncFails = 1
          await assert.rejects(file.sync())
          node.disk.faults.syncFails = 0
          await file.sync()
          node.powerCut()
          if ((await node.world.disk.readFile('/f'))?.length === 0) lost++
        })(),
      )
    }
    assert.ok(lost > 10 && lost < 40, `${lost} of 50`)
  })
})

test('content: writes past the end leave zeros, cutting forgets', () => {
  const content = new Content()
  content.write(new Uint8Array([1, 2]), 3)
  content.truncate(4)
  content.truncate(6)
  assert.deepEqual([...content.bytes], [0, 0, 0, 1, 0, 0])
  const random = new SeededRandom(1)
  content.write(random.fill(new Uint8Array(10_000)), 6)
  assert.equal(content.size, 10_006)
})
