import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { BROKER_CONFIGS } from '#core/config/broker.ts'
import { GROUP_CONFIGS } from '#core/config/group.ts'
import { TOPIC_CONFIGS } from '#core/config/topic.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Who may import whom (design: the layering). A folder may always import itself. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  protocol: ['base'],
  records: ['base'],
  core: ['base', 'protocol', 'records'],
  world: ['base'],
  storage: ['base', 'records', 'world'],
  network: ['base', 'protocol', 'world'],
  broker: ['base', 'protocol', 'records', 'core', 'world', 'storage', 'network'],
  controller: ['base', 'protocol', 'records', 'core', 'world', 'storage', 'network'],
  client: ['base', 'protocol', 'records', 'core', 'world', 'network'],
  cli: ['base', 'client', 'world/real'],
  console: ['base', 'client'],
  sim: [
    'base',
    'protocol',
    'records',
    'core',
    'world',
    'storage',
    'network',
    'broker',
    'controller',
    'client',
    'node.ts',
  ],
  'node.ts': ['base', 'broker', 'controller', 'core', 'storage', 'world'],
  'start.ts': ['node.ts', 'start-failure.ts', 'start', 'base', 'core', 'world'],
  start: ['node.ts', 'start-failure.ts', 'base', 'core', 'world'],
  'start-failure.ts': [],
  'main.ts': ['start.ts', 'cli'],
}

/** Where `node:` modules and packages may appear besides tests. */
const MAY_USE_NODE = [
  /^src\/world\/real\//,
  /^src\/records\/compression/,
  /^src\/records\/crc\.ts$/,
  /^src\/cli\//,
  /^src\/console\//,
  /^src\/sim\/main\.ts$/,
  /^src\/(?:main|start)\.ts$/,
  /^src\/start\//,
  // What tests share.
  /^src\/(?:.+\/)?testing\//,
]

interface Source {
  readonly path: string
  readonly text: string
  readonly imports: readonly string[]
}

function* filesBelow(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === 'testdata' || entry.name === 'node_modules') continue
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* filesBelow(path)
    else if (entry.name.endsWith('.ts')) yield path
  }
}

const sources: Source[] = [...filesBelow(join(root, 'src'))].map(path => {
  const text = readFileSync(path, 'utf8')
  const imports = [
    ...text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^'"\n]*(?:\{[^}]*\})?[^'"\n]*from\s+'([^']+)'/g),
  ].map(match => match[1] as string)
  const lazy = [...text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)].map(match => match[1] as string)
  return { path: relative(root, path), text, imports: [...imports, ...lazy] }
})

const isTest = (path: string): boolean => path.endsWith('.test.ts')

function folderOf(path: string): string {
  // A file that lies in no folder stands for itself, and its test with it.
  return (path.split('/')[1] as string).replace(/\.test\.ts$/, '.ts')
}

test('folders import only what the layering allows, by # across folders and ./ inside one', () => {
  const wrong: string[] = []
  for (const { path, imports } of sources) {
    const folder = folderOf(path)
    for (const name of imports) {
      if (name.startsWith('.')) {
        const target = relative(root, join(root, dirname(path), name))
        if (folderOf(target) !== folder && !(MAY_IMPORT[folder] ?? []).includes(folderOf(target)))
          wrong.push(`${path}: ${name} leaves its folder; write #folder/file.ts`)
        continue
      }
      if (!name.startsWith('#')) continue
      const target = name.slice(1)
      const into = target.split('/')[0] as string
      if (into === folder) wrong.push(`${path}: ${name} is in its own folder; write ./file.ts`)
      else if (isTest(path)) continue
      else if (!(MAY_IMPORT[folder] ?? []).some(may => target === may || target.startsWith(`${may}/`)))
        wrong.push(`${path}: ${folder} may not import ${name}`)
      else if (target.startsWith('world/') && target !== 'world/world.ts' && !mayOpenWorld(path, target))
        wrong.push(`${path}: ${name} is not an interface`)
    }
  }
  assert.deepEqual(wrong, [])
})

function mayOpenWorld(path: string, target: string): boolean {
  const folder = folderOf(path)
  // What tests share runs on the fakes, as tests do.
  if (path.includes('/testing/')) return target.startsWith('world/fake/')
  if (folder === 'start.ts' || folder === 'start' || folder === 'cli') return target.startsWith('world/real/')
  return folder === 'sim' && target.startsWith('world/fake/')
}

test('node: modules and packages appear only behind the doors', () => {
  const wrong = sources
    .filter(({ path }) => !isTest(path) && !MAY_USE_NODE.some(may => may.test(path)))
    .flatMap(({ path, imports }) => imports.filter(name => !/^[#.]/.test(name)).map(name => `${path}: ${name}`))
  assert.deepEqual(wrong, [])
})

/** Words that would let the world into blind code or chance into a replay, and who may say them. */
const BANNED: readonly { readonly word: RegExp; readonly where: RegExp; readonly instead: string }[] = [
  {
    word: /\bDate\.now\(|\bperformance\.now\(|\bnew Date\(\)/,
    where: /^src\/(?!world\/real|cli|console)/,
    instead: 'the Clock of the world, or `now` as an argument',
  },
  { word: /\bMath\.random\(/, where: /^src\//, instead: 'the Chance of the world, or a SeededRandom' },
  {
    word: /\bset(?:Timeout|Interval|Immediate)\(/,
    where: /^src\/(?!world\/|cli|console|sim)/,
    instead: 'Clock.after or Clock.soon',
  },
  {
    word: /\basync\b|\bawait\b|\bPromise\b/,
    where: /^src\/(?:core|base|protocol)\//,
    instead: 'effects: this code is synchronous',
  },
  { word: /:\s*any\b|\bas any\b|<any>/, where: /^src\//, instead: 'a type' },
  {
    word: /\b(?:class|interface)\s+\w*(?:Manager|Helper|Util|Utils|Impl)\b/,
    where: /^src\//,
    instead: 'a noun of the protocol',
  },
  { word: /\b(?:TODO|FIXME|XXX)\b/, where: /^src\//, instead: 'an issue, or the work itself' },
  {
    word: /['"`]\/(?:home|root|Users)\//,
    where: /^(?:src|scripts|bench|compat)\//,
    instead: 'nothing: the project names no machine',
  },
]

test('no word that opens a door by itself', () => {
  const wrong: string[] = []
  for (const { path, text } of sources) {
    if (isTest(path) || path === 'src/tidy.test.ts') continue
    const code = text.replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, comment => comment.replaceAll(/[^\n]/g, ' '))
    for (const { word, where, instead } of BANNED) {
      if (!where.test(path)) continue
      const at = code.search(word)
      if (at >= 0) wrong.push(`${path}:${code.slice(0, at).split('\n').length}: ${word} — write ${instead}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('file names are lower case with dashes', () => {
  assert.deepEqual(
    sources.map(({ path }) => path).filter(path => !/^[a-z0-9/.-]+$/.test(path)),
    [],
  )
})

test('a setting that the code reads is not said to be without effect', () => {
  const idle = [...BROKER_CONFIGS.values(), ...TOPIC_CONFIGS.values(), ...GROUP_CONFIGS.values()].filter(
    ({ implemented, needs }) => !implemented && needs === undefined,
  )
  const readers = sources.filter(({ path }) => !isTest(path) && !path.startsWith('src/core/config/'))
  const wrong = idle.flatMap(({ name }) =>
    readers.filter(({ text }) => text.includes(`'${name}'`)).map(({ path }) => `${name}: read by ${path}`),
  )
  assert.deepEqual(wrong, [])
})
