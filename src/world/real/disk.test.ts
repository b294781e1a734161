import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { realDisk } from './disk.ts'

describe('the disk of the system', () => {
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidemark-disk-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('writes parts, reads them, cuts, syncs', async () => {
    const file = await realDisk.open(join(folder, 'a'), { create: true, write: true })
    const many = Array.from({ length: 3000 }, (_, i) => Buffer.from([i & 255, i >> 8]))
    await file.write([], 0)
    await file.write(many, 5)
    await file.write([Buffer.from('01234')], 0)
    assert.equal(await file.size(), 6005)
    const into = Buffer.alloc(7000)
    assert.equal(await file.read(into, 0), 6005)
    assert.ok(into.subarray(0, 6005).equals(Buffer.concat([Buffer.from('01234'), ...many])))
    assert.equal(await file.read(into, 6005), 0)
    await file.truncate(3)
    await file.sync()
    await file.close()
    await file.close()
    assert.deepEqual(await realDisk.readFile(join(folder, 'a')), Buffer.from('012'))
  })

  test('names: list, rename over, remove with all that is inside, missing ones', async () => {
    const inner = join(folder, 'x', 'y')
    await realDisk.makeFolder(inner)
    await realDisk.makeFolder(inner)
    for (const name of ['one', 'two']) {
      await (await realDisk.open(join(inner, name), { create: true, write: true })).close()
    }
    await realDisk.rename(join(inner, 'one'), join(inner, 'two'))
    await realDisk.syncFolder(inner)
    assert.deepEqual(await realDisk.list(inner), [{ name: 'two', folder: false }])
    assert.deepEqual(await realDisk.list(join(folder, 'x')), [{ name: 'y', folder: true }])
    await realDisk.remove(join(folder, 'x'))
    await realDisk.remove(join(folder, 'x'))
    await assert.rejects(realDisk.list(inner), { name: 'WorldError', code: 'ENOENT', message: /list .*x/ })
    await assert.rejects(realDisk.open(join(folder, 'none'), { create: false, write: false }), { code: 'ENOENT' })
    assert.equal(await realDisk.readFile(join(folder, 'none')), undefined)
    const { free, total } = await realDisk.space(folder)
    assert.ok(free >= 0 && total > 0 && free <= total)
  })

  test('a folder that cannot be made is refused: where a file is, and where its parent is there and takes none', async () => {
    const file = await realDisk.open(join(folder, 'file'), { create: true, write: true })
    await file.close()
    await assert.rejects(realDisk.makeFolder(join(folder, 'file')), { code: 'EEXIST' })
    await assert.rejects(realDisk.makeFolder(join(folder, 'file', 'below', 'it')), { code: 'ENOTDIR' })
    if (process.platform === 'linux') await assert.rejects(realDisk.makeFolder('/proc/no/such'), { code: 'ENOENT' })
  })

  test('a file is read whole, whatever its size', async () => {
    for (const size of [0, 1, 1023, 1024, 1025, 100_000]) {
      const bytes = Buffer.alloc(size, 'tidemark')
      const file = await realDisk.open(join(folder, `whole-${size}`), { create: true, write: true })
      await file.write([bytes], 0)
      await file.close()
      assert.deepEqual(await realDisk.readFile(join(folder, `whole-${size}`)), bytes)
    }
    await assert.rejects(realDisk.readFile(folder), { name: 'WorldError', code: 'EISDIR' })
  })

  test('many files are synced at once in a folder that is locked, and not elsewhere', async t => {
    const files = await Promise.all(
      Array.from({ length: 20 }, (_, i) => realDisk.open(join(folder, `many-${i}`), { create: true, write: true })),
    )
    t.after(() => Promise.all(files.map(file => file.close())))
    await Promise.all(files.map(file => file.write([Buffer.from('x')], 0)))
    assert.equal(await realDisk.syncAll(files, [folder]), false)
    const lock = await realDisk.lock(join(folder, '.lock-many'))
    const { type } = await statfs(folder)
    const isKnown = process.platform === 'linux' && [0xef53, 0x58465342, 0x9123683e, 0x01021994].includes(type)
    if (isKnown) assert.equal(await realDisk.syncAll(files, [folder]), true)
    else t.diagnostic(`not tried on a file system of type ${type}`)
    assert.equal(await realDisk.syncAll(files.slice(0, 2), [folder]), false)
    assert.equal(await realDisk.syncAll(files, ['/proc']), false)
    await lock.release()
    assert.equal(await realDisk.syncAll(files, [folder]), false)
  })

  for (const native of [true, false]) {
    test(`a lock keeps everyone out until it is released (${native ? 'of the system' : 'by number'})`, async () => {
      const path = join(folder, `.lock-${native}`)
      // Another process, because without the system's calls the choice is made once for a process.
      const script = `
        import { realDisk } from ${JSON.stringify(join(import.meta.dirname, 'disk.ts'))}
        const lock = await realDisk.lock(${JSON.stringify(path)})
        await realDisk.lock(${JSON.stringify(path)}).then(() => process.exit(3), e => { if (e.code !== 'EBUSY') throw e })
        await lock.release()
        await (await realDisk.lock(${JSON.stringify(path)})).release()
        await realDisk.lock(${JSON.stringify(path)})
        process.kill(process.pid, 'SIGKILL')`
      for (let round = 0; round < 2; round++) {
        const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
          env: { ...process.env, TIDEMARK_NO_NATIVE: native ? '' : '1' },
          encoding: 'utf8',
        })
        assert.equal(run.signal, 'SIGKILL', run.stderr)
      }
    })
  }
})
