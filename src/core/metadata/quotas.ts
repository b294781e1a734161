import type { ClientQuotaRecord } from '#protocol/records/metadata-records.ts'

export interface QuotaEntity {
  readonly entityType: string
  /** Null is the default entity of its type. */
  readonly entityName: string | null
}

export interface QuotaImage {
  readonly entity: readonly QuotaEntity[]
  readonly values: ReadonlyMap<string, number>
}

/** What clients may take, by who they are (KIP-546). */
export class Quotas {
  readonly #all = new Map<string, { entity: readonly QuotaEntity[]; values: Map<string, number> }>()

  all(): Iterable<QuotaImage> {
    return this.#all.values()
  }

  copy(): Quotas {
    const copy = new Quotas()
    for (const [key, { entity, values }] of this.#all) copy.#all.set(key, { entity, values: new Map(values) })
    return copy
  }

  apply({ entity, key: quota, value, remove }: ClientQuotaRecord): void {
    const sorted = [...entity].sort((a, b) => (a.entityType < b.entityType ? -1 : 1))
    const key = JSON.stringify(sorted.map(each => [each.entityType, each.entityName]))
    const known = this.#all.get(key)
    if (remove) {
      known?.values.delete(quota)
      if (known?.values.size === 0) this.#all.delete(key)
    } else if (known !== undefined) known.values.set(quota, value)
    else this.#all.set(key, { entity, values: new Map([[quota, value]]) })
  }
}
