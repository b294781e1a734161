/** Writes a line to standard output. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** One value for programs. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2))
}

/** `1 member`, `2 members`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** A remark that is no result: to standard error, so that results can be piped on. */
export function remark(line: string): void {
  process.stderr.write(`${line}\n`)
}

export type Cell = string | number | null | undefined

/** Columns of equal width under their titles; numbers stand at the right. Long last columns are not cut. */
export function table(titles: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const cells = rows.map(row => titles.map((_, column) => shown(row[column])))
  const widths = titles.map((title, column) => Math.max(title.length, ...cells.map(row => width(row[column] ?? ''))))
  const right = titles.map((_, column) => rows.length > 0 && rows.every(row => typeof row[column] === 'number'))
  const line = (parts: readonly string[]): string =>
    parts
      .map((part, column) => {
        const gap = ' '.repeat((widths[column] ?? 0) - width(part))
        return right[column] ? gap + part : part + gap
      })
      .join('  ')
      .trimEnd()
  return [line(titles), ...cells.map(line)].join('\n')
}

function shown(cell: Cell): string {
  if (cell === null || cell === undefined) return '-'
  return typeof cell === 'number' ? String(cell) : cell
}

function width(text: string): number {
  return [...text].length
}

/** Milliseconds as people say them: 850 ms, 12 s, 5 min, 3 h, 2 d. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  for (const [unit, size] of units) {
    if (ms >= size) {
      const count = ms / size
      return `${count < 10 ? Math.round(count * 10) / 10 : Math.round(count)} ${unit}`
    }
  }
  return `${ms} ms`
}

export function bytes(count: number): string {
  if (count < 0) return '-'
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = count
  let unit = 0
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024
  return `${unit === 0 || value >= 100 ? Math.round(value) : Math.round(value * 10) / 10} ${units[unit]}`
}
