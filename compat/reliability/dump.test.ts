/** Kafka's own tools (../shared/peer) read every file that Tidemark wrote, over a clean stop and a crash. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Server } from '../server.ts'
import { filesOf, tool, verifyLog, withoutKafka } from './rig.ts'
import { goOn, putIn } from './workload.ts'

const skip = await withoutKafka()

/** The tool counts from -1 in every segment, also in Kafka's own, so that only the first is free of this remark. */
const REMARK = /^Non-consecutive offsets|^ +-1 is followed by \d+$|^$/

async function dump(files: readonly string[], ...flags: string[]): Promise<string> {
  const { stdout, stderr } = await tool('kafka-dump-log', ...flags, '--files', files.join(','))
  assert.deepEqual(
    stderr.split('\n').filter(line => !REMARK.test(line)),
    [],
    flags.join(' '),
  )
  assert.doesNotMatch(stdout, /isvalid: false|mismatch|corrupt|Found timestamp/i)
  return stdout
}

test('kafka-dump-log and golden verify-log read what a mixed workload left', { skip, timeout: 120_000 }, async t => {
  const server = await Server.create('tidemark')
  t.after(() => server.remove())
  await server.start()
  const first = await putIn(server, 'first')
  await server.restart()
  await goOn(server, first)
  await putIn(server, 'second')
  assert.equal(await server.stop(), 0)

  const data = join(server.folder, 'data')
  const logs = await filesOf(data, '.log')
  const indexes = [...(await filesOf(data, '.index')), ...(await filesOf(data, '.timeindex'))]
  const snapshots = await filesOf(data, '.snapshot')
  const isMetadata = (file: string) => file.includes('__cluster_metadata')
  const isOffsets = (file: string) => file.includes('__consumer_offsets')
  const users = logs.filter(file => !isMetadata(file) && !isOffsets(file))
  // A log that never had a record need not have files.
  assert.ok(logs.length > 20 && indexes.length > logs.length && snapshots.length > 0)

  const [sane, verified, offsets, metadata] = [
    await dump([...users, ...indexes, ...snapshots], '--deep-iteration', '--index-sanity-check'),
    await dump(indexes, '--verify-index-only'),
    await dump(logs.filter(isOffsets), '--offsets-decoder', '--deep-iteration'),
    await dump(
      [...logs.filter(isMetadata), ...(await filesOf(join(data, '__cluster_metadata-0'), '.checkpoint'))],
      '--cluster-metadata-decoder',
    ),
  ]
  assert.equal(sane.match(/passed sanity check|is empty/g)?.length, indexes.length)
  assert.match(sane, /compresscodec: zstd/)
  assert.match(sane, /producerId: \d+ producerEpoch: 0 .*lastSequence: 14/)
  assert.equal(verified.match(/Dumping /g)?.length, indexes.length)
  assert.match(offsets, /"group":"first-tools","topic":"first-plain","partition":2.*"offset":9/)
  assert.match(offsets, /"group":"second-members"/)
  assert.match(metadata, /REMOVE_TOPIC_RECORD/)
  const verdict = verifyLog(data)
  assert.ok(verdict.ok, JSON.stringify(verdict))
  assert.equal(
    verdict.warnings === undefined || (verdict.warnings as unknown[]).length === 0,
    true,
    JSON.stringify(verdict),
  )
})
