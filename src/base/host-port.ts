/** `host:port` as it is written in configurations and dialled; an IPv6 address stands in brackets. */
export function hostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${bracketed(host)}:${port}`
}

export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
