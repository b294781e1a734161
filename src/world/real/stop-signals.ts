import type { Millis } from '#base/units.ts'

/** SIGHUP comes when a terminal is closed, and nothing else is made of it here. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * One wish to stop can arrive as several signals: a group of processes is signalled as a whole while those above pass on
 * what they get (npm), and systemd may send SIGHUP with SIGTERM.
 */
const SAME_WISH_MS: Millis = 1000

const EXIT_INTERRUPTED = 130

/**
 * Calls `stop` at the first signal that asks for it. Whoever asks again, more than a second later, has the process end at
 * once. What is returned gives the signals back.
 */
export function onStopSignal(stop: () => void): () => void {
  let askedAt: Millis | undefined
  const heard = (): void => {
    const now = performance.now()
    if (askedAt === undefined) {
      askedAt = now
      stop()
    } else if (now - askedAt > SAME_WISH_MS) process.exit(EXIT_INTERRUPTED)
  }
  for (const name of STOP_SIGNALS) process.on(name, heard)
  return () => {
    for (const name of STOP_SIGNALS) process.off(name, heard)
  }
}
