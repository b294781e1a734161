import { type CopyProgress, copyProgress, listReassignments, type Reassignment } from '#client/admin/reassignments.ts'
import { throttled } from '#client/admin/throttle.ts'
import type { Client } from '#client/client.ts'
import { Copies, type CopyTotals } from './copy-totals.ts'
import { bytes, type Cell, counted, duration, print, printJson, remark, table } from './output.ts'

/** Between two looks: long enough for a rate. */
const LOOK_MS = 1000

const ROWS_MAX = 30

export const THROTTLED = 'hint: a throttle is still set: tidemark topics reassign --unthrottle'

export interface Look {
  readonly reassignments: readonly Reassignment[]
  readonly copies: readonly CopyProgress[]
  readonly totals: CopyTotals
}

async function look(client: Client, sums: Copies): Promise<Look> {
  const reassignments = await listReassignments(client)
  const copies = await copyProgress(client, reassignments)
  return { reassignments, copies, totals: sums.look(copies, client.world.clock.monotonic()) }
}

/** How far everything is, from two looks. */
export async function showProgress(client: Client, json: boolean): Promise<void> {
  const sums = new Copies()
  let found = await look(client, sums)
  if (found.reassignments.length > 0) {
    await client.pause(LOOK_MS)
    found = await look(client, sums)
  }
  if (json) {
    printJson(asJson(found))
    return
  }
  const { reassignments, copies } = found
  if (reassignments.length === 0) {
    print('no reassignment goes on')
    const { brokers, topics } = await throttled(client)
    if (brokers.length + topics.length > 0) {
      remark(THROTTLED)
    }
    return
  }
  print(table(['PARTITION', 'FROM', 'TO', 'COPIED', 'OF', 'STATE'], copies.slice(0, ROWS_MAX).map(row)))
  if (copies.length > ROWS_MAX) print(`and ${copies.length - ROWS_MAX} more`)
  print('')
  print(summary(found))
  warnOfOffline(copies)
}

/** A line per look until no reassignment is left; the lines are values of their own with JSON. */
export async function followProgress(client: Client, json: boolean): Promise<void> {
  const sums = new Copies()
  let warned = false
  for (;;) {
    const found = await look(client, sums)
    if (json) print(JSON.stringify(asJson(found)))
    else print(found.reassignments.length === 0 ? 'all is where it shall be' : summary(found))
    if (found.reassignments.length === 0) return
    if (!json && !warned) warned = warnOfOffline(found.copies)
    await client.pause(LOOK_MS)
  }
}

export function row({ topic, partition, from, to, copiedBytes, totalBytes, inSync, offline }: CopyProgress): Cell[] {
  const state = offline
    ? 'broker is down'
    : inSync
      ? 'in sync'
      : totalBytes < 0
        ? 'no leader'
        : percent(copiedBytes, totalBytes)
  return [`${topic}-${partition}`, from < 0 ? null : from, to, bytes(copiedBytes), bytes(totalBytes), state]
}

/** Of nothing all is copied. */
function percent(part: number, whole: number): string {
  return whole === 0 ? '100 %' : `${Math.floor((100 * part) / whole)} %`
}

export function summary({ reassignments, copies, totals }: Look): string {
  const { copiedBytes, totalBytes, bytesPerSecond, leftMs } = totals
  const all = `${counted(reassignments.length, 'partition')}: ${bytes(copiedBytes)} of ${bytes(totalBytes)} copied`
  // Nothing in sight is not nothing to do where nobody tells how much there is, or nobody is there to take it.
  const isUnknown = totalBytes === 0 && copies.some(each => !each.inSync && (each.offline || each.totalBytes < 0))
  if (isUnknown) return all
  const rate = bytesPerSecond === undefined ? '' : `, ${bytes(bytesPerSecond)}/s`
  const left = leftMs === undefined ? '' : `, ${duration(leftMs)} left`
  return `${all} (${percent(copiedBytes, totalBytes)})${rate}${left}`
}

function warnOfOffline(copies: readonly CopyProgress[]): boolean {
  const down = [...new Set(copies.filter(({ offline }) => offline).map(({ to }) => to))]
  if (down.length === 0) return false
  remark(`hint: ${down.map(id => `broker ${id}`).join(', ')} down: copies to it wait. Start it, or --cancel`)
  return true
}

function asJson({ reassignments, copies, totals }: Look): object {
  const { bytesPerSecond = null, leftMs = null } = totals
  return { reassignments, copies, ...totals, bytesPerSecond, leftMs }
}
