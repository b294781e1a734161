/** Folders go from a real Kafka (../shared/peer) to Tidemark and back: what is stored is served, and written on. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createTopic } from '../../src/client/admin/topics.ts'
import { throwIfError } from '../../src/client/errors.ts'
import { API } from '../../src/protocol/apis.ts'
import { BatchBuilder } from '../../src/records/builder.ts'
import { Server } from '../server.ts'
import { produceBody, RawProducer } from './raw-producer.ts'
import { channelOf, clientOf, eventually, logLines, readAll, withoutKafka } from './rig.ts'
import { assertSame, goOn, putIn, stateOf } from './workload.ts'

const skip = await withoutKafka()

/** Writes one record in a transaction of its own, and ends it as told. */
async function transact(server: Server, topic: string, value: string, end: 'committed' | 'aborted' | 'left open') {
  const channel = await channelOf(server)
  const client = await clientOf(server)
  const id = `id of ${value}`
  await client.retrying(async () => {
    const answer = await client.ask('any', API.FindCoordinator, { coordinatorKeys: [id], keyType: 1 })
    throwIfError(answer.coordinators[0]?.errorCode ?? -1, id)
    const { producerId, producerEpoch, errorCode } = await channel.ask(
      API.InitProducerId,
      { transactionalId: id, transactionTimeoutMs: 15_000 },
      { versionMax: 4 },
    )
    throwIfError(errorCode, id)
    const of = {
      v3AndBelowTransactionalId: id,
      v3AndBelowProducerId: producerId,
      v3AndBelowProducerEpoch: producerEpoch,
    }
    const topics = { v3AndBelowTopics: [{ name: topic, partitions: [0] }] }
    const added = await channel.ask(API.AddPartitionsToTxn, { ...of, ...topics }, { versionMax: 3 })
    throwIfError(added.resultsByTopicV3AndBelow[0]?.resultsByPartition[0]?.partitionErrorCode ?? -1, id)
    const builder = new BatchBuilder({ producerId, producerEpoch, baseSequence: 0, transactional: true })
    builder.append(Date.now(), null, Buffer.from(value))
    const body = { ...produceBody(topic, 0, builder.build()), transactionalId: id }
    const { responses } = await channel.ask(API.Produce, body, { versionMax: 11 })
    throwIfError(responses[0]?.partitionResponses[0]?.errorCode ?? -1, id)
    if (end === 'left open') return
    const committed = end === 'committed'
    const ended = await channel.ask(
      API.EndTxn,
      { transactionalId: id, producerId, producerEpoch, committed },
      { versionMax: 4 },
    )
    throwIfError(ended.errorCode, id)
  })
  client.close()
  channel.close()
}

const TRANSACTED = 'transacted'

async function valuesOf(server: Server, isolation?: 'read_committed'): Promise<string> {
  const client = await clientOf(server)
  const records = await readAll(client, TRANSACTED, 0, isolation)
  client.close()
  return records.map(({ value }) => String(value)).join('')
}

/** Tidemark over the folder of a Kafka, with the settings that whoever changes over has in his configuration. */
function over(kafka: Server): Promise<Server> {
  return Server.create('tidemark', undefined, {
    'log.dirs': join(kafka.folder, 'data'),
    'broker.rack': 'rack1',
    'controller.quorum.voters': `1@127.0.0.1:${kafka.port + 1}`,
    'offsets.topic.replication.factor': '1',
  })
}

test('the folder of a Kafka that was stopped: Tidemark serves it and writes on, and Kafka goes on with it', {
  skip,
  timeout: 150_000,
}, async t => {
  const kafka = await Server.create('kafka', undefined, {
    'transaction.abort.timed.out.transaction.cleanup.interval.ms': '500',
    'transaction.state.log.num.partitions': '2',
  })
  t.after(() => kafka.remove())
  const tidemark = await over(kafka)
  t.after(() => tidemark.remove())

  await kafka.start()
  let left = await putIn(kafka, 'kafka')
  const client = await clientOf(kafka)
  await createTopic(client, { name: TRANSACTED, partitions: 1 })
  client.close()
  await transact(kafka, TRANSACTED, 'a', 'committed')
  await transact(kafka, TRANSACTED, 'b', 'aborted')
  await transact(kafka, TRANSACTED, 'c', 'committed')
  await eventually('the markers are written', async () => (await valuesOf(kafka, 'read_committed')) === 'ac')
  const before = await stateOf(kafka, [TRANSACTED])
  await transact(kafka, TRANSACTED, 'd', 'left open')
  await kafka.stop()

  await tidemark.start()
  assertSame(await stateOf(tidemark, [TRANSACTED]), before)
  assert.equal(await valuesOf(tidemark), 'abcd')
  left = await goOn(tidemark, left)
  const ours = await putIn(tidemark, 'tidemark')
  const channel = await channelOf(tidemark)
  const producer = await RawProducer.create(channel)
  assert.equal((await producer.send(channel, TRANSACTED, 0, producer.batch(['e'], 0))).errorCode, 0)
  channel.close()
  const written = await stateOf(tidemark, [TRANSACTED])
  assert.equal(await tidemark.stop(), 0)
  assert.deepEqual(
    logLines(tidemark).filter(({ level }) => level >= 40),
    [],
  )
  await tidemark.start()
  assertSame(await stateOf(tidemark, [TRANSACTED]), written)
  assert.equal(await tidemark.stop(), 0)

  await kafka.start()
  assertSame(await stateOf(kafka, [TRANSACTED]), written)
  await goOn(kafka, left)
  await goOn(kafka, ours)
  // What Kafka knew of transactions went through Tidemark unharmed: what was aborted stays so, what was open times out.
  assert.equal(await valuesOf(kafka), 'abcde')
  const ended = async () => (await valuesOf(kafka, 'read_committed')) === 'ace'
  await eventually('the transaction that was left open is ended', ended, 40_000)
})

test('the folder of a Kafka that was killed: Tidemark recovers it, serves it and writes on', {
  skip,
  timeout: 120_000,
}, async t => {
  const kafka = await Server.create('kafka')
  t.after(() => kafka.remove())
  const tidemark = await over(kafka)
  t.after(() => tidemark.remove())
  await kafka.start()
  // Where records were deleted is told to nobody but a checkpoint that Kafka writes in its own time.
  const left = await putIn(kafka, 'kafka', { deletesRecords: false })
  const before = await stateOf(kafka)
  await kafka.kill()

  await tidemark.start()
  assertSame(await stateOf(tidemark), before)
  await goOn(tidemark, left)
  await putIn(tidemark, 'tidemark')
  const written = await stateOf(tidemark)
  await tidemark.restart()
  assertSame(await stateOf(tidemark), { ...written })
  assert.equal(await tidemark.stop(), 0)
})
