import dgram from 'node:dgram'
import dns from 'node:dns/promises'
import os from 'node:os'
import type { Address } from '../world.ts'

/**
 * This machine's own address on the way to another, by which that one can most likely reach it back. Nothing is sent: the
 * system looks into its routes. Without a way, an address of any network that it is on; undefined where there is none.
 */
export async function localAddressTowards({ host, port }: Address): Promise<string | undefined> {
  return (await routed(host, port).catch(() => undefined)) ?? anyAddress()
}

async function routed(host: string, port: number): Promise<string> {
  const { address, family } = await dns.lookup(host)
  const socket = dgram.createSocket(family === 6 ? 'udp6' : 'udp4')
  try {
    return await new Promise((resolve, reject) => {
      socket.once('error', reject)
      socket.connect(port, address, () => resolve(socket.address().address))
    })
  } finally {
    socket.close()
  }
}

function anyAddress(): string | undefined {
  const all = Object.values(os.networkInterfaces()).flatMap(each => each ?? [])
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address
}
