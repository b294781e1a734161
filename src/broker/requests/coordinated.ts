import type { GroupCommand, GroupReply } from '#core/group/commands.ts'
import type { Call } from '#network/service.ts'
import type { ErrorName } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { CoordinatorError } from '../machines/group-shards.ts'

/** A coordinator's answer, or the request's own form of the error that kept it from answering. */
export async function coordinated<Response>(
  ask: () => Promise<Response>,
  refused: (error: ErrorName) => Response,
): Promise<Response> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error
    return refused(error.code)
  }
}

/** What a client's request is to the coordinator without anything added. */
type Plain = Exclude<GroupReply['kind'], 'JoinGroup'>
type RequestOf<Kind extends Plain> = Extract<GroupCommand, { kind: Kind }>['request']
type ResponseOf<Kind extends Plain> = Extract<GroupReply, { kind: Kind }>['response']

/** What the coordinator of one group answers to a request, or `refused` with what kept it from that. */
export function askGroup<Kind extends Plain>(
  broker: Broker,
  call: Call,
  asked: { readonly kind: Kind; readonly groupId: string; readonly request: RequestOf<Kind> },
  refused: (error: ErrorName) => ResponseOf<Kind>,
): Promise<ResponseOf<Kind>> {
  const { kind, groupId, request } = asked
  const command = (id: number) =>
    ({ kind, call: id, version: call.apiVersion, request }) as GroupCommand & { readonly kind: Kind }
  return coordinated(async () => {
    const reply: GroupReply = await broker.groups.ask<Kind>(groupId, call.caller, command)
    return reply.response as ResponseOf<Kind>
  }, refused)
}
