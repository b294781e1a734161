import { atLeast, boolean, type ConfigDefinition, clusterWide, int, needs, short } from './definition.ts'

/** Transactions. */
export const TRANSACTION_CONFIGS: readonly ConfigDefinition[] = [
  int(
    'transactional.id.expiration.ms',
    604800000,
    'Milliseconds without use after which a transactional id is forgotten.',
    atLeast(1),
  ),
  int(
    'transaction.max.timeout.ms',
    900000,
    'Longest time-out, in milliseconds, that a producer may ask for its transactions.',
    atLeast(1),
  ),
  int(
    'transaction.abort.timed.out.transaction.cleanup.interval.ms',
    10000,
    'Milliseconds between two looks for transactions that are over time.',
    atLeast(1),
  ),
  int(
    'transaction.remove.expired.transaction.cleanup.interval.ms',
    3600000,
    'Milliseconds between two looks for transactional ids to forget.',
    atLeast(1),
  ),
  int(
    'transaction.state.log.num.partitions',
    50,
    'Partitions of the topic with the state of transactions; fixed once it exists.',
    atLeast(1),
  ),
  short(
    'transaction.state.log.replication.factor',
    3,
    'Copies of the topic with the state of transactions; fewer while the cluster has fewer brokers.',
    atLeast(1),
  ),
  int(
    'transaction.state.log.min.isr',
    2,
    'In-sync replicas that a write to it needs; fewer while it has fewer copies.',
    atLeast(1),
  ),
  int('transaction.state.log.segment.bytes', 104857600, 'Bytes of its segments.', atLeast(1)),
  int('transaction.state.log.load.buffer.size', 5242880, 'Bytes that are read at once when it is loaded.', atLeast(1)),
  boolean(
    'transaction.partition.verification.enable',
    true,
    'Ask the coordinator before a partition takes the first batch of a transaction.',
    clusterWide,
  ),
  boolean(
    'transaction.two.phase.commit.enable',
    false,
    'Allow transactions without time-out that take part in a commit of others (KIP-939).',
    needs('two-phase commit'),
  ),
  int(
    'add.partitions.to.txn.retry.backoff.ms',
    20,
    'Milliseconds before a broker asks the coordinator again whether a partition belongs to a transaction.',
    atLeast(1),
  ),
  int('add.partitions.to.txn.retry.backoff.max.ms', 100, 'Milliseconds that such asking goes on.', atLeast(0)),
]
