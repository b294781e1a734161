import { Command, CommanderError, Option } from 'commander'
import { VERSION } from '#base/version.ts'
import { ClientError } from '#client/errors.ts'
import { UsageError } from './context.ts'
import { remark } from './output.ts'

export interface CliDoors {
  /** Runs a node with the arguments behind `start`, until it is stopped; returns the exit code. */
  readonly start: (args: readonly string[]) => Promise<number>
}

const EXIT_OK = 0
const EXIT_FAILED = 1
const EXIT_USAGE = 2

interface CommandModule {
  readonly command: (program: Command, doors: CliDoors) => void
}

/** The commands, each in a file that is loaded only when it is used: a start costs what it needs. */
export const COMMANDS: readonly { name: string; summary: string; load: () => Promise<CommandModule> }[] = [
  {
    name: 'topics',
    summary: 'list, create, describe, alter, move and delete topics',
    load: () => import('./commands/topics.ts'),
  },
  { name: 'produce', summary: 'write records to a topic', load: () => import('./commands/produce.ts') },
  { name: 'consume', summary: 'read records of a topic', load: () => import('./commands/consume.ts') },
  {
    name: 'groups',
    summary: 'list, describe, reset and delete consumer groups',
    load: () => import('./commands/groups.ts'),
  },
  { name: 'configs', summary: 'describe and change settings', load: () => import('./commands/configs.ts') },
  {
    name: 'cluster',
    summary: 'describe nodes, quorum and partitions; elect leaders, change voters',
    load: () => import('./commands/cluster.ts'),
  },
  { name: 'doctor', summary: 'check what a client would meet', load: () => import('./commands/doctor.ts') },
  {
    name: 'completion',
    summary: 'print a completion script for a shell',
    load: () => import('./commands/completion.ts'),
  },
]

const EXAMPLES = `
Examples:
  tidemark start                                run a broker on localhost:9092
  tidemark topics create greetings -p 3         make a topic
  tidemark produce greetings hello              write a record
  tidemark consume greetings                    read what is there
  tidemark consume greetings -f                 and what comes

TIDEMARK_BOOTSTRAP sets the address for all commands. Every command takes --help and --json.
Exit codes: 0 it worked, 1 it failed, 2 the command was not understood.`

/** Runs one command line (without the program's name) and returns the exit code. Never rejects. */
export async function runCli(given: readonly string[], doors: CliDoors): Promise<number> {
  const argv = withoutHelpWord(given)
  // A reader that has seen enough, such as head, is no failure.
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', endOfReader)
  const json = argv.includes('--json')
  try {
    const name = firstWord(argv)
    if (name === 'start') return await doors.start(argv.filter((_, at) => at !== argv.indexOf('start')))
    const wanted = COMMANDS.filter(command => command.name === name)
    const program = await buildProgram(wanted, doors)
    if (json) silenceErrors(program)
    if (argv.length === 0) {
      program.outputHelp()
      return EXIT_USAGE
    }
    await program.parseAsync([...argv], { from: 'user' })
    return typeof process.exitCode === 'number' ? process.exitCode : EXIT_OK
  } catch (error) {
    return report(error, json)
  }
}

function endOfReader(error: Error): void {
  if ('code' in error && error.code === 'EPIPE') process.exit(EXIT_OK)
  throw error
}

/** The program with these commands in full, and the others by name. */
export async function buildProgram(wanted: readonly (typeof COMMANDS)[number][], doors: CliDoors): Promise<Command> {
  const program = new Command('tidemark')
    .description('A distributed, replicated commit log that speaks the Kafka protocol.')
    .version(VERSION)
    .addOption(
      new Option('-b, --bootstrap <addresses>', 'brokers to dial first: host:port, several by commas')
        .env('TIDEMARK_BOOTSTRAP')
        .default('localhost:9092'),
    )
    .option('--json', 'print JSON')
    .addOption(
      new Option('--timeout <ms>', 'how long to try, in milliseconds').default(30_000).argParser(text => {
        const value = Number(text)
        if (!Number.isSafeInteger(value) || value < 1)
          throw new UsageError(`--timeout must be milliseconds, not "${text}"`)
        return value
      }),
    )
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('(--help shows how)')
    .showSuggestionAfterError()
  program.command('start').description('run a broker until it is told to stop')
  for (const each of COMMANDS) {
    if (wanted.includes(each)) (await each.load()).command(program, doors)
    else program.command(each.name).description(each.summary)
  }
  overrideExit(program)
  return program
}

function overrideExit(command: Command): void {
  command.exitOverride()
  for (const each of command.commands) overrideExit(each)
}

/** With --json what is wrong with a command is told by {@link report}, as an object. */
function silenceErrors(command: Command): void {
  command.configureOutput({ outputError: () => {} }).showHelpAfterError(false)
  for (const each of command.commands) silenceErrors(each)
}

/** `help topics create` asks for what `topics create --help` says. */
function withoutHelpWord(argv: readonly string[]): readonly string[] {
  const words = argv.slice(1).filter(word => !word.startsWith('-'))
  return argv[0] === 'help' && words.length > 0 ? [...words, '--help'] : argv
}

/** The word that names the command: the first that is no option and no option's value. */
function firstWord(argv: readonly string[]): string | undefined {
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word === '-b' || word === '--bootstrap' || word === '--timeout') at++
    else if (!word.startsWith('-')) return word
  }
  return undefined
}

function report(error: unknown, json: boolean): number {
  if (error instanceof CommanderError) {
    // Help and version were printed, and without --json so was what is wrong.
    if (json && error.exitCode !== 0) {
      const message = error.message.replace(/^error: /, '').replaceAll(/\s+/g, ' ')
      remark(JSON.stringify({ error: { code: 'USAGE', message, retriable: false } }))
    }
    return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE
  }
  if (error instanceof UsageError) {
    const { message, hint } = error
    if (json) remark(JSON.stringify({ error: { code: 'USAGE', message, retriable: false, hint } }))
    else {
      remark(`error: ${message}`)
      if (hint !== undefined) remark(`hint: ${hint}`)
    }
    return EXIT_USAGE
  }
  if (!(error instanceof ClientError)) throw error
  const { code, message, hint, retriable } = error
  if (json) remark(JSON.stringify({ error: { code, message, retriable, ...(hint === undefined ? {} : { hint }) } }))
  else {
    remark(`error: ${message} (${code})`)
    if (hint !== undefined) remark(`hint: ${hint}`)
  }
  return code === 'INVALID_ARGUMENT' ? EXIT_USAGE : EXIT_FAILED
}
