import type { Command } from 'commander'
import { byteRate, wholeNumber } from '../arguments.ts'
import { UsageError, wantsJson, withClient } from '../context.ts'
import type { ReassignOptions } from '../reassignment.ts'

export function addReassign(topics: Command): void {
  topics
    .command('reassign')
    .description('move replicas to other brokers: plan it, do it, see how far it is, cancel it')
    .option('--brokers <ids>', 'where all replicas shall be: ids by commas, or "all" that live')
    .option('--topics <names>', 'only these topics, by commas')
    .option('-r, --replicas <count>', 'how many each partition shall have; as many as now without it', positive)
    .option('--file <path>', "a plan in the form of Kafka's tool, as --json prints it; - reads standard input")
    .option('--execute', 'do what is planned; only shown without it')
    .option('--throttle <bytes/s>', 'with --execute: at most so much for copies at each broker, such as 50M', byteRate)
    .option('--wait', 'with --execute, --status: show the progress until all is done')
    .option('--status', 'how far the copies are, and how long they will take')
    .option('--cancel', 'take back what is not done; replicas stay where they were')
    .option('--unthrottle', 'take away what --throttle has set')
    .addHelpText(
      'after',
      `
A plan puts the replicas of a partition on different hosts and racks, makes replicas and leaders even by topic and in
all, and copies as little as that takes. Nothing is removed before its new copies are in sync.

Examples:
  tidemark topics reassign --brokers all                           plan: spread over all brokers
  tidemark topics reassign --brokers 1,2,3 --execute --wait        take everything off the others
  tidemark topics reassign --brokers all --replicas 3 --execute    three copies of everything
  tidemark topics reassign --brokers all --json > plan.json        keep a plan, change it,
  tidemark topics reassign --file plan.json --execute --throttle 50M
  tidemark topics reassign --status --wait
  tidemark topics reassign --cancel`,
    )
    .action(async (options: ReassignOptions, self: Command) => {
      checkOptions(options)
      const json = wantsJson(self)
      const [{ cancel, planAndExecute, unthrottle }, { followProgress, showProgress }] = await Promise.all([
        import('../reassignment.ts'),
        import('../reassignment-progress.ts'),
      ])
      await withClient(self, async client => {
        if (options.cancel === true) return await cancel(client, options, json)
        if (options.unthrottle === true) return await unthrottle(client, json)
        if (options.status === true) {
          if (options.wait !== true) return await showProgress(client, json)
          await followProgress(client, json)
          return await unthrottle(client, json, true)
        }
        await planAndExecute(client, options, json)
      })
    })
}

const positive = wholeNumber('--replicas', 1)

function checkOptions(options: ReassignOptions): void {
  const modes = (['brokers', 'file', 'status', 'cancel', 'unthrottle'] as const).filter(
    mode => options[mode] !== undefined,
  )
  if (modes.length === 0) {
    throw new UsageError(
      'say what to do: --brokers or --file for a plan, --status, --cancel or --unthrottle',
      'tidemark topics reassign --brokers all plans to spread everything over all brokers',
    )
  }
  if (modes.length > 1) throw new UsageError(`${modes.map(mode => `--${mode}`).join(' and ')} exclude each other`)
  const plans = options.brokers !== undefined || options.file !== undefined
  if (options.replicas !== undefined && options.brokers === undefined) {
    throw new UsageError('--replicas needs --brokers, among which they are chosen')
  }
  if (options.topics !== undefined && options.brokers === undefined && options.cancel === undefined) {
    throw new UsageError('--topics goes with --brokers or --cancel')
  }
  if (options.execute === true && !plans) throw new UsageError('--execute needs a plan: --brokers or --file')
  if (options.throttle !== undefined && options.execute !== true) throw new UsageError('--throttle needs --execute')
  if (options.wait === true && options.execute !== true && options.status !== true) {
    throw new UsageError('--wait goes with --execute or --status')
  }
}
