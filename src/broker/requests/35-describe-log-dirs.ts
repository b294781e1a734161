import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import type { Partition } from '../partitions/partition.ts'

/** DescribeLogDirs (35), versions 1-5. Which partitions lie in which folder, and how much room there is (v4). */
export function describeLogDirs(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeLogDirs,
    async handle(request) {
      const pieces = broker.turns.pieces()
      const wanted = request.topics && new Map<string, Set<number>>()
      for (const { topic, partitions } of request.topics ?? []) {
        const wait = pieces.next(1 + (partitions.length >> 2))
        if (wait) await wait
        const known = wanted?.get(topic)
        if (known === undefined) wanted?.set(topic, new Set(partitions))
        else for (const index of partitions) known.add(index)
      }
      const results = []
      for (const folder of broker.logFolders()) {
        const { path, online } = folder
        const errorCode = online ? ErrorCode.NONE : ErrorCode.KAFKA_STORAGE_ERROR
        const space = online ? await broker.spaceOf(path) : undefined
        const topics = new Map<string, Partition[]>()
        for (const partition of online ? broker.partitions.inFolder(path) : []) {
          const wait = pieces.next()
          if (wait) await wait
          if (wanted !== null && !wanted.get(partition.topic)?.has(partition.index)) continue
          const known = topics.get(partition.topic)
          if (known === undefined) topics.set(partition.topic, [partition])
          else known.push(partition)
        }
        results.push({
          errorCode,
          logDir: path,
          topics: [...topics].map(([name, partitions]) => ({
            name,
            partitions: partitions.map(({ index, log }) => ({
              partitionIndex: index,
              partitionSize: log.sizeInBytes,
              offsetLag: 0,
              isFutureKey: false,
            })),
          })),
          totalBytes: space?.total ?? -1,
          usableBytes: space?.free ?? -1,
        })
      }
      return { errorCode: ErrorCode.NONE, results }
    },
  })
}
