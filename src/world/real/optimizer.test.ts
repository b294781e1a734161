import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

test('the flags that are set are known to the V8 that runs', () => {
  const code = `import { optimizeSoon } from '${new URL('./optimizer.ts', import.meta.url)}'; optimizeSoon()`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' })
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
})
