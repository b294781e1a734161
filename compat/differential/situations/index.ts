import { cluster } from './cluster.ts'
import { configs } from './configs.ts'
import { fetchSituation } from './fetch.ts'
import { groups } from './groups.ts'
import { listOffsets } from './list-offsets.ts'
import { namedTwice } from './named-twice.ts'
import { produceSituation, unread } from './produce.ts'
import type { Situation } from './tools.ts'
import { topics } from './topics.ts'
import { versions } from './versions.ts'

export const SITUATIONS: readonly Situation[] = [
  versions,
  topics,
  configs,
  produceSituation,
  unread,
  fetchSituation,
  listOffsets,
  groups,
  cluster,
  namedTwice,
]
