import type { Millis } from '#base/units.ts'
import type { TopicPartition } from '#core/consumer/assignment.ts'
import {
  countsDiffer,
  Membership,
  type MembershipEffect,
  type MembershipEvent,
  type MembershipOptions,
} from '#core/consumer/membership.ts'
import type { Channel } from '#network/channel.ts'
import { HeartbeatRequest, HeartbeatResponse } from '#protocol/messages/heartbeat.ts'
import { JoinGroupRequest, JoinGroupResponse } from '#protocol/messages/join-group.ts'
import { LeaveGroupRequest, LeaveGroupResponse } from '#protocol/messages/leave-group.ts'
import { SyncGroupRequest, SyncGroupResponse } from '#protocol/messages/sync-group.ts'
import type { Timer } from '#world/world.ts'
import type { Committer } from './admin/groups.ts'
import type { Client } from './client.ts'
import { brokerError, ClientError, mayRetry } from './errors.ts'
import { askCoordinator } from './patience.ts'

const JOIN = { request: JoinGroupRequest, response: JoinGroupResponse }
const SYNC = { request: SyncGroupRequest, response: SyncGroupResponse }
const HEARTBEAT = { request: HeartbeatRequest, response: HeartbeatResponse }
const LEAVE = { request: LeaveGroupRequest, response: LeaveGroupResponse }
const PROTOCOL_TYPE = 'consumer'
/** How often the leader of a group looks whether its topics have other partition counts. */
const COUNT_INTERVAL_MS = 30_000

export interface GroupHooks {
  /** To be given up; resolves when that is done. */
  revoke(partitions: readonly TopicPartition[]): Promise<void>
  lost(partitions: readonly TopicPartition[]): void
  assigned(partitions: readonly TopicPartition[], added: readonly TopicPartition[]): void
  failed(error: ClientError): void
}

/** Performs what a group membership decides: its requests, its timers, its news to the consumer. */
export class GroupSession {
  readonly #client: Client
  readonly #group: string
  readonly #options: MembershipOptions
  readonly #hooks: GroupHooks
  readonly #membership: Membership
  /** A join waits for the other members, and nothing else should wait behind it. */
  readonly #purpose: string
  #topics: readonly string[] = []
  #counts: ReadonlyMap<string, number> = new Map()
  #timer: Timer | undefined
  #countTimer: Timer | undefined
  #over = false

  constructor(client: Client, group: string, options: MembershipOptions, hooks: GroupHooks) {
    this.#client = client
    this.#group = group
    this.#options = options
    this.#hooks = hooks
    this.#membership = new Membership(options)
    this.#purpose = client.brokers.claim('member')
  }

  get stable(): boolean {
    return this.#membership.stable
  }

  owns({ topic, partition }: TopicPartition): boolean {
    return this.#membership.owned.some(each => each.topic === topic && each.partition === partition)
  }

  get committer(): Committer {
    const { memberId, generationId } = this.#membership
    return { memberId, generationId, groupInstanceId: this.#options.groupInstanceId }
  }

  subscribe(topics: readonly string[]): void {
    this.#topics = topics
    this.#step({ type: 'subscribe', topics })
    this.#countTimer ??= this.#client.world.clock.after(COUNT_INTERVAL_MS, () => this.#recount())
  }

  polled(): void {
    this.#step({ type: 'polled' })
  }

  commitRefused(errorCode: number): void {
    this.#step({ type: 'commit-refused', errorCode })
  }

  /** Leaves the group, so that the others need not wait for the session to end. */
  async leave(): Promise<void> {
    if (this.#over) return
    const effects = this.#membership.step({ type: 'leave' }, this.#now())
    this.#over = true
    this.#timer?.cancel()
    this.#countTimer?.cancel()
    for (const effect of effects) if (effect.type === 'leave') await this.#leave(effect.memberId)
    this.#client.brokers.release(this.#purpose)
  }

  #now(): Millis {
    return this.#client.world.clock.monotonic()
  }

  #step(event: MembershipEvent): void {
    if (this.#over) return
    for (const effect of this.#membership.step(event, this.#now())) this.#perform(effect)
    this.#timer?.cancel()
    const at = this.#membership.wakeAt()
    if (at === undefined) return
    const delay = Math.max(0, Math.ceil(at - this.#now()))
    this.#timer = this.#client.world.clock.after(delay, () => this.#step({ type: 'tick' }))
  }

  #perform(effect: MembershipEffect): void {
    switch (effect.type) {
      case 'find-coordinator':
        this.#client.forgetCoordinator(this.#group)
        this.#report(this.#client.coordinator(this.#group), () => ({ type: 'coordinator-found' }))
        return
      case 'join':
        this.#report(this.#join(effect), response => ({ type: 'join-answered', response }))
        return
      case 'count-partitions':
        this.#report(this.#count(effect.topics), counts => {
          this.#counts = counts
          return { type: 'partitions-counted', counts }
        })
        return
      case 'sync':
        this.#report(this.#sync(effect), response => ({ type: 'sync-answered', response }))
        return
      case 'heartbeat':
        this.#report(this.#heartbeat(effect), ({ errorCode }) => ({ type: 'heartbeat-answered', errorCode }))
        return
      case 'leave':
        void this.#leave(effect.memberId)
        return
      case 'revoke':
        this.#hooks.revoke(effect.partitions).finally(() => this.#step({ type: 'revoked' }))
        return
      case 'lost':
        this.#hooks.lost(effect.partitions)
        return
      case 'assigned':
        this.#hooks.assigned(effect.partitions, effect.added)
        return
      case 'failed': {
        const error = brokerError(effect.errorCode, `group "${this.#group}"`)
        this.#hooks.failed(error ?? new ClientError('UNKNOWN_SERVER_ERROR', `group "${this.#group}" failed`))
      }
    }
  }

  /** Brings the result back as an event, or the failure. */
  #report<T>(result: Promise<T>, event: (value: T) => MembershipEvent): void {
    result.then(
      value => this.#step(event(value)),
      error => {
        this.#step({ type: 'request-failed' })
        if (error instanceof ClientError && !mayRetry(error) && !this.#over) {
          this.#over = true
          this.#hooks.failed(error)
        }
      },
    )
  }

  /** Asks the coordinator, for as long as it is the one. */
  async #ask<T>(ask: (channel: Channel) => Promise<T>): Promise<T> {
    return await askCoordinator(this.#client, this.#group, this.#purpose, ask)
  }

  async #join({ memberId, protocols }: Extract<MembershipEffect, { type: 'join' }>): Promise<JoinGroupResponse> {
    const { sessionTimeoutMs, pollIntervalMs, groupInstanceId } = this.#options
    const body = {
      groupId: this.#group,
      sessionTimeoutMs,
      rebalanceTimeoutMs: pollIntervalMs,
      memberId,
      groupInstanceId,
      protocolType: PROTOCOL_TYPE,
      protocols,
    }
    return await this.#ask(channel => channel.ask(JOIN, body, { timeoutMs: pollIntervalMs + 5000 }))
  }

  async #sync(effect: Extract<MembershipEffect, { type: 'sync' }>): Promise<SyncGroupResponse> {
    const body = {
      groupId: this.#group,
      generationId: effect.generationId,
      memberId: effect.memberId,
      groupInstanceId: this.#options.groupInstanceId,
      protocolType: PROTOCOL_TYPE,
      protocolName: effect.protocolName,
      assignments: effect.assignments,
    }
    return await this.#ask(channel => channel.ask(SYNC, body, { timeoutMs: this.#options.pollIntervalMs + 5000 }))
  }

  async #heartbeat(effect: Extract<MembershipEffect, { type: 'heartbeat' }>): Promise<HeartbeatResponse> {
    const { memberId, generationId } = effect
    const { groupInstanceId, sessionTimeoutMs } = this.#options
    const body = { groupId: this.#group, generationId, memberId, groupInstanceId }
    return await this.#ask(channel => channel.ask(HEARTBEAT, body, { timeoutMs: sessionTimeoutMs }))
  }

  /** What goes wrong here ends by the session's timeout. */
  async #leave(memberId: string): Promise<void> {
    try {
      await this.#ask(async channel => {
        const batched = (channel.versionFor(LeaveGroupRequest) ?? 0) >= 3
        const body = batched ? { groupId: this.#group, members: [{ memberId }] } : { groupId: this.#group, memberId }
        await channel.ask(LEAVE, body, { timeoutMs: 5000 })
      })
    } catch {}
  }

  async #count(topics: readonly string[]): Promise<Map<string, number>> {
    const { topics: found } = await this.#client.metadata.refresh(topics)
    return new Map(found.map(({ name, partitions }) => [name, partitions.length]))
  }

  /** New partitions and new topics are nobody's until the group is assigned anew; its leader sees to that. */
  #recount(): void {
    this.#countTimer = this.#client.world.clock.after(COUNT_INTERVAL_MS, () => this.#recount())
    if (!this.#membership.leading) return
    const topics = [...new Set([...this.#topics, ...this.#counts.keys()])]
    this.#count(topics).then(
      counts => {
        if (!countsDiffer(topics, counts, this.#counts) || !this.#membership.leading) return
        this.#counts = counts
        this.#step({ type: 'subscribe', topics: this.#topics })
      },
      () => {},
    )
  }
}
