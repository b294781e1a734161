/** What differed, gathered by where and how, with one request that shows it. */
import type { Api } from '#protocol/apis.ts'
import type { Difference } from './compare.ts'
import { EXPLAINED, type Explanation } from './explained.ts'

export interface Finding extends Difference {
  readonly api: string
  readonly situation: string
  readonly versions: Set<number>
  count: number
  readonly example: string
}

export class Findings {
  readonly #findings = new Map<string, Finding>()
  readonly #calls = new Map<string, number>()
  readonly #skipped = new Map<string, number>()
  /** Requests whose answers both carry errors, or none: how much of the run was about wrong requests. */
  #refused = 0
  /** What does not end in time is of no use to anyone: after some, the situation stops. */
  #silent = 0
  readonly #times = new Map<string, [number, number]>()
  situation = ''
  requests = 0

  note(
    api: string,
    version: number,
    differences: readonly Difference[],
    example: () => string,
    answers?: unknown,
  ): void {
    this.requests++
    const call = `${api} ${version}`
    this.#calls.set(call, (this.#calls.get(call) ?? 0) + 1)
    if (answers !== undefined && /"errorCode":-?[1-9]/.test(JSON.stringify(answers, plainly))) this.#refused++
    if (differences.some(({ left, right }) => left === 'silent' || right === 'silent')) this.#silent++
    if (api !== '(run)' && this.#silent > 12) throw new Error('too many requests were not answered')
    for (const difference of differences) {
      const key = [this.situation, api, difference.path, difference.left, difference.right].join('\u0000')
      const known = this.#findings.get(key)
      if (known === undefined) {
        const found = { ...difference, api, situation: this.situation, versions: new Set([version]), count: 1 }
        this.#findings.set(key, { ...found, example: example() })
      } else {
        known.count++
        known.versions.add(version)
      }
    }
  }

  /** A situation that could not be played to its end. */
  fail(error: unknown): void {
    this.note('(run)', 0, [{ path: 'ends', left: 'yes', right: String(error) }], () => '')
    this.#silent = 0
  }

  took(api: string, side: 0 | 1, ms: number): void {
    const times = this.#times.get(api) ?? [0, 0]
    times[side] += ms
    this.#times.set(api, times)
  }

  /** Where the time went, by API: seconds of the first server and of the second. */
  get times(): string {
    const list = [...this.#times].sort(([, a], [, b]) => b[0] + b[1] - a[0] - a[1]).slice(0, 10)
    return list
      .map(([api, [left, right]]) => `${api} ${(left / 1000).toFixed(1)} / ${(right / 1000).toFixed(1)} s`)
      .join(', ')
  }

  skip(api: Api, version: number): void {
    this.#skipped.set(`${api.name} ${version}`, (this.#skipped.get(`${api.name} ${version}`) ?? 0) + 1)
  }

  get all(): readonly Finding[] {
    return [...this.#findings.values()].sort((a, b) => a.api.localeCompare(b.api) || a.path.localeCompare(b.path))
  }

  get unexplained(): readonly Finding[] {
    return this.all.filter(finding => EXPLAINED.every(explanation => !covers(explanation, finding)))
  }

  /** Explanations of nothing: what they were for was mended, or the run was cut short. */
  get idle(): readonly Explanation[] {
    return EXPLAINED.filter(explanation => !this.all.some(finding => covers(explanation, finding)))
  }

  get coverage(): string {
    const apis = new Map<string, number[]>()
    for (const call of this.#calls.keys()) {
      const [api, version] = call.split(' ') as [string, string]
      apis.set(api, [...(apis.get(api) ?? []), Number(version)])
    }
    const versions = [...apis.values()].reduce((sum, list) => sum + list.length, 0)
    const skipped = [...new Set([...this.#skipped.keys()].map(call => call.split(' ')[0]))]
    return (
      `${this.requests} requests (${this.#refused} answered with an error) to ${apis.size} APIs in ${versions} versions` +
      (skipped.length === 0 ? '' : `; not offered by both: ${skipped.join(', ')}`)
    )
  }

  print(findings: readonly Finding[]): string {
    return findings
      .map(({ api, path, versions, count, left, right, example, situation }) => {
        const list = [...versions].sort((a, b) => a - b)
        const range = list.length > 2 ? `${list[0]}-${list.at(-1)}` : list.join(',')
        return `${api} v${range}  ${path}  ${count}×  [${situation}]\n    first:  ${left}\n    second: ${right}\n    e.g. ${example}`
      })
      .join('\n')
  }
}

function covers({ situation, api, path, left, right }: Explanation, finding: Finding): boolean {
  const matches = (pattern: RegExp | string | undefined, text: string): boolean =>
    pattern === undefined || (typeof pattern === 'string' ? pattern === text : pattern.test(text))
  return (
    matches(situation, finding.situation) &&
    matches(api, finding.api) &&
    matches(path, finding.path) &&
    matches(left, finding.left) &&
    matches(right, finding.right)
  )
}

function plainly(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
