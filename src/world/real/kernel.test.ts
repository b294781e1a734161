import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
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
    assert.equal(kernel.lock(from), 0)
  } finally {
    fs.closeSync(from)
    fs.closeSync(to)
    fs.rmSync(folder, { recursive: true })
  }
})
