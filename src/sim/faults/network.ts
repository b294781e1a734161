import type { SeededRandom } from '#base/random.ts'
import type { FakeNetwork } from '#world/fake/fake-network.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'

/** Something goes wrong between two machines. Returns what rights it again. */
export function breakNetwork(network: FakeNetwork, a: FakeNode, b: FakeNode, random: SeededRandom): () => void {
  switch (random.below(4)) {
    case 0:
      network.reset(a, b)
      return () => {}
    case 1:
      network.cut(a, b)
      network.cut(b, a)
      return () => {
        network.heal(a, b)
        network.heal(b, a)
      }
    default: {
      // Half open: one hears the other and is not heard.
      const [from, to] = random.chance(0.5) ? [a, b] : [b, a]
      network.cut(from, to)
      return () => network.heal(from, to)
    }
  }
}
