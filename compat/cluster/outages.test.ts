/** What `outages.ts` measures stays within what docs/operating.md says, in virtual time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FAULTS, Outage } from './outage.ts'
import { SimulatedMachines } from './simulated-machines.ts'

const SETTINGS = { 'offsets.topic.num.partitions': '3', 'offsets.topic.replication.factor': '3' }

/** In seconds: where it led written and read, where it followed written, metadata changed. */
const WITHIN: Readonly<Record<string, readonly [number, number, number, number]>> = {
  'a process killed': [1, 1, 1, 1],
  'the process of the active controller killed': [1, 1, 1, 1],
  'the machine of the active controller cut off': [15, 15, 13, 4],
  'a machine that the other nodes do not reach, while it reaches them': [13, 1, 12, 2],
  'a machine that does not reach the other nodes, while they reach it': [11, 1, 10, 2],
  'a disk full': [10, 1, 20, 1],
  'a disk that fails': [15, 1, 15, 1],
  'a disk that hangs': [8, 8, 11, 1],
  'a disk that hangs at the active controller': [8, 8, 11, 5],
}

for (const [name, bounds] of Object.entries(WITHIN))
  test(`${name}: what clients miss, they miss for no longer than is promised`, async () => {
    const fault = FAULTS[name]
    assert.ok(fault !== undefined)
    const measured = Object.values(await new Outage(new SimulatedMachines(1, SETTINGS)).measure(fault))
    for (const [index, { ms, afterEnd }] of measured.entries())
      assert.ok((afterEnd ? fault.ms + ms : ms) <= (bounds[index] ?? 0) * 1000, JSON.stringify(measured))
  })

test('clients that would wait for an answer for half a minute wait no longer than until another one leads', async () => {
  const fault = FAULTS['a machine cut off']
  assert.ok(fault !== undefined)
  const outage = new Outage(new SimulatedMachines(1, SETTINGS), { patient: true })
  const measured = Object.values(await outage.measure(fault))
  for (const { ms, afterEnd } of measured) assert.ok(!afterEnd && ms <= 17_000, JSON.stringify(measured))
})
