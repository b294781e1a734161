// What `tidemark` runs. Commands load what they need and no more, so that a short one starts quickly.
const [command, ...rest] = process.argv.slice(2)
const { start } = await import('./start.ts')
const overrides: string[] = []
let config: string | undefined
for (let i = 0; i < rest.length; i++) {
  if (rest[i] === '--override') overrides.push(rest[++i] as string)
  if (rest[i] === '--config') config = rest[++i]
}
if (command === 'start') process.exitCode = await start({ overrides, config })
