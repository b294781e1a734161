/** What was measured, and how it compares with what was promised. */

export interface Row {
  readonly what: string
  readonly unit: string
  /** Of our median divided by the other's. */
  readonly target?: { readonly most: number } | { readonly least: number }
  /** Whom it is compared with. */
  readonly with?: 'Kafka' | 'floor'
  readonly ours: number[]
  readonly theirs: number[]
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const [low, high] = [sorted[sorted.length % 2 === 1 ? middle : middle - 1], sorted[middle]]
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2
}

const HEADER = ['', 'unit', 'Tidemark', 'Kafka', 'ratio', 'target', '']

/** Medians, and what they are the medians of in parentheses where a figure was taken more than once. */
export function table(rows: readonly Row[]): string {
  return aligned([HEADER, ...rows.map(cells)])
}

function cells({ what, unit, target, ours, theirs, with: other }: Row): string[] {
  const ratio = median(ours) / median(theirs)
  const result = target === undefined ? '' : Number.isNaN(ratio) ? 'not measured' : met(ratio, target) ? 'ok' : 'missed'
  const promised = target === undefined ? '' : 'most' in target ? `≤ ${target.most}` : `≥ ${target.least}`
  const compared = `${other === 'floor' && theirs.length > 0 ? 'floor ' : ''}${figures(theirs)}`
  return [what, unit, figures(ours), compared, Number.isNaN(ratio) ? '' : ratio.toFixed(2), promised, result]
}

function met(ratio: number, target: NonNullable<Row['target']>): boolean {
  return 'most' in target ? ratio <= target.most : ratio >= target.least
}

function figures(values: readonly number[]): string {
  if (values.length === 0) return '–'
  if (values.length === 1) return figure(median(values))
  return `${figure(median(values))} (${figure(Math.min(...values))}–${figure(Math.max(...values))})`
}

function figure(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export function aligned(lines: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const line of lines)
    line.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length)
    })
  const pad = (cell: string, column: number): string =>
    column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return lines.map(line => line.map(pad).join('  ').trimEnd()).join('\n')
}
