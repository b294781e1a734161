import type { NodeId } from '#base/units.ts'
import { type Uuid, uuidFromRandom } from '#base/uuid.ts'
import { type Chance, type Disk, type Lock, WorldError } from '#world/world.ts'
import { LOCK_FILE } from './log-folder.ts'
import {
  checkOwner,
  ForeignFolderError,
  META_PROPERTIES_FILE,
  type MetaProperties,
  readMetaProperties,
  writeMetaProperties,
} from './meta-properties.ts'

export interface MetadataFolderOptions {
  readonly disk: Disk
  readonly random: Chance
  readonly path: string
  readonly nodeId: NodeId
}

/**
 * `metadata.log.dir` where it is none of `log.dirs`: a folder with a lock and a `meta.properties` of its own, as Kafka has it.
 * Its `directory.id` is the one by which the quorum knows this node.
 */
export class MetadataFolder {
  readonly #options: MetadataFolderOptions
  readonly #lock: Lock
  #properties: MetaProperties | undefined
  /** It was nobody's before this start. */
  #isNew = false

  private constructor(options: MetadataFolderOptions, lock: Lock, properties: MetaProperties | undefined) {
    this.#options = options
    this.#lock = lock
    this.#properties = properties
  }

  /** Rejects with a ForeignFolderError where it is another's, with a WorldError where the disk fails. */
  static async claim(options: MetadataFolderOptions): Promise<MetadataFolder> {
    const { disk, path, nodeId } = options
    await disk.makeFolder(path)
    const lock = await disk.lock(`${path}/${LOCK_FILE}`).catch((error: unknown) => {
      if (!(error instanceof WorldError) || error.code !== 'EBUSY') throw error
      throw new ForeignFolderError(`${path} is in use by another process; stop it, or choose another metadata.log.dir`)
    })
    try {
      const properties = await readMetaProperties(disk, path)
      if (properties !== undefined) checkOwner(path, properties, nodeId, undefined)
      return new MetadataFolder(options, lock, properties)
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  /** What it says; undefined where it says nothing. */
  get clusterId(): string | undefined {
    return this.#properties?.clusterId
  }

  /** Undefined before it was settled. */
  get directoryId(): Uuid | undefined {
    return this.#properties?.directoryId
  }

  /**
   * It says whose it is from now on. `former`: of the first log folder, by which the quorum knows the node where it has a log
   * here and no name of its own.
   */
  async settle(clusterId: string | undefined, former: Uuid | undefined): Promise<void> {
    const { disk, path, random, nodeId } = this.#options
    const before = this.#properties
    if (before?.directoryId !== undefined && before.clusterId === clusterId) return
    this.#isNew = before === undefined
    const fresh = uuidFromRandom(bytes => random.fill(bytes))
    const hasLog = (await disk.list(path)).some(({ name, folder }) => folder && name === '__cluster_metadata-0')
    const directoryId = before?.directoryId ?? (hasLog ? (former ?? fresh) : fresh)
    await this.#write({ clusterId, nodeId, directoryId })
  }

  /** The node founded or joined a cluster. */
  async belongTo(clusterId: string): Promise<void> {
    const { directoryId } = this
    await this.#write({ clusterId, nodeId: this.#options.nodeId, directoryId })
  }

  async #write(properties: MetaProperties): Promise<void> {
    const { disk, path } = this.#options
    await writeMetaProperties(disk, path, properties)
    this.#properties = properties
  }

  async release(): Promise<void> {
    await this.#lock.release()
  }

  /** As `release`, after a start that failed before anybody could know of this node: it may become another's. */
  async releaseUnused(): Promise<void> {
    const { disk, path } = this.#options
    if (this.#isNew) await disk.remove(`${path}/${META_PROPERTIES_FILE}`).catch(() => {})
    await this.release()
  }
}
