import { join } from 'node:path'
import { ZERO_UUID } from '#base/uuid.ts'
import { encodeToBuffer } from '#protocol/codec.ts'
import { errorOf } from '#protocol/errors.ts'
import { ConsumerProtocolSubscription } from '#protocol/records/consumer-protocol.ts'
import { testTranscripts } from '../testing/transcripts.ts'
import type { GroupCommand } from './commands.ts'
import type { GroupConfig } from './config.ts'
import { Harness, type Reaction } from './harness.test.ts'

/**
 * Transcripts in testdata/: a command, a rule of dashes, and the full reaction, which TIDEMARK_REWRITE=1 writes anew.
 *
 *   config NAME=MS...                             begins with another configuration
 *   join GROUP [suffix= member= instance= client= v= session= rebalance= type= protocols=NAME:METADATA,...]
 *   sync GROUP member= gen= [instance= v= type= name= assign=MEMBER:BYTES,...]
 *   heartbeat GROUP member= gen= [instance=]      leave GROUP MEMBER[/INSTANCE]... [v=]
 *   commit GROUP TOPIC-PARTITION:OFFSET[:METADATA[:EPOCH]]... [member= gen= instance= retention= id= v=]
 *   fetch GROUP [TOPIC-PARTITION...] [id= v=]     delete-offsets GROUP TOPIC-PARTITION...
 *   describe GROUP... [v=]   list [states= types=]   delete GROUP...
 *   gone CALL   topics-deleted TOPIC... [id=]   wait MS   fail-over [NAME=MS...]
 *
 * Calls are numbered from 1; a member id that is made ends with its suffix. `-` is the empty group or member
 * id. Metadata `@t+u` is a consumer's subscription to the topics t and u. Times in answers are relative to now.
 */
class Script {
  harness = new Harness()
  #call = 0

  /** Whatever was written can be read by the next to lead. */
  end(): void {
    this.harness.failOver()
  }

  run(line: string): string {
    const [name = '', ...words] = line.split(/\s+/)
    if (name === 'config') {
      this.harness = new Harness(toConfig(words))
      return ''
    }
    if (name === 'wait') {
      const start = this.harness.now
      let printed = ''
      for (const reaction of this.harness.pass(Number(words[0]))) {
        printed += `+${reaction.at - start}\n${this.#print(reaction)}`
      }
      return printed + this.#wake()
    }
    if (name === 'fail-over') {
      const { resigned, reaction } = this.harness.failOver(toConfig(words))
      return `${this.#print({ entries: [], replies: resigned })}leads\n${this.#print(reaction)}${this.#wake()}`
    }
    return this.#print(this.harness.do(this.#command(name, words))) + this.#wake()
  }

  #command(name: string, words: readonly string[]): GroupCommand {
    const named = new Map(
      words.flatMap(word =>
        /^[a-z]+=/.test(word) ? [/^([a-z]+)=(.*)$/.exec(word)?.slice(1) as [string, string]] : [],
      ),
    )
    const plain = words.filter(word => !/^[a-z]+=/.test(word)).map(word => (word === '-' ? '' : word))
    const [groupId = ''] = plain
    const number = (key: string, otherwise: number): number => Number(named.get(key) ?? otherwise)
    const memberId = named.get('member') ?? ''
    const groupInstanceId = named.get('instance') ?? null
    const generationId = number('gen', -1)
    const topicId = named.get('id') ?? ZERO_UUID
    if (name === 'gone') return { kind: 'CallGone', call: Number(groupId) }
    if (name === 'topics-deleted')
      return { kind: 'TopicsDeleted', topics: plain.map(topic => ({ name: topic, topicId })) }
    const call = ++this.#call
    switch (name) {
      case 'join':
        return {
          kind: 'JoinGroup',
          call,
          version: number('v', 9),
          clientId: named.get('client') ?? 'c',
          clientHost: '/127.0.0.1',
          memberIdSuffix: named.get('suffix') ?? String(call),
          request: {
            groupId,
            sessionTimeoutMs: number('session', 10_000),
            rebalanceTimeoutMs: number('rebalance', 60_000),
            memberId,
            groupInstanceId,
            protocolType: named.get('type') ?? 'consumer',
            protocols: list(named.get('protocols') ?? 'range:@t').map(text => {
              const [protocol = '', metadata = ''] = text.split(':')
              return { name: protocol, metadata: toBytes(metadata) }
            }),
            reason: null,
          },
        }
      case 'sync':
        return {
          kind: 'SyncGroup',
          call,
          version: number('v', 5),
          request: {
            groupId,
            generationId,
            memberId,
            groupInstanceId,
            protocolType: orNull(named.get('type') ?? 'consumer'),
            protocolName: orNull(named.get('name') ?? 'range'),
            assignments: list(named.get('assign') ?? '').map(text => {
              const [member = '', assignment = ''] = text.split(':')
              return { memberId: member, assignment: toBytes(assignment) }
            }),
          },
        }
      case 'heartbeat':
        return {
          kind: 'Heartbeat',
          call,
          version: number('v', 4),
          request: { groupId, generationId, memberId, groupInstanceId },
        }
      case 'leave': {
        const version = number('v', 5)
        const members = plain.slice(1).map(text => {
          const [member = '', instance = null] = text.split('/')
          return { memberId: member, groupInstanceId: instance, reason: null }
        })
        const request =
          version < 3 ? { groupId, memberId: plain[1] ?? '', members: [] } : { groupId, memberId: '', members }
        return { kind: 'LeaveGroup', call, version, request }
      }
      case 'commit':
        return {
          kind: 'OffsetCommit',
          call,
          version: number('v', 9),
          request: {
            groupId,
            generationIdOrMemberEpoch: generationId,
            memberId,
            groupInstanceId,
            retentionTimeMs: number('retention', -1),
            topics: plain.slice(1).map(text => {
              const [partition = '', offset = '', metadata = null, epoch = '-1'] = text.split(':')
              return {
                name: topicOf(partition),
                topicId,
                partitions: [
                  {
                    partitionIndex: partitionOf(partition),
                    committedOffset: Number(offset),
                    committedLeaderEpoch: Number(epoch),
                    committedMetadata: metadata?.replace(/^x(\d+)$/, (_, times) => 'x'.repeat(Number(times))) ?? null,
                  },
                ],
              }
            }),
          },
        }
      case 'fetch': {
        const topics = plain
          .slice(1)
          .map(text => ({ name: topicOf(text), topicId, partitionIndexes: [partitionOf(text)] }))
        return {
          kind: 'OffsetFetch',
          call,
          version: number('v', 9),
          request: { groupId, memberId: null, memberEpoch: -1, topics: topics.length > 0 ? topics : null },
        }
      }
      case 'delete-offsets': {
        const topics = plain
          .slice(1)
          .map(text => ({ name: topicOf(text), partitions: [{ partitionIndex: partitionOf(text) }] }))
        return { kind: 'OffsetDelete', call, version: 0, request: { groupId, topics } }
      }
      case 'describe': {
        const request = { groups: plain, includeAuthorizedOperations: false }
        return { kind: 'DescribeGroups', call, version: number('v', 6), request }
      }
      case 'list': {
        const request = { statesFilter: list(named.get('states') ?? ''), typesFilter: list(named.get('types') ?? '') }
        return { kind: 'ListGroups', call, version: number('v', 5), request }
      }
      case 'delete':
        return { kind: 'DeleteGroups', call, version: 2, request: { groupsNames: plain } }
      default:
        throw new Error(`no command is called ${name}`)
    }
  }

  #print({ entries, replies }: Reaction): string {
    const lines = [
      ...entries.map(({ kind, value, ...key }) => `entry ${kind} ${this.#show(key)} = ${this.#show(value)}`),
      ...replies.map(({ kind, call, response }) => `reply ${call} ${kind} ${this.#show(response)}`),
    ]
    return lines.map(line => `${line}\n`).join('')
  }

  #wake(): string {
    const at = this.harness.shard.wakeAt()
    return `wake ${at === undefined ? 'never' : `+${at - this.harness.now}`}\n`
  }

  #show(value: unknown, name = ''): string {
    if (Buffer.isBuffer(value)) return printBytes(value)
    if (Array.isArray(value)) return `[${value.map(element => this.#show(element)).join(', ')}]`
    if (typeof value === 'object' && value !== null) {
      const fields = Object.entries(value).filter(([key, field]) => key !== 'topicId' || field !== ZERO_UUID)
      return `{${fields.map(([key, field]) => `${key}: ${this.#show(field, key)}`).join(', ')}}`
    }
    if (name === 'errorCode') return errorOf(Number(value)).name
    if (name.endsWith('Timestamp') && value !== -1)
      return `now${Number(value) < this.harness.now ? '' : '+'}${Number(value) - this.harness.now}`
    if (typeof value === 'string' && value.length > 100) return `'${value.slice(0, 10)}...' (${value.length})`
    return typeof value === 'string' ? `'${value}'` : String(value)
  }
}

function toConfig(words: readonly string[]): Partial<GroupConfig> {
  return Object.fromEntries(words.map(word => word.split('=')).map(([key, value]) => [key, Number(value)]))
}

const list = (text: string): string[] => (text === '' ? [] : text.split(','))
const orNull = (text: string): string | null => (text === 'null' ? null : text)
const topicOf = (text: string): string => text.slice(0, text.lastIndexOf('-'))
const partitionOf = (text: string): number => Number(text.slice(text.lastIndexOf('-') + 1))

function toBytes(text: string): Buffer {
  if (!text.startsWith('@')) return Buffer.from(text)
  const topics = text
    .slice(1)
    .split('+')
    .filter(topic => topic !== '')
  return Buffer.concat([Buffer.of(0, 3), encodeToBuffer(ConsumerProtocolSubscription, 3, { topics })])
}

/** Text as it is; a subscription by its topics. */
function printBytes(bytes: Buffer): string {
  if (bytes.length > 2 && bytes[0] === 0 && bytes[1] === 3) {
    const topics: string[] = []
    let at = 6
    for (let left = bytes.readInt32BE(2); left > 0; left--) {
      const size = bytes.readInt16BE(at)
      topics.push(bytes.toString('utf8', at + 2, at + 2 + size))
      at += 2 + size
    }
    return `@${topics.join('+')}`
  }
  return bytes.length > 100 ? `<${bytes.length} bytes>` : `<${bytes.toString('latin1')}>`
}

testTranscripts(join(import.meta.dirname, 'testdata'), () => new Script())
