import type { PlanPartition } from '#client/admin/reassignments.ts'
import { UsageError } from './context.ts'

/** Kafka's form of a reassignment, as kafka-reassign-partitions takes and prints it. */
export interface ReassignmentFile {
  readonly version: 1
  readonly partitions: readonly PlanPartition[]
}

export function toReassignmentFile(partitions: readonly PlanPartition[]): ReassignmentFile {
  return {
    version: 1,
    partitions: partitions.map(({ topic, partition, replicas }) => ({ topic, partition, replicas })),
  }
}

/** Reads Kafka's form; what else the file holds is passed over. Throws a UsageError that names what is wrong. */
export function parseReassignmentFile(text: string): PlanPartition[] {
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch (error) {
    throw new UsageError(`the file is no JSON: ${error instanceof Error ? error.message : String(error)}`, FORM)
  }
  const { version, partitions } = isObject(file) ? file : {}
  if (version !== undefined && version !== 1) throw new UsageError(`version ${String(version)} is not known`, FORM)
  if (!Array.isArray(partitions)) throw new UsageError('the file has no list "partitions"', FORM)
  const seen = new Set<string>()
  return partitions.map((each: unknown, at) => {
    const { topic, partition, replicas, log_dirs: folders } = isObject(each) ? each : {}
    const where = `partitions[${at}]`
    if (typeof topic !== 'string' || topic === '') throw new UsageError(`${where} has no "topic"`, FORM)
    if (!isWhole(partition)) throw new UsageError(`${where} has no "partition"`, FORM)
    const name = `${topic}-${partition}`
    if (seen.has(name)) throw new UsageError(`${name} is there twice`)
    seen.add(name)
    if (!Array.isArray(replicas) || replicas.length === 0 || !replicas.every(isWhole)) {
      throw new UsageError(`${name} has no "replicas", a list of brokers`, FORM)
    }
    if (new Set(replicas).size < replicas.length) throw new UsageError(`${name} has a broker twice in its replicas`)
    if (Array.isArray(folders) && folders.some(folder => folder !== 'any')) {
      throw new UsageError(`${name} names folders in "log_dirs"`, 'moving replicas between folders is not there yet')
    }
    return { topic, partition, replicas }
  })
}

const FORM = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3]}]}'

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
