import type { BrokerConfigs, Overrides } from './broker-configs.ts'
import {
  atLeast,
  boolean,
  type ConfigDefinition,
  type ConfigProblem,
  type ConfigTable,
  checkedBy,
  int,
  oneOf,
  standsFor,
  string,
  tableOf,
  validateEach,
} from './definition.ts'

const DURATION = /^by_duration:P(?!$)(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d{1,9})?S)?)?$/i

const offsetReset = checkedBy('[latest, earliest, by_duration:PnDTnHnMn.nS]', ({ value }) =>
  value === 'latest' ||
  value === 'earliest' ||
  (String(value).startsWith('by_duration:') && DURATION.test(String(value)))
    ? undefined
    : 'must be latest, earliest or by_duration: with an ISO 8601 duration such as by_duration:PT1H',
)

/** Every configuration of a group (resource type GROUP, KIP-848, KIP-932, KIP-1071). What is not set comes from the broker. */
export const GROUP_CONFIGS: ConfigTable = tableOf(
  ...[
    int(
      'consumer.assignment.interval.ms',
      1000,
      "Milliseconds at least between two computations of a consumer group's assignment.",
      atLeast(0),
      standsFor('group.consumer.assignment.interval.ms'),
    ),
    int(
      'consumer.heartbeat.interval.ms',
      5000,
      'Milliseconds between heartbeats that members of a consumer group are told to keep.',
      atLeast(1),
      standsFor('group.consumer.heartbeat.interval.ms'),
    ),
    int(
      'consumer.session.timeout.ms',
      45000,
      'Milliseconds without a heartbeat after which a member of a consumer group is out.',
      atLeast(1),
      standsFor('group.consumer.session.timeout.ms'),
    ),
    int(
      'share.assignment.interval.ms',
      1000,
      "Milliseconds at least between two computations of a share group's assignment.",
      atLeast(0),
      standsFor('group.share.assignment.interval.ms'),
    ),
    string(
      'share.auto.offset.reset',
      'latest',
      'Where a share group begins in a partition that is new to it: `latest`, `earliest`, or `by_duration:` and how far back.',
      offsetReset,
    ),
    int(
      'share.delivery.count.limit',
      5,
      'Times that a record is handed out by a share group before it counts as undeliverable.',
      atLeast(2),
      standsFor('group.share.delivery.count.limit'),
    ),
    int(
      'share.heartbeat.interval.ms',
      5000,
      'Milliseconds between heartbeats that members of a share group are told to keep.',
      atLeast(1),
      standsFor('group.share.heartbeat.interval.ms'),
    ),
    string(
      'share.isolation.level',
      'read_uncommitted',
      'Whether a share group sees records of transactions that are open or aborted (`read_uncommitted`) or only committed ones (`read_committed`).',
      oneOf('read_committed', 'read_uncommitted'),
    ),
    int(
      'share.partition.max.record.locks',
      2000,
      'Records of one partition that a share group may have handed out at once.',
      atLeast(100),
      standsFor('group.share.partition.max.record.locks'),
    ),
    int(
      'share.record.lock.duration.ms',
      30000,
      'Milliseconds that a member of a share group has for a record before it is handed to another one.',
      atLeast(1000),
      standsFor('group.share.record.lock.duration.ms'),
    ),
    boolean(
      'share.renew.acknowledge.enable',
      true,
      'Let members of a share group renew the lock of a record that they need more time for.',
    ),
    int(
      'share.session.timeout.ms',
      45000,
      'Milliseconds without a heartbeat after which a member of a share group is out.',
      atLeast(1),
      standsFor('group.share.session.timeout.ms'),
    ),
    int(
      'streams.assignment.interval.ms',
      1000,
      "Milliseconds at least between two computations of a streams group's assignment.",
      atLeast(0),
      standsFor('group.streams.assignment.interval.ms'),
    ),
    int(
      'streams.heartbeat.interval.ms',
      5000,
      'Milliseconds between heartbeats that members of a streams group are told to keep.',
      atLeast(1),
      standsFor('group.streams.heartbeat.interval.ms'),
    ),
    int(
      'streams.initial.rebalance.delay.ms',
      3000,
      'Milliseconds that a new streams group waits for more members before its first assignment.',
      atLeast(0),
      standsFor('group.streams.initial.rebalance.delay.ms'),
    ),
    int(
      'streams.num.standby.replicas',
      0,
      'Warm copies of each stateful task of a streams group.',
      atLeast(0),
      standsFor('group.streams.num.standby.replicas'),
    ),
    int(
      'streams.session.timeout.ms',
      45000,
      'Milliseconds without a heartbeat after which a member of a streams group is out.',
      atLeast(1),
      standsFor('group.streams.session.timeout.ms'),
    ),
  ].map(definition => ({ ...definition, update: 'cluster-wide' }) as ConfigDefinition),
)

/** A group's value must lie between these keys of the broker, where they exist. */
function bounds(definition: ConfigDefinition): readonly [min: string, max: string] {
  const [, kind = '', rest = ''] = /^(\w+)\.(.+)$/.exec(definition.name) ?? []
  return [
    `group.${kind}.min.${rest}`,
    `group.${kind}.max.${rest === 'num.standby.replicas' ? 'standby.replicas' : rest}`,
  ]
}

/** Checks all overrides of one group as they would stand. Each problem is INVALID_CONFIG. */
export function validateGroupConfigs(entries: Overrides, broker: BrokerConfigs): ConfigProblem[] {
  const problems = validateEach('group', GROUP_CONFIGS, entries)
  if (problems.length > 0) return problems
  const effective = (name: string): number => {
    const synonym = GROUP_CONFIGS.get(name)?.synonyms?.[0]
    return Number(entries.get(name) ?? (synonym === undefined ? undefined : broker.text(synonym)))
  }
  for (const name of entries.keys()) {
    const definition = GROUP_CONFIGS.get(name)
    if (definition?.synonyms === undefined) continue
    const [min, max] = bounds(definition)
    const value = effective(name)
    if (broker.knows(min) && value < broker.number(min))
      problems.push({
        name,
        message: `${name} cannot be ${value}: the brokers allow at least ${broker.number(min)} (${min}).`,
      })
    if (broker.knows(max) && value > broker.number(max))
      problems.push({
        name,
        message: `${name} cannot be ${value}: the brokers allow at most ${broker.number(max)} (${max}).`,
      })
  }
  for (const kind of ['consumer', 'share', 'streams']) {
    const heartbeat = `${kind}.heartbeat.interval.ms`
    const session = `${kind}.session.timeout.ms`
    if ((entries.has(heartbeat) || entries.has(session)) && effective(heartbeat) >= effective(session))
      problems.push({
        name: heartbeat,
        message: `${heartbeat} (${effective(heartbeat)}) must be smaller than ${session} (${effective(session)}).`,
      })
  }
  return problems
}
