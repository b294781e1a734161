import { setFlagsFromString } from 'node:v8'

/** The first V8 in which this was measured; what another one does not know it complains about. */
const V8_SINCE = 14

/**
 * V8 compiles what was called 400 times, and once more and thoroughly after 3,000; it begins to count anew when something is seen
 * for the first time. A page is gone by then. A node that takes 500 requests a second spent its first half minute in
 * between, at twice the time for each, and in the pauses of compiling itself bit by bit. See docs/performance.md.
 */
export function optimizeSoon(): void {
  if (Number.parseInt(process.versions.v8, 10) < V8_SINCE) return
  setFlagsFromString('--invocation-count-for-maglev=100')
  setFlagsFromString('--minimum-invocations-after-ic-update=100')
  setFlagsFromString('--invocation-count-for-turbofan=1000')
}
