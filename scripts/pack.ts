// Builds dist/ for the package: what src/main.ts reaches, as plain JavaScript that runs on every Node from 22.15 up.
//
// Types are blanked out rather than compiled away, so that a line and column in dist/ are those of the source. Only what
// is imported from the entries is taken: no tests, no test data, no simulator.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const src = join(root, 'src')
const dist = join(root, 'dist')
const ENTRIES = ['main.ts', 'client/index.ts']

// The stripping is marked experimental; its outcome is checked by running the package (compat/package.ts).
process.removeAllListeners('warning')
process.on('warning', warning => {
  if (warning.name !== 'ExperimentalWarning') process.stderr.write(`${warning.stack ?? warning.message}\n`)
})

/** `#folder/file.ts` and `./file.ts`, in import, export … from, import() and new URL(…, import.meta.url). */
const SPECIFIER = /(\bfrom\s*|\bimport\s*\(?\s*|\bnew URL\(\s*)(['"])((?:#|\.\.?\/)[^'"\n]+\.ts)\2/g

function resolve(specifier: string, from: string): string {
  const path = specifier.startsWith('#') ? join(src, specifier.slice(1)) : join(dirname(from), specifier)
  if (!existsSync(path)) throw new Error(`${relative(root, from)}: ${specifier} is not there`)
  if (relative(src, path).startsWith('..')) throw new Error(`${relative(root, from)}: ${specifier} leaves src/`)
  return path
}

function build(source: string): string[] {
  const code = stripTypeScriptTypes(readFileSync(source, 'utf8'))
  const reached: string[] = []
  const rewritten = code.replaceAll(SPECIFIER, (_, before: string, quote: string, specifier: string) => {
    const target = resolve(specifier, source)
    reached.push(target)
    const path = relative(dirname(source), target).split(sep).join('/').replace(/\.ts$/, '.js')
    return `${before}${quote}${path.startsWith('.') ? path : `./${path}`}${quote}`
  })
  const left = /['"]#[a-z]+\/[^'"\n]+\.ts['"]/.exec(rewritten)
  if (left !== null) throw new Error(`${relative(root, source)}: ${left[0]} would not be found in the package`)
  const target = join(dist, relative(src, source)).replace(/\.ts$/, '.js')
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, rewritten)
  return reached
}

const todo = ENTRIES.map(entry => join(src, entry)).filter(existsSync)
if (todo.length === 0) throw new Error('src/main.ts is not there: nothing to pack')
rmSync(dist, { recursive: true, force: true })
const built = new Set(todo)
for (const source of built) for (const reached of build(source)) built.add(reached)
process.stderr.write(`pack: ${built.size} files in dist/\n`)
