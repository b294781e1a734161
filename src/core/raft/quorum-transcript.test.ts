import { join } from 'node:path'
import { testTranscripts } from '../testing/transcripts.ts'
import { QuorumScript } from './testing/script.ts'

/**
 * Transcripts of several members in testdata/quorum/: commands, a rule of dashes, and everything that every member then
 * did, which TIDEMARK_REWRITE=1 writes anew.
 *
 *   members [ids=1,2,3] [voters=1,2,3] [recorded] [founding] [records-voters] [auto-join]
 *   log ID EPOCH:COUNT ... [epoch=] [leader=] [voted=]    what it starts with
 *   old ID                 of a release that knows neither pre-votes nor kraft.version 1
 *   start ID ...   stop ID   kill ID [silently]   new-disk ID
 *   gone ID                everybody else is told that its process is gone
 *   run [MS]               messages arrive, and so much time passes
 *   append ID [COUNT]      cut A B [one-way]    heal
 *   hold-disk ID           nothing is stored, or by   hold-log ID   no records, until   disk-works ID   or   disk-fails ID
 *   snapshot ID OFFSET     miss-snapshot ID       what it asks for next is gone     slow-snapshot ID PIECES
 *   vote ID [id= epoch= last= end= pre= to=]      begin-epoch, end-epoch ID [id= epoch=]
 *   add-voter, remove-voter, update-voter ID [id= directory= port= timeout= early=]     record-voters ID
 */
testTranscripts(join(import.meta.dirname, 'testdata', 'quorum'), () => new QuorumScript())
