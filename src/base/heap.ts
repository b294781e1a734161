/** A binary min-heap by a numeric key, with removal by the handle that `push` returned. */
export class Heap<T> {
  readonly #nodes: HeapNode<T>[] = []
  #sequence = 0

  get size(): number {
    return this.#nodes.length
  }

  /** Adds a value; values of equal key leave in the order in which they came. */
  push(key: number, value: T): HeapNode<T> {
    const node: HeapNode<T> = { key, value, order: this.#sequence++, index: this.#nodes.length }
    this.#nodes.push(node)
    this.#up(node.index)
    return node
  }

  peek(): HeapNode<T> | undefined {
    return this.#nodes[0]
  }

  pop(): HeapNode<T> | undefined {
    const first = this.#nodes[0]
    if (first !== undefined) this.remove(first)
    return first
  }

  /** Takes a node out; a node that has left already is left alone. */
  remove(node: HeapNode<T>): void {
    const index = node.index
    if (index < 0) return
    const last = this.#nodes.pop() as HeapNode<T>
    node.index = -1
    if (last === node) return
    this.#nodes[index] = last
    last.index = index
    this.#down(index)
    this.#up(last.index)
  }

  #before(a: HeapNode<T>, b: HeapNode<T>): boolean {
    return a.key < b.key || (a.key === b.key && a.order < b.order)
  }

  #up(start: number): void {
    const nodes = this.#nodes
    const node = nodes[start] as HeapNode<T>
    let index = start
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = nodes[above] as HeapNode<T>
      if (!this.#before(node, parent)) break
      nodes[index] = parent
      parent.index = index
      index = above
    }
    nodes[index] = node
    node.index = index
  }

  #down(start: number): void {
    const nodes = this.#nodes
    const node = nodes[start] as HeapNode<T>
    let index = start
    for (;;) {
      let below = 2 * index + 1
      if (below >= nodes.length) break
      if (below + 1 < nodes.length && this.#before(nodes[below + 1] as HeapNode<T>, nodes[below] as HeapNode<T>))
        below++
      const child = nodes[below] as HeapNode<T>
      if (!this.#before(child, node)) break
      nodes[index] = child
      child.index = index
      index = below
    }
    nodes[index] = node
    node.index = index
  }
}

export interface HeapNode<T> {
  readonly key: number
  readonly value: T
  readonly order: number
  /** Its place in the heap, -1 once it has left. */
  index: number
}
