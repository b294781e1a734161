/**
 * What a client may do with a resource, as bits by Kafka's AclOperation. Without an authorizer everyone may do all that
 * there is to do with a resource of the kind.
 */
const READ = 3
const WRITE = 4
const CREATE = 5
const DELETE = 6
const ALTER = 7
const DESCRIBE = 8
const CLUSTER_ACTION = 9
const DESCRIBE_CONFIGS = 10
const ALTER_CONFIGS = 11
const IDEMPOTENT_WRITE = 12

const bits = (...operations: readonly number[]): number =>
  operations.reduce((sum, operation) => sum | (1 << operation), 0)

export const TOPIC_OPERATIONS = bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
export const GROUP_OPERATIONS = bits(READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
export const CLUSTER_OPERATIONS = bits(
  CREATE,
  ALTER,
  DESCRIBE,
  CLUSTER_ACTION,
  DESCRIBE_CONFIGS,
  ALTER_CONFIGS,
  IDEMPOTENT_WRITE,
)
