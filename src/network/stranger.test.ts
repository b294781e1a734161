import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whatStrangerSent } from './stranger.ts'

test('HTTP, TLS and garbage are told apart', () => {
  for (const [first, says] of [
    [Buffer.from('GET / HTTP/1.1\r\n'), /^HTTP; this port speaks the Kafka protocol$/],
    [Buffer.from('POST'), /^HTTP;/],
    [Buffer.from('16030102000100', 'hex'), /^TLS to the plaintext listener PLAINTEXT;/],
    [Buffer.from('16ff', 'hex'), /^bytes that are no Kafka request: a frame of 6 bytes$/],
    [Buffer.alloc(0), /^bytes that are no Kafka request/],
  ] as const) {
    assert.match(whatStrangerSent(first, 'PLAINTEXT', 'a frame of 6 bytes'), says)
  }
})
