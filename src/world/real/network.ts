import net from 'node:net'
import { hostPort } from '#base/host-port.ts'
import type { Millis } from '#base/units.ts'
import { type Address, type Listener, type Network, type Socket, WorldError } from '../world.ts'
import { worldError } from './errors.ts'
import { HIGH_WATER_MARK, plainHost, RealSocket } from './socket.ts'

/** Connections that wait for `accept`; the system lowers it to what it allows. */
const BACKLOG = 4096

export const realNetwork: Network = {
  listen(address, accept): Promise<Listener> {
    return new Promise((resolve, reject) => {
      // Paused, because nobody must read from a connection before its sink is known.
      const options = { pauseOnConnect: true, noDelay: true, highWaterMark: HIGH_WATER_MARK }
      const server = net.createServer(options, accepted => {
        // One that was broken before it was accepted has no addresses and is nobody's.
        if (accepted.remoteAddress === undefined) accepted.destroy()
        else accept(new RealSocket(accepted))
      })
      server.once('error', error => reject(worldError(error, `listen on ${hostPort(address)}`)))
      server.listen(
        { port: address.port, backlog: BACKLOG, ...(address.host === '' ? {} : { host: address.host }) },
        () => {
          // Out of descriptors and the like: the connection is lost, the listener goes on.
          server.on('error', () => {})
          resolve(new RealListener(server, address.host))
        },
      )
    })
  },

  connect(address, timeoutMs: Millis): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const options = { host: address.host, port: address.port, noDelay: true, highWaterMark: HIGH_WATER_MARK }
      const socket = net.connect(options)
      socket.pause()
      const fail = (error: Error): void => {
        clearTimeout(timer)
        socket.destroy()
        reject(worldError(error, `connect to ${hostPort(address)}`))
      }
      const timer = setTimeout(
        () => fail(new WorldError('ETIMEDOUT', `connect to ${hostPort(address)}: no answer in ${timeoutMs} ms`)),
        timeoutMs,
      )
      socket.on('error', fail)
      socket.once('connect', () => {
        clearTimeout(timer)
        socket.off('error', fail)
        resolve(new RealSocket(socket))
      })
    })
  },
}

class RealListener implements Listener {
  readonly address: Address
  readonly #server: net.Server

  constructor(server: net.Server, host: string) {
    this.#server = server
    const bound = server.address()
    this.address =
      bound === null || typeof bound === 'string'
        ? { host, port: 0 }
        : { host: host === '' ? '' : plainHost(bound.address), port: bound.port }
  }

  close(): Promise<void> {
    return new Promise(resolve => {
      this.#server.close(() => resolve())
    })
  }
}
