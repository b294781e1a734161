/** Puts another method in the place of one, and returns what puts it back. */
export function replace<T extends object, K extends keyof T>(of: T, name: K, by: (original: T[K]) => T[K]): () => void {
  const original = of[name]
  of[name] = by(original)
  return () => {
    of[name] = original
  }
}

/** Puts another getter in the place of one. */
export function replaceGetter<T extends object, K extends keyof T>(
  of: T,
  name: K,
  by: (this: T, original: () => T[K]) => T[K],
): () => void {
  const property = Object.getOwnPropertyDescriptor(of, name)
  const get = property?.get
  if (property === undefined || get === undefined) throw new Error(`${String(name)} is no getter`)
  Object.defineProperty(of, name, {
    ...property,
    get(this: T): T[K] {
      return by.call(this, () => get.call(this) as T[K])
    },
  })
  return () => {
    Object.defineProperty(of, name, property)
  }
}

/** Several at once. */
export function all(...undo: readonly (() => void)[]): () => void {
  return () => {
    for (const each of undo) each()
  }
}
