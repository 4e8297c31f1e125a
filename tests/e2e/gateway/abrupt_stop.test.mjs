/**
 * A server that is told to stop without a drain time, while its disk does not answer and every kind of work is in
 * flight: it ends with 0 and in order. The sanitized program also checks its memory.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { closeAll, connect, devToken, rest, sleep } from '../support/client.mjs';
import { befriend } from '../support/contacts.mjs';
import { EngineSession } from '../support/engine.mjs';
import { startRedis } from '../support/redis.mjs';
import { ROLLCALL_BIN, startServer } from '../support/server.mjs';

const USERS = 60;
const cleanups = [];

afterEach(async () => {
  closeAll();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A server whose disk stops answering after `disk.stop()`. */
async function serveWithStoppableDisk(args) {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-disk-'));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  const flag = join(directory, 'slow');
  const server = await startServer({
    args,
    settings: { 'gateway.shutdown.drain_timeout_seconds': 0, 'presence.offline_grace_seconds': 0 },
    env: {
      LD_PRELOAD: join(dirname(ROLLCALL_BIN), 'libslow_disk.so'),
      SLOW_DISK: flag,
      ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`,
    },
  });
  cleanups.push(() => server.stop('SIGKILL'));
  return { server, disk: { stop: () => writeFile(flag, ''), resume: () => rm(flag, { force: true }) } };
}

/** Leaves requests of every kind unanswered: messages, reads, calls, typing, REST, polling. */
async function startWork(server, clients, polling) {
  for (const [i, client] of clients.entries()) {
    client.send({ type: 'send_message', chat_id: 'team', client_message_id: `m${i}`, body: 'hello' });
    client.send({ type: 'typing_start', chat_id: 'team' });
    client.send({ type: 'open_chat', chat_id: 'team' });
    client.send({ type: 'query_presence', user_ids: ['user1', 'user2'] });
    client.send({ type: 'ack', chat_id: 'team', sequence: 1 });
    client.send({ type: 'sync_request', chat_id: 'team', after_sequence: 0 });
  }
  clients[0].send({ type: 'call_request', to: 'user1' });
  const patch = { user: 'user3', body: { presence_visibility: 'everyone' } };
  const answers = [
    rest(server, 'PATCH', '/v1/me', patch),
    rest(server, 'POST', '/v1/contact-requests', { user: 'user4', body: { to: 'user5' } }),
    rest(server, 'GET', '/v1/friends', { user: 'user0' }),
    polling.poll(),
  ];
  for (const answer of answers) answer.catch(() => {});
}

/** The arguments of a backend, and `pause()` and `resume()` of what it depends on. */
const BACKENDS = {
  'state in memory': async () => ({ args: [], pause: () => {}, resume: () => {} }),
  'state in Redis': async () => {
    const redis = await startRedis();
    const resume = () => process.kill(redis.pid, 'SIGCONT');
    cleanups.push(() => redis.stop(), resume);
    const links = ['--set', 'peer.secret=of-this-test', '--peer-listen', '127.0.0.1:0'];
    return { args: ['--state', redis.url, ...links], pause: () => process.kill(redis.pid, 'SIGSTOP'), resume };
  },
};

for (const [name, makeBackend] of Object.entries(BACKENDS))
  test(`a stop without drain time leaves nothing behind, with ${name}`, async () => {
    const backend = await makeBackend();
    const { server, disk } = await serveWithStoppableDisk(['--workers', '2', ...backend.args]);
    const users = Array.from({ length: USERS }, (_, i) => `user${i}`);
    const clients = await Promise.all(users.map((user) => connect(server, user)));
    await befriend(server, 'user0', 'user1');
    await rest(server, 'POST', '/v1/chats', { user: 'user0', body: { chat_id: 'team', members: users } });
    const polling = await EngineSession.start(server);
    await polling.join(await devToken(server, 'poller'));

    await disk.stop();
    backend.pause();
    await startWork(server, clients, polling);
    for (const client of clients.slice(0, USERS / 2)) client.terminate();
    await sleep(150); // the first last-seen times go to the ledger
    const exited = server.stop('SIGTERM');
    for (const client of clients.slice(USERS / 2)) await client.closed;
    await sleep(200);
    await disk.resume();
    backend.resume();
    assert.equal(await exited, 0, server.log());
    assert.doesNotMatch(server.log(), /Sanitizer|runtime error/);
  });
