import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { queryObjects } from 'node:v8'
import { findKernel } from './kernel.ts'

test('on Linux the system calls are reached', { skip: process.platform !== 'linux' && 'not Linux' }, () => {
  const kernel = findKernel()
  assert.ok(kernel !== undefined, 'koffi or the C library is not as expected')
  const folder = fs.mkdtempSync(join(tmpdir(), 'tidemark-kernel-'))
  const from = fs.openSync(join(folder, 'from'), 'w+')
  const to = fs.openSync(join(folder, 'to'), 'w+')
  try {
    fs.writeSync(from, 'tidemark')
    assert.equal(kernel.sendFile(to, from, 4, 100), 4)
    assert.equal(fs.readFileSync(join(folder, 'to'), 'utf8'), 'mark')
    assert.ok(kernel.sendFile(-1, from, 0, 1) < 0)
    const copy = kernel.duplicate(from)
    assert.ok(copy >= 0)
    fs.closeSync(copy)
    assert.equal(typeof kernel.resident(from, 0), 'boolean')
    // What was just written is in memory.
    for (const [position, size] of [
      [0, 8],
      [4, 4],
      [7, 1],
      [0, 3],
    ] as const) {
      assert.equal(kernel.readNow(from, position, size)?.toString(), 'tidemark'.slice(position, position + size))
    }
    assert.equal(kernel.readNow(from, 4, 5), undefined, 'the file is shorter')
    assert.equal(kernel.lock(from), 0)
  } finally {
    fs.closeSync(from)
    fs.closeSync(to)
    fs.rmSync(folder, { recursive: true })
  }
})

test('what a thread of the pool writes to is not collected while it runs', {
  skip: process.platform !== 'linux' && 'not Linux',
}, async t => {
  const kernel = findKernel()
  assert.ok(kernel !== undefined)
  const folder = fs.mkdtempSync(join(tmpdir(), 'tidemark-kernel-'))
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const pipe = join(folder, 'pipe')
  assert.equal(spawnSync('mkfifo', [pipe]).status, 0)
  const bytes = Buffer.alloc(64 * 1024, 'x')
  fs.writeFileSync(join(folder, 'file'), bytes)
  const source = fs.openSync(join(folder, 'file'), 'r')
  const ends = fs.openSync(pipe, 'r+')
  const live = (): number => queryObjects(Uint32Array, { format: 'count' }) as number
  const before = live()
  // All that a pipe takes, so that the thread waits for somebody to read.
  fs.writeSync(ends, bytes)
  const sent = kernel.sendFileInPool(ends, source, 0, bytes.length)
  // Whether the thread has begun or is about to.
  const during = live()
  fs.readSync(ends, bytes, 0, bytes.length, null)
  assert.equal(await sent, bytes.length)
  assert.equal(during, before + 1)
  for (let turn = 0; turn < 1000 && live() !== before; turn++) await new Promise(setImmediate)
  assert.equal(live(), before, 'and is let go of then')
  fs.closeSync(source)
  fs.closeSync(ends)
})
