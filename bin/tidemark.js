#!/usr/bin/env node
// Plain JavaScript that an old Node can still read, so that it can say what is missing.

function fail(message) {
  process.stderr.write(`tidemark: ${message}\n`)
  process.exitCode = 1
}

async function main() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  // 22.15 is where zstd came; of the releases between, 23.8.
  const old = major < 22 || (major === 22 && minor < 15) || (major === 23 && minor < 8)
  if (old) {
    fail(`needs Node 22.15 or newer, and this is Node ${process.versions.node} (${process.execPath})`)
    return
  }
  const { existsSync } = await import('node:fs')
  const entry = new URL('../dist/main.js', import.meta.url)
  if (!existsSync(entry)) {
    fail('this is a checkout, not a package: there is no dist/. Run from source with `npm run tidemark -- ARGUMENTS`')
    return
  }
  // Without it, every start compiles the same code again.
  const { enableCompileCache } = await import('node:module')
  enableCompileCache()
  await import(entry.href)
}

main()
