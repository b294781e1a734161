/** One address that a node listens on. */
export interface Listener {
  /** Upper case, as Kafka keeps it. */
  readonly name: string
  /** Empty: every address of the machine. */
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  readonly protocol: 'PLAINTEXT'
  readonly forControllers: boolean
  /** What clients are told; undefined means the address that each of them dialled. */
  readonly advertised: { readonly host: string; readonly port: number } | undefined
}

export interface Endpoint {
  readonly name: string
  readonly host: string
  readonly port: number
}

/** Reads `NAME://host:port`; an IPv6 address stands in brackets. */
export function parseEndpoint(text: string): Endpoint | undefined {
  const [, name, bracketed, plain, port] =
    /^([A-Za-z0-9_.-]+):\/\/(?:\[([0-9A-Fa-f:.%]+)\]|([A-Za-z0-9._%-]*)):(\d{1,5})$/.exec(text.trim()) ?? []
  if (name === undefined || port === undefined || Number(port) > 65535) return undefined
  return { name: name.toUpperCase(), host: bracketed ?? plain ?? '', port: Number(port) }
}

/** Whether listening on this host is listening on every address; then it is no place to dial. */
export function meansAnyAddress(host: string): boolean {
  return host === '' || host === '0.0.0.0' || host === '::'
}

/** Whether this host is reached from its own machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

/** Reads `host:port`; an IPv6 address stands in brackets. */
export function parseHostPort(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, port] = /^(?:\[([0-9A-Fa-f:.%]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text.trim()) ?? []
  const host = bracketed ?? plain
  return host === undefined || Number(port) > 65535 || Number(port) < 1 ? undefined : { host, port: Number(port) }
}

/** A voter of the quorum, `id@host:port`. */
export interface Voter {
  readonly id: number
  readonly host: string
  readonly port: number
}

export function parseVoter(text: string): Voter | undefined {
  const [, id, address = ''] = /^(\d{1,10})@(.+)$/.exec(text.trim()) ?? []
  const at = parseHostPort(address)
  return id === undefined || at === undefined || Number(id) > 2147483647 ? undefined : { id: Number(id), ...at }
}

/** Reads `NAME:PROTOCOL,NAME:PROTOCOL`; undefined when it is not of that form or names one listener twice. */
export function parseProtocolMap(text: string): ReadonlyMap<string, string> | undefined {
  const protocols = new Map<string, string>()
  for (const pair of text
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== '')) {
    const [name, protocol, ...more] = pair.split(':').map(item => item.trim().toUpperCase())
    if (name === undefined || name === '' || protocol === undefined || more.length > 0 || protocols.has(name))
      return undefined
    protocols.set(name, protocol)
  }
  return protocols
}
