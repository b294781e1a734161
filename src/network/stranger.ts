/** The first bytes of a connection are no frame: says what they look like, since that is how misconfiguration shows. */
export function whatStrangerSent(first: Buffer, listener: string, otherwise: string): string {
  if (/^(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT) ?/.test(first.toString('latin1'))) {
    return 'HTTP; this port speaks the Kafka protocol'
  }
  if (first[0] === 0x16 && first[1] === 0x03) {
    return `TLS to the plaintext listener ${listener}; set security.protocol=PLAINTEXT in the client, or dial a TLS listener`
  }
  return `bytes that are no Kafka request: ${otherwise}`
}
