/** `max.connections.per.ip.overrides`: `host:count,host:count`; a host may be an IPv6 address, so the last colon counts. */
export function ipOverrides(text: string): ReadonlyMap<string, number> {
  const overrides = new Map<string, number>()
  for (const pair of text.split(',').map(item => item.trim())) {
    const at = pair.lastIndexOf(':')
    if (at > 0 && /^\d+$/.test(pair.slice(at + 1))) overrides.set(pair.slice(0, at), Number(pair.slice(at + 1)))
  }
  return overrides
}
