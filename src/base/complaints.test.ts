import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Complaints } from './complaints.ts'

test('a kind of line is said once a minute, with how many were left out since', () => {
  let now = 0
  const lines: unknown[] = []
  const note = (level: string) => (fields: object, message: string) => void lines.push([level, fields, message])
  const log = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
  }
  const complaints = new Complaints({ monotonic: () => now }, log)
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

test('after the end only those hear who ask for everything', () => {
  const levels: string[] = []
  const note = (level: string) => () => void levels.push(level)
  const log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
  const complaints = new Complaints({ monotonic: () => 0 }, log)
  complaints.end()
  complaints.tell('error', 'broken', {}, 'the disk is broken')
  assert.deepEqual(levels, ['debug'])
})
