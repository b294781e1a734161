/** What the system says, without its call and arguments: those who read it see the path or address beside it. */
const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file or folder',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'there is a file of that name',
  EACCES: 'this user may not',
  EPERM: 'the system does not permit it',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  EADDRINUSE: 'another process listens there',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'the name cannot be resolved',
  EAI_AGAIN: 'the name cannot be resolved now',
}

const CURES: Record<string, string> = {
  ENOTDIR: 'choose another folder with --data or log.dirs',
  EEXIST: 'choose another folder with --data or log.dirs',
  ENOENT: 'choose another folder with --data or log.dirs',
  EPERM: 'choose another folder with --data or log.dirs, or make this one writable',
  EROFS: 'choose another folder with --data or log.dirs, or make this one writable',
  ENOSPC: 'free space, or choose another folder with --data or log.dirs',
  EDQUOT: 'free space, or choose another folder with --data or log.dirs',
  EADDRINUSE: 'stop it, or choose another port with --port (a controller takes the next one, too) or listeners',
  EADDRNOTAVAIL: 'correct the host in listeners; without a host all addresses are listened on',
  ENOTFOUND: 'correct the host in listeners; without a host all addresses are listened on',
  EAI_AGAIN: 'correct the host in listeners; without a host all addresses are listened on',
}

/** The system's name for what went wrong, such as ENOENT; undefined for any other error. */
function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { errno, code } = error as { errno?: unknown; code?: unknown }
  for (const each of [errno, code]) if (typeof each === 'string' && /^E[A-Z_]+$/.test(each)) return each
  return undefined
}

/** Why a file cannot be read or written, in words. */
export function plainReason(error: unknown): string {
  return REASONS[systemCode(error) ?? ''] ?? (error instanceof Error ? error.message : String(error))
}

/** Why a node did not start, and what to do about it, in one line. */
export function startFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = systemCode(error) ?? ''
  const reason = REASONS[code]
  if (reason === undefined) return error.message
  // "listen on :9092: listen EADDRINUSE: ...", "/data: make folder /data: EACCES: ...": up to what the system says.
  const [tried = ''] = error.message.split(/: (?:listen|bind|getaddrinfo|E[A-Z]+)\b/)
  const listens = tried.startsWith('listen on ')
  const cure =
    code !== 'EACCES'
      ? CURES[code]
      : listens
        ? 'ports below 1024 need privileges: choose another with --port or listeners'
        : 'choose another folder with --data or log.dirs, or make this one writable'
  return `cannot ${listens ? tried : `use the folder ${tried.split(': ')[0]}`}: ${reason}${cure === undefined ? '' : `; ${cure}`}`
}
