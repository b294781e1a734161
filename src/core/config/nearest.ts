/**
 * The name that a mistyped one most likely meant: fewest edits (insert, delete, replace, swap of neighbours), none when
 * more than a third of the word would have to change. Ties go to the one that comes first.
 */
export function nearestName(wrong: string, names: Iterable<string>): string | undefined {
  if (wrong.length > 200) return undefined
  let best: string | undefined
  let fewest = Math.max(2, Math.floor(wrong.length / 3)) + 1
  for (const name of names) {
    if (Math.abs(name.length - wrong.length) >= fewest) continue
    const edits = editDistance(wrong.toLowerCase(), name.toLowerCase())
    if (edits < fewest) {
      fewest = edits
      best = name
    }
  }
  return best
}

/** Optimal string alignment distance. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let edits = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        edits = Math.min(edits, (beforeLast[j - 2] ?? 0) + 1)
      row.push(edits)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
