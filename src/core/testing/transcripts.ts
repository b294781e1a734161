import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

/** The machine of one transcript. */
export interface Script {
  /** What a command led to: lines that end with a newline. */
  run(command: string): string
  /** After the last command. */
  end?(): void
}

/**
 * A test for each file of a folder. It consists of blocks with an empty line between them: commands and comments (`#`), a
 * rule of dashes, and the full reaction, which TIDEMARK_REWRITE=1 writes anew.
 */
export function testTranscripts(folder: string, begin: () => Script): void {
  for (const file of readdirSync(folder).filter(name => name.endsWith('.txt'))) {
    test(`transcript ${file}`, () => {
      const path = join(folder, file)
      const script = begin()
      const written = readFileSync(path, 'utf8')
      const blocks = written.trim().split(/\n{2,}/)
      const rewritten = `${blocks.map(block => played(block, script)).join('\n\n')}\n`
      script.end?.()
      if (process.env.TIDEMARK_REWRITE === '1') writeFileSync(path, rewritten)
      else assert.equal(rewritten, written)
    })
  }
}

function played(block: string, script: Script): string {
  const lines = block.trim().split('\n')
  const rule = lines.indexOf('----')
  const head = rule < 0 ? lines : lines.slice(0, rule)
  const commands = head.filter(line => !line.startsWith('#') && line !== '')
  if (commands.length === 0) return head.join('\n')
  const reaction = commands.map(command => script.run(command)).join('')
  return [...head, '----', reaction.trimEnd()].join('\n').trimEnd()
}
