import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeConfig, readFlags } from './flags.ts'

const JOIN = ['--node-id', '2', '--port', '9192', '--join', 'localhost:9092']
const AUTO_JOIN = 'controller.quorum.auto.join.enable'

function config(args: readonly string[], environment = {}) {
  const plan = readFlags(args, environment, true)
  assert.ok(typeof plan === 'object' && 'sources' in plan, JSON.stringify(plan))
  return nodeConfig(plan.sources)
}

function autoJoin(args: readonly string[], environment = {}): boolean {
  const found = config(args, environment)
  assert.ok('quorum' in found, JSON.stringify(found))
  return found.quorum.autoJoin
}

test('--join makes a voter, unless it is said anywhere that it shall not', () => {
  assert.equal(autoJoin(JOIN), true)
  assert.equal(autoJoin([...JOIN, '-o', `${AUTO_JOIN}=false`]), false)
  assert.equal(autoJoin(JOIN, { TIDEMARK_CONTROLLER_QUORUM_AUTO_JOIN_ENABLE: 'false' }), false)
  assert.equal(autoJoin([...JOIN, '--roles', 'broker']), false)
  assert.equal(autoJoin(JOIN, { TIDEMARK_PROCESS_ROLES: 'broker' }), false)
})

test('what is missing has no source that could be named', () => {
  assert.deepEqual(config(['--port', '9192', '--join', 'localhost:9092']), {
    problem: 'A node that joins others needs a number that none of them has: set node.id (--node-id).',
  })
})
