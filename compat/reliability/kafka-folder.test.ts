/** Folders go from a real Kafka (../shared/peer) to Tidemark and back: what is stored is served, and written on. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Server } from '../server.ts'
import { logLines, withoutKafka } from './rig.ts'
import { assertSame, goOn, putIn, stateOf } from './workload.ts'

const skip = await withoutKafka()

for (const end of ['stopped', 'killed'] as const) {
  test(`Tidemark opens the folder of a Kafka that was ${end}, serves it and writes on, and Kafka goes on with it`, {
    skip,
    timeout: 120_000,
  }, async t => {
    const kafka = await Server.create('kafka')
    t.after(() => kafka.remove())
    // As whoever changes over from Kafka would: with the settings that its configuration had.
    const tidemark = await Server.create('tidemark', undefined, {
      'log.dirs': join(kafka.folder, 'data'),
      'broker.rack': 'rack1',
      'controller.quorum.voters': `1@127.0.0.1:${kafka.port + 1}`,
      'offsets.topic.replication.factor': '1',
    })
    t.after(() => tidemark.remove())

    await kafka.start()
    // Where records were deleted is told to nobody but a checkpoint that Kafka writes in its own time.
    let left = await putIn(kafka, 'kafka', { deletesRecords: end === 'stopped' })
    const before = await stateOf(kafka)
    if (end === 'stopped') await kafka.stop()
    else await kafka.kill()

    await tidemark.start()
    assertSame(await stateOf(tidemark), before)
    left = await goOn(tidemark, left)
    const ours = await putIn(tidemark, 'tidemark')
    const written = await stateOf(tidemark)
    assert.equal(await tidemark.stop(), 0)
    assert.deepEqual(
      logLines(tidemark).filter(({ level }) => level >= 40),
      [],
    )
    await tidemark.start()
    assertSame(await stateOf(tidemark), written)
    assert.equal(await tidemark.stop(), 0)

    await kafka.start()
    assertSame(await stateOf(kafka), written)
    await goOn(kafka, left)
    await goOn(kafka, ours)
  })
}
