import { runCli } from '#cli/cli.ts'

// The node's own code is loaded only by `start`, so that every other command starts quickly.
process.exitCode = await runCli(process.argv.slice(2), {
  start: async args => (await import('./start.ts')).start(args),
})
