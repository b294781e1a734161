import { Argument, type Command } from 'commander'
import { buildProgram, type CliDoors, COMMANDS } from '../cli.ts'
import { print } from '../output.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

export function command(program: Command, doors: CliDoors): void {
  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
Examples:
  source <(tidemark completion bash)          in ~/.bashrc
  source <(tidemark completion zsh)           in ~/.zshrc, after compinit
  tidemark completion fish > ~/.config/fish/completions/tidemark.fish`,
    )
    .action(async (shell: (typeof SHELLS)[number]) => {
      const lines = wordsOf(await buildProgram(COMMANDS, doors))
      print(shell === 'fish' ? fish(lines) : shell === 'zsh' ? zsh(lines) : bash(lines))
    })
}

/** Words that may follow a path of commands. */
interface Words {
  readonly path: string
  readonly words: readonly { readonly word: string; readonly about: string }[]
}

function wordsOf(command: Command, path = ''): Words[] {
  const words = command.commands.map(each => ({ word: each.name(), about: each.description() }))
  const options = [...(path === '' ? [] : globalsOf(command)), ...command.options]
    .filter(({ long }) => long !== undefined && long !== null)
    .map(({ long, description }) => ({ word: long ?? '', about: description }))
  const here = { path, words: [...words, ...options, { word: '--help', about: 'show help' }] }
  return [here, ...command.commands.flatMap(each => wordsOf(each, `${path} ${each.name()}`.trim()))]
}

function globalsOf(command: Command): Command['options'] {
  let root: Command = command
  while (root.parent !== null) root = root.parent
  return root.options.filter(({ long }) => long !== '--version')
}

/** Finds the path of commands in the words so far; options and their values are no part of it. */
const FIND_PATH = `  local at="" word candidate
  for word in "\${words[@]:1:$((current - 1))}"; do
    case "$word" in -*) continue ;; esac
    candidate="\${at:+$at }$word"
    case "$candidate" in`

function script(lines: readonly Words[]): string {
  const paths = lines.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`)
  const cases = lines.map(({ path, words }) => `    '${path}') found="${words.map(({ word }) => word).join(' ')}" ;;`)
  return `${FIND_PATH}
      ${paths.join('|')}) at="$candidate" ;;
    esac
  done
  case "$at" in
${cases.join('\n')}
  esac`
}

function bash(lines: readonly Words[]): string {
  return `_tidemark() {
  local found="" current=$COMP_CWORD
  local words=("\${COMP_WORDS[@]}")
${script(lines)}
  COMPREPLY=($(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _tidemark tidemark`
}

function zsh(lines: readonly Words[]): string {
  return `#compdef tidemark
_tidemark() {
  local found="" current=$((CURRENT - 1))
${script(lines)}
  compadd -- \${=found}
}
compdef _tidemark tidemark`
}

function fish(lines: readonly Words[]): string {
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const rules = lines.flatMap(({ path, words }) => {
    const known = lines.filter(each => each.path.startsWith(path === '' ? '' : `${path} `) && each.path !== path)
    const next = known.map(each => each.path.slice(path.length).trim().split(' ')[0]).join(' ')
    const seen = path === '' ? [] : path.split(' ').map(word => `__fish_seen_subcommand_from ${word}`)
    const conditions = [...seen, ...(next === '' ? [] : [`not __fish_seen_subcommand_from ${next}`])].join('; and ')
    return words.map(({ word, about }) => {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
      const condition = conditions === '' ? '' : ` -n ${quoted(conditions)}`
      return `complete -c tidemark -f${condition} ${what} -d ${quoted(about)}`
    })
  })
  return rules.join('\n')
}
