import { pino } from 'pino'
import type { Logger } from '../world.ts'

export interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** `line` for people: time, level, message, fields. `json` for machines: one object per line. */
  readonly format: 'line' | 'json'
  /** Where lines go; standard error without it. */
  readonly write?: (line: string) => void
}

/** Logs through pino, at once: a line about a crash is out before the crash. */
export function openLog({ level, format, write }: LogOptions): Logger {
  const out = write ?? ((line: string) => process.stderr.write(line))
  return pino({ level, base: null }, { write: format === 'json' ? out : (line: string) => out(readable(line)) })
}

const LEVELS: Record<number, string> = { 20: 'DEBUG', 30: 'INFO ', 40: 'WARN ', 50: 'ERROR' }

function readable(json: string): string {
  const { level, time, msg, ...fields } = JSON.parse(json) as { level: number; time: number; msg: string }
  let line = `${new Date(time).toISOString()} ${LEVELS[level] ?? level} ${msg}`
  for (const [name, value] of Object.entries(fields)) {
    line += ` ${name}=${typeof value === 'string' && !/[\s"=]/.test(value) ? value : JSON.stringify(value)}`
  }
  return `${line}\n`
}
