/** Deliberately broken builds of a cluster, by name: each breaks what it breaks and returns what mends it again. */
export const CLUSTER_MUTANTS: Readonly<Record<string, () => () => void>> = {}
