// Builds dist/ for the package: what src/main.ts reaches, as plain JavaScript that runs on every Node from 22.15 up.
//
// In few files: to find and open the 400 of the source takes a third of the time to a first answer. Code that only some
// commands need is in files of its own. Nothing is shortened, so that a stack trace says something, and each module's part
// begins with its path.
import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const dist = join(root, 'dist')
/** What is started, by the name of its file in dist/. */
const ENTRIES: Readonly<Record<string, string>> = {
  main: 'main.ts',
  worker: 'start/worker.ts',
  client: 'client/index.ts',
}

/** `new URL('./worker.ts', import.meta.url)` is another program: in the package it lies beside whoever starts it. */
const startedFiles: Plugin = {
  name: 'started-files',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8')
      const contents = source.replaceAll(/\bnew URL\('\.\/(\w+)\.ts', import\.meta\.url\)/g, (_, name: string) => {
        if (!(name in ENTRIES)) throw new Error(`${path}: ${name}.ts is started, and is no entry of the package`)
        return `new URL('./${name}.js', import.meta.url)`
      })
      return { contents, loader: 'ts' }
    })
  },
}

rmSync(dist, { recursive: true, force: true })
const { metafile } = await build({
  entryPoints: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, join(root, 'src', path)])),
  outdir: dist,
  absWorkingDir: root,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.15',
  packages: 'external',
  metafile: true,
  logLevel: 'warning',
  plugins: [startedFiles],
})
process.stderr.write(
  `pack: ${Object.keys(metafile.inputs).length} modules in ${Object.keys(metafile.outputs).length} files in dist/\n`,
)
