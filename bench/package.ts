/** Builds dist/, which is what the package runs. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from './server.ts'

export async function buildPackage(): Promise<void> {
  await promisify(execFile)(process.execPath, [join(root, 'scripts', 'pack.ts')], { cwd: root, timeout: 60_000 })
}
