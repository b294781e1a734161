import { type Command, Option } from 'commander'
import { collect, wholeNumber } from '../arguments.ts'
import type { CliDoors, StartOptions } from '../cli.ts'

interface Flags extends Omit<StartOptions, 'overrides'> {
  readonly override?: readonly string[]
}

export function command(program: Command, { start }: CliDoors): void {
  program
    .command('start')
    .description('run a broker until it is told to stop')
    .option('-c, --config <file>', "a properties file with Kafka's keys")
    .option('-o, --override <key=value>', 'one setting, before the file and the environment; may be repeated', collect)
    .option('-d, --data <folder>', 'where the data is (log.dirs); an empty folder becomes a cluster')
    .option('-p, --port <port>', 'the port for clients', wholeNumber('--port'))
    .addOption(new Option('--log-level <level>', 'what is logged').choices(['debug', 'info', 'warn', 'error']))
    .addOption(new Option('--log-format <format>', 'for people or for programs').choices(['line', 'json']))
    .addHelpText(
      'after',
      `
Examples:
  tidemark start                                      on port 9092, data in ./data
  tidemark start -d /var/lib/tidemark -p 19092
  tidemark start -c server.properties -o log.retention.hours=24`,
    )
    .action(async ({ override, ...options }: Flags) => {
      process.exitCode = await start({ ...options, overrides: override ?? [] })
    })
}
