import { assert } from '#base/assert.ts'
import { SeededRandom } from '#base/random.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import type { Address, File, Sink, Socket, World } from '#world/world.ts'
import type { Workload } from '../kernel.ts'

const FRAME_BYTES_MAX = 5000
const PORT = 9092

/**
 * Frames over the network that are written to a file and sent back from it, with cuts and broken connections: it has no
 * product code in it and shows that the kernel itself is sound and repeats.
 */
export const echo: Workload = {
  name: 'echo',
  mutants: [],
  async run(simulation) {
    const server = simulation.node('server')
    server.clockSkewMs = simulation.random.between(-1000, 1000)
    const file = await server.world.disk.open('/frames', { create: true, write: true })
    let end = 0
    const place = (size: number): number => {
      end += size
      return end - size
    }
    await server.world.network.listen({ host: '', port: PORT }, socket => echoOn(socket, file, place, server.world))
    const clients = Array.from({ length: 3 }, (_, index) => exchange(simulation, `client${index}`))
    let over = false
    const disturbing = disturb(simulation, () => over)
    await Promise.all(clients)
    over = true
    await disturbing
  },
}

/** Four bytes of size before every frame. */
class Frames implements Sink {
  readonly #socket: Socket
  readonly #onFrame: (frame: Buffer) => void
  readonly #onClosed: () => void
  #buffer = Buffer.alloc(4 + FRAME_BYTES_MAX)
  #filled = 0

  constructor(socket: Socket, onFrame: (frame: Buffer) => void, onClosed: () => void) {
    this.#socket = socket
    this.#onFrame = onFrame
    this.#onClosed = onClosed
  }

  space(): Uint8Array {
    return this.#buffer.subarray(this.#filled)
  }

  received(count: number): void {
    this.#filled += count
    while (this.#filled >= 4) {
      const end = 4 + this.#buffer.readInt32BE(0)
      assert(end <= this.#buffer.length, 'frames are small')
      if (this.#filled < end) return
      this.#onFrame(Buffer.from(this.#buffer.subarray(4, end)))
      this.#buffer.copyWithin(0, end, this.#filled)
      this.#filled -= end
    }
  }

  drained(): void {
    this.#socket.resume()
  }

  closed(): void {
    this.#onClosed()
  }
}

function echoOn(socket: Socket, file: File, place: (size: number) => number, world: World): void {
  let closed = false
  socket.attach(
    new Frames(
      socket,
      frame => {
        const at = place(frame.length)
        const size = Buffer.alloc(4)
        size.writeInt32BE(frame.length)
        file.write([frame], at).then(() => {
          if (closed) return
          socket.write([size])
          socket.sendFile(file, at, frame.length)
          if (socket.queuedBytes > FRAME_BYTES_MAX) socket.pause()
        })
        world.log.debug({ at, size: frame.length }, 'frame')
      },
      () => {
        closed = true
      },
    ),
  )
}

/** Sends frames one after another until enough came back as they went, over as many connections as it takes. */
async function exchange(simulation: Simulation, name: string): Promise<void> {
  const { world } = simulation.node(name)
  const address: Address = { host: 'server', port: PORT }
  const random = new SeededRandom(simulation.random.uint32())
  for (let left = 20; left > 0; ) {
    const socket = await world.network.connect(address, 3000).catch(() => undefined)
    if (socket === undefined) continue
    await new Promise<void>(resolve => {
      let expected = Buffer.alloc(0)
      const send = (): void => {
        expected = Buffer.alloc(random.between(1, FRAME_BYTES_MAX))
        random.fill(expected)
        const size = Buffer.alloc(4)
        size.writeInt32BE(expected.length)
        socket.write([size, expected])
      }
      const frames = new Frames(
        socket,
        frame => {
          assert(frame.equals(expected), `${name}: a frame came back changed`)
          left--
          if (left > 0) send()
          else socket.end()
        },
        resolve,
      )
      socket.attach(frames)
      send()
    })
  }
}

async function disturb(simulation: Simulation, over: () => boolean): Promise<void> {
  const { random, network } = simulation
  while (!over()) {
    await simulation.wait(random.between(1, 30))
    const [a, b] = [simulation.node('server'), simulation.node(`client${random.below(3)}`)]
    if (random.chance(0.3)) network.reset(a, b)
    else {
      const [from, to] = random.chance(0.5) ? [a, b] : [b, a]
      network.cut(from, to)
      await simulation.wait(random.between(1, 500))
      network.heal(from, to)
    }
  }
}
