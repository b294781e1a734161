import { errorOf } from '#protocol/errors.ts'
import type { Position } from '../log-view.ts'
import type { RaftAnswer, RaftRequest } from '../messages.ts'
import type { Voter } from '../quorum.ts'

/** As transcripts show a voter. */
export function showVoter({ id, directoryId, endpoints }: Voter): string {
  const port = endpoints[0]?.port ?? 9093
  return `${id}${directoryId.startsWith('N') ? 'new' : ''}${port === 9093 ? '' : `:${port}`}`
}

export function showRequest(message: RaftRequest): string {
  switch (message.kind) {
    case 'vote': {
      const { epoch, lastEpoch, endOffset, preVote } = message.vote
      return `${preVote ? 'pre-vote' : 'vote'} epoch=${epoch} log=${endOffset}@${lastEpoch}`
    }
    case 'begin-epoch':
      return `begin-epoch ${message.begin.leaderId}@${message.begin.epoch}`
    case 'end-epoch': {
      const { leaderId, epoch, successors } = message.end
      return `end-epoch ${leaderId}@${epoch} successors=${successors.map(({ id }) => id)}`
    }
    case 'fetch': {
      const { offset, lastFetchedEpoch, currentLeaderEpoch, highWatermark } = message.fetch
      return `fetch epoch=${currentLeaderEpoch} from=${offset}@${lastFetchedEpoch} hw=${highWatermark}`
    }
    default:
      return `${message.kind} ${message.voter.id}`
  }
}

export function showAnswer(given: RaftAnswer, message: RaftRequest | undefined): string {
  const { errorCode } = given.answer
  const error = errorCode === 0 ? '' : ` ${errorOf(errorCode).name}`
  switch (given.kind) {
    case 'vote': {
      const { granted, leaderId, leaderEpoch } = given.answer
      return `vote${error} ${granted ? 'yes' : 'no'} leader=${leaderId}@${leaderEpoch}`
    }
    case 'fetch': {
      const { position, upTo, highWatermark, leaderId, leaderEpoch } = given.answer
      const from = message?.kind === 'fetch' ? message.fetch.offset : 0
      const what = errorCode === 0 ? showPosition(position, from, upTo) : ''
      return `fetch${error}${what} leader=${leaderId}@${leaderEpoch} hw=${highWatermark}`
    }
    case 'begin-epoch':
    case 'end-epoch':
    case 'update-voter':
      return `${given.kind}${error} leader=${given.answer.leaderId}@${given.answer.leaderEpoch}`
    default:
      return `${given.kind}${error}${given.answer.message === null ? '' : `: ${given.answer.message}`}`
  }
}

function showPosition(position: Position, from: number, upTo: number): string {
  if (position.kind === 'diverging') return ` diverging at ${position.endOffset}@${position.epoch}`
  if (position.kind === 'snapshot') return ` snapshot ${position.id.endOffset}@${position.id.epoch}`
  return upTo > from ? ` ${from} to ${upTo}` : ' nothing'
}
