import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Simulation } from './simulation.ts'

test('a process that stands still takes up what has come due when it goes on, in order; what was cancelled stays away', async () => {
  const simulation = new Simulation(1)
  const node = simulation.node('a')
  const { clock } = node.world
  const heard: string[] = []
  clock.after(10, () => heard.push(`ten at ${clock.monotonic()}`))
  clock.after(20, () => heard.push('twenty'))
  const cancelled = clock.after(15, () => heard.push('cancelled'))
  node.pause()
  const work = async (): Promise<void> => {
    await simulation.wait(50)
    assert.equal(heard.length, 0)
    cancelled.cancel()
    node.continue()
    await simulation.wait(1)
    assert.equal(heard.join(), 'ten at 50,twenty')
    clock.after(5, () => heard.push('never'))
    node.pause()
    node.crash()
    await simulation.wait(10)
    node.continue()
    await simulation.wait(10)
    assert.equal(heard.length, 2)
  }
  await simulation.run(work())
})

test('a clock that is fast has its timers early, and bytes for a process that stands still wait in the system', async () => {
  const simulation = new Simulation(1)
  const [a, b] = [simulation.node('a'), simulation.node('b')]
  a.clockRate = 2
  const received: string[] = []
  const work = async (): Promise<void> => {
    let firedAt = 0
    a.world.clock.after(100, () => {
      firedAt = simulation.schedule.now / 1000
    })
    await simulation.wait(100)
    assert.equal(firedAt, 50)
    const space = new Uint8Array(100)
    const sink = {
      space: () => space,
      received: (count: number) => received.push(Buffer.from(space.subarray(0, count)).toString()),
      drained: () => {},
      closed: () => {},
    }
    await b.world.network.listen({ host: '', port: 1 }, socket => socket.attach(sink))
    const socket = await a.world.network.connect({ host: 'b', port: 1 }, 1000)
    socket.attach(sink)
    await simulation.wait(10)
    b.pause()
    socket.write([Buffer.from('hello')])
    await simulation.wait(1000)
    assert.deepEqual(received, [])
    b.continue()
    await simulation.wait(10)
    assert.equal(received.join(''), 'hello')
  }
  await simulation.run(work())
})
