import { ByteReader } from '#base/bytes.ts'
import { API } from '#protocol/apis.ts'
import { decode } from '#protocol/codec.ts'
import { Comparison } from '../compare.ts'
import type { Twin } from '../twin.ts'
import type { Situation } from './tools.ts'

/** A frame with a header of version 1 and a body as it is. */
function frame(apiKey: number, version: number, body: string, clientId = 'ffff'): Buffer {
  const head = Buffer.alloc(8)
  head.writeInt16BE(apiKey, 0)
  head.writeInt16BE(version, 2)
  head.writeInt32BE(7, 4)
  const rest = Buffer.concat([head, Buffer.from(clientId + body, 'hex')])
  const size = Buffer.alloc(4)
  size.writeInt32BE(rest.length)
  return Buffer.concat([size, rest])
}

async function unknownApiVersions(twin: Twin): Promise<void> {
  for (const version of [5, 99, 0x7fff]) {
    const answers = await twin.raw(`ApiVersions ${version}`, frame(18, version, '00'))
    const [left, right] = answers.map(answer => {
      if (typeof answer === 'string') return undefined
      return decode(API.ApiVersions.response, 0, new ByteReader(answer.subarray(4)))
    })
    if (left === undefined || right === undefined) continue
    const differences = new Comparison('ApiVersions', API.ApiVersions.response, 0, twin.sides).run(left, right)
    twin.findings.note('ApiVersions', 0, differences, () => `version ${version}`)
  }
}

export const versions: Situation = {
  name: 'versions',
  async perform(twin) {
    const software = { clientSoftwareName: 'twin', clientSoftwareVersion: '1.0' }
    await twin.everyVersion(API.ApiVersions, software)
    for (const name of ['', ' ', '-a', 'a-', 'a.b-c', 'a_b', 'ü', 'a'.repeat(300), 'a b', '1']) {
      for (const version of [3, 4]) {
        await twin.call(API.ApiVersions, version, { ...software, clientSoftwareName: name })
        await twin.call(API.ApiVersions, version, { ...software, clientSoftwareVersion: name })
      }
    }
    await unknownApiVersions(twin)
    // Another API in a version that there is not, an API that there is not: closed.
    for (const key of [0, 1, 2, 3, 10, 11, 19, 60])
      await twin.raw(`version 90 of ${key}`, frame(key, 90, '0000'), 3_000)
    await twin.raw('Fetch 3', frame(1, 3, '00000000'), 3_000)
    await twin.raw('Produce 2', frame(0, 2, '00000000'), 3_000)
    await twin.raw('an API that was removed', frame(4, 0, '00000000'), 3_000)
    await twin.raw('an API that there is not', frame(999, 0, ''), 3_000)
    await twin.raw('a negative API', frame(-1, 0, ''), 3_000)
    // Frames that are none.
    await twin.raw('HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'), 3_000)
    await twin.raw('TLS', Buffer.from('16030100c8010000c40303', 'hex'), 700)
    await twin.raw('a negative size', Buffer.from('ffffffff', 'hex'), 3_000)
    await twin.raw('a size of 0', Buffer.from('00000000', 'hex'), 3_000)
    await twin.raw('half a header', Buffer.from('000000040012000000', 'hex'), 3_000)
    await twin.raw('a cut body', frame(3, 9, '00ff'), 3_000)
    await twin.raw('a count that is not there', frame(3, 1, '7fffffff'), 3_000)
    await twin.raw('a null where none may be', frame(2, 1, 'ffffffffffffffff'), 3_000)
    await twin.raw('bytes after the body', frame(3, 0, '00000000aabb'), 3_000)
    await twin.raw('a null client id', frame(18, 0, ''), 3_000)
    await twin.raw('a client id that is not there', frame(18, 0, '', '0010'), 3_000)
  },
}
