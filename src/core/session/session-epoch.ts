import { INT32_MAX } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'

/** The asking side of a fetch session (KIP-227): under which id and epoch its next fetch goes. */
export class SessionEpoch {
  id = 0
  /** 0 opens a session (and closes the one named), then it counts up from 1. */
  epoch = 0

  /** The whole answer's error and session id. False if nothing in it counts and the fetch is to be made again. */
  answered(errorCode: number, sessionId: number): boolean {
    if (errorCode !== 0) {
      if (errorCode === ErrorCode.FETCH_SESSION_ID_NOT_FOUND) this.id = 0
      this.epoch = 0
      return false
    }
    // 0: the other side keeps no session for us; every fetch is a full one.
    if (sessionId === 0) this.epoch = 0
    else this.epoch = this.epoch === INT32_MAX ? 1 : this.epoch + 1
    this.id = sessionId
    return true
  }

  /** No answer came: nobody knows which epoch the other side is in, so the next fetch opens anew. */
  failed(): void {
    this.epoch = 0
  }
}
