import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLog } from './log.ts'

test('a line for people, an object for machines, nothing below the level', () => {
  const lines: string[] = []
  const write = (line: string): void => {
    lines.push(line)
  }
  const people = openLog({ level: 'info', format: 'line', write }).child({ node: 1 })
  people.debug({}, 'hidden')
  people.warn({ folder: '/data', reason: 'no space' }, 'refusing writes')
  openLog({ level: 'debug', format: 'json', write }).debug({ offset: 5 }, 'shown')
  assert.equal(lines.length, 2)
  assert.match(
    lines[0] ?? '',
    /^\d{4}-\d\d-\d\dT[\d:.]+Z WARN {2}refusing writes node=1 folder=\/data reason="no space"\n$/,
  )
  const { time, ...rest } = JSON.parse(lines[1] ?? '') as { time: number }
  assert.equal(typeof time, 'number')
  assert.deepEqual(rest, { level: 20, offset: 5, msg: 'shown' })
})
