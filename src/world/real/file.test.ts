import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { realDisk } from './disk.ts'
import type { RealFile } from './file.ts'

test('a file that is closed while it is synced keeps its descriptor until that has ended', async t => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'tidemark-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = (await realDisk.open(`${folder}/file`, { create: true, write: true })) as RealFile
  const { fdatasync } = fs
  const { promise, resolve } = Promise.withResolvers<void>()
  t.mock.method(fs, 'fdatasync', (descriptor: number, done: fs.NoParamCallback) => {
    void promise.then(() => fdatasync(descriptor, done))
  })
  const synced = file.sync()
  const closed = file.close()
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  assert.ok(fs.fstatSync(file.descriptor).isFile())
  resolve()
  await synced
  await closed
  assert.throws(() => fs.fstatSync(file.descriptor), { code: 'EBADF' })
  await assert.rejects(file.sync(), { code: 'EBADF' })
})
