import type { NodeId } from '#base/units.ts'
import { isUuid, type Uuid } from '#base/uuid.ts'
import type { Disk } from '#world/world.ts'
import { readText, replaceFile } from './files.ts'

export const META_PROPERTIES_FILE = 'meta.properties'

/** A log folder that belongs to another node or cluster, or whose owner still runs: for whoever starts the process to solve. */
export class ForeignFolderError extends Error {
  override readonly name = 'ForeignFolderError'
}

/**
 * `meta.properties` of a log folder: whose it is. Version 1 is KRaft's; `directory.id` came later and may be missing, and
 * `cluster.id` is where the node waits for the first leader of its quorum to found the cluster.
 */
export interface MetaProperties {
  readonly clusterId: string | undefined
  readonly nodeId: NodeId
  readonly directoryId: Uuid | undefined
}

/** Undefined for a folder that was never used, or whose file says nothing that can be used. */
export async function readMetaProperties(disk: Disk, folder: string): Promise<MetaProperties | undefined> {
  const text = await readText(disk, `${folder}/${META_PROPERTIES_FILE}`)
  if (text === undefined) return undefined
  const properties = new Map<string, string>()
  for (const line of text.split('\n')) {
    const match = /^\s*([^#!=:\s]+)\s*[=:]\s*(.*?)\s*$/.exec(line)
    if (match !== null) properties.set(match[1] as string, (match[2] as string).replaceAll('\\', ''))
  }
  const clusterId = properties.get('cluster.id') || undefined
  const nodeId = /^\d+$/.exec(properties.get('node.id') ?? properties.get('broker.id') ?? '')?.[0]
  const directoryId = properties.get('directory.id')
  if (nodeId === undefined) return undefined
  return {
    clusterId,
    nodeId: Number(nodeId),
    directoryId: directoryId !== undefined && isUuid(directoryId) ? directoryId : undefined,
  }
}

export function writeMetaProperties(
  disk: Disk,
  folder: string,
  { clusterId, nodeId, directoryId }: MetaProperties,
): Promise<void> {
  const lines = [`directory.id=${directoryId}`, `node.id=${nodeId}`, 'version=1']
  if (clusterId !== undefined) lines.unshift(`cluster.id=${clusterId}`)
  return replaceFile(disk, folder, META_PROPERTIES_FILE, `#\n${lines.join('\n')}\n`)
}

/** Throws a ForeignFolderError where the folder is another node's, or another cluster's, as far as both are known. */
export function checkOwner(path: string, found: MetaProperties, nodeId: NodeId, clusterId: string | undefined): void {
  if (found.nodeId !== nodeId) {
    throw new ForeignFolderError(
      `${path} belongs to node ${found.nodeId}, and this is node ${nodeId}; correct node.id or choose another folder`,
    )
  }
  if (clusterId !== undefined && found.clusterId !== undefined && found.clusterId !== clusterId) {
    throw new ForeignFolderError(
      `${path} belongs to cluster ${found.clusterId}, and this node to ${clusterId}; choose another folder`,
    )
  }
}
