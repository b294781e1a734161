import type { World } from '#world/world.ts'

/** A deliberately broken build: what is changed in the product, or in the world that it sees. */
export interface NodeMutant {
  readonly world?: (world: World) => World
  /** Breaks it, and returns what mends it again. */
  readonly patch?: () => () => void
  /** A process that dies takes with it what it had written, as if the power had gone. */
  readonly crashesLose?: boolean
}

export const NODE_MUTANTS: Readonly<Record<string, NodeMutant>> = {}
