/** Too many messages, in and out: limits are reported, every message has one answer, slow consumers cost bounded memory. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { AMPLE_RATES, history, makeChat, postMessage, sendMessage } from '../support/chats.mjs';
import { closeAll, connect, eventually, metric, setVisibility, sleep } from '../support/client.mjs';
import { ledgerPath, sql } from '../support/ledger.mjs';
import { startServer } from '../support/server.mjs';

/** The default burst of messages. */
const BURST = 20;

/** Small queues in the server and in the socket: a client that does not read is soon a slow consumer. */
const SMALL_QUEUE = {
  ...AMPLE_RATES,
  'gateway.backpressure.outbound.max_buffer_messages': 100,
  'gateway.socket_unsent_bytes_max': 4096,
};

const servers = [];

afterEach(async () => {
  closeAll();
  for (const server of servers.splice(0)) await server.stop();
});

async function start(settings) {
  const server = await startServer({ settings });
  servers.push(server);
  return server;
}

const isAnswer = ({ type }) => type === 'message_ack' || type === 'error';
const messagesOf = ({ messages }) => messages.filter(({ type }) => type === 'message');
const sequencesOf = (messages) => messages.map(({ sequence }) => sequence);
const upTo = (count) => Array.from({ length: count }, (_, i) => i + 1);

/** Sends messages without waiting for answers; ids count from 0. */
function sendWithoutWaiting(client, chatId, count, prefix) {
  for (let n = 0; n < count; n += 1)
    client.send({
      type: 'send_message',
      id: n,
      chat_id: chatId,
      client_message_id: `${prefix}-${n}`,
      body: 'x',
    });
}

test('messages beyond ten a second, or twenty at once, are RATE_LIMITED with a retry time', async () => {
  const server = await start();
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  const answers = await Promise.all(
    Array.from({ length: BURST + 10 }, (_, i) => sendMessage(alice, 'c', 'now', `b-${i}`)),
  );
  const refused = answers.filter(({ type }) => type === 'error');
  assert.ok(refused.length >= 5 && refused.length <= 10, `${refused.length} refused`);
  for (const error of refused) {
    assert.equal(error.code, 'RATE_LIMITED');
    assert.match(error.client_message_id, /^b-/);
    assert.ok(error.retry_after_seconds > 0 && error.retry_after_seconds <= 1);
  }
  const stored = answers.filter(({ type }) => type === 'message_ack').length;
  const other = await connect(server, 'alice');
  assert.equal((await sendMessage(other, 'c', 'another connection')).sequence, stored + 1);
  await sleep(Math.max(...refused.map((error) => error.retry_after_seconds)) * 1000 + 50);
  assert.equal((await sendMessage(alice, 'c', 'later')).type, 'message_ack');

  const answersOverRest = [];
  const isRefused = ({ status }) => status === 429;
  for (let i = 0; i < BURST * 3 && !answersOverRest.some(isRefused); i += 1)
    answersOverRest.push(
      ...(await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          postMessage(server, 'bob', 'c', { client_message_id: `r-${i}-${n}`, body: 'now' }),
        ),
      )),
    );
  const tooMany = answersOverRest.find(isRefused);
  assert.ok(tooMany, 'REST is limited per user');
  assert.equal(tooMany.body.error.code, 'RATE_LIMITED');
  assert.ok(Number(tooMany.headers.get('retry-after')) >= 1);
});

test('messages beyond the queue’s depth are answered SERVER_BUSY, and each has exactly one answer', async () => {
  const server = await start({
    ...AMPLE_RATES,
    'gateway.backpressure.inbound.max_queue_depth': 5,
  });
  await makeChat(server, 'c', 'alice');
  const alice = await connect(server, 'alice');
  sendWithoutWaiting(alice, 'c', 200, 'f');
  await eventually(() => alice.messages.filter(isAnswer).length >= 200, '200 answers');
  await alice.settle();
  const answers = alice.messages.filter(isAnswer);
  assert.equal(answers.length, 200);
  assert.equal(new Set(answers.map(({ id }) => id)).size, 200);
  const busy = answers.filter(({ code }) => code === 'SERVER_BUSY');
  assert.ok(busy.length > 0, 'more than five were in flight');
  for (const error of busy) assert.match(error.client_message_id, /^f-/);
  const { latest_sequence: latest } = (await history(server, 'alice', 'c')).body;
  assert.equal(latest, 200 - busy.length);
});

test('a drain answers pending messages before it closes the connection', async (context) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-drain-'));
  context.after(() => rm(dataDir, { recursive: true, force: true }));
  const server = await startServer({ dataDir, settings: AMPLE_RATES });
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  sendWithoutWaiting(alice, 'c', 90, 'd');
  const stopped = server.stop();
  await alice.ended();
  assert.equal(await stopped, 0);
  const closing = alice.messages.find(({ type }) => type === 'connection_closing');
  assert.equal(closing.reason, 'draining');
  const answers = alice.messages.filter(isAnswer);
  assert.equal(new Set(answers.map(({ id }) => id)).size, answers.length);
  const acks = answers.filter(({ type }) => type === 'message_ack').length;
  assert.ok(acks > 0);
  const stored = await sql(ledgerPath(server), 'SELECT count(*) FROM messages');
  assert.equal(Number(stored), acks, 'every stored message was acknowledged');
});

/** Expects that a slow consumer is warned, and is told for each chat where to sync from when it is closed. */
function expectSlowConsumerClosing(slow, chats) {
  const types = slow.messages.map(({ type, code }) => code ?? type);
  const warned = types.indexOf('SLOW_CONSUMER');
  assert.ok(warned >= 0 && warned < types.indexOf('connection_closing'));
  const closing = slow.messages.find(({ type }) => type === 'connection_closing');
  assert.equal(closing.reason, 'slow_consumer');
  assert.equal(closing.reconnect_allowed, true);
  assert.deepEqual(Object.keys(closing.sync_from_sequence).sort(), chats);
  for (const chatId of chats) {
    const received = sequencesOf(messagesOf(slow).filter(({ chat_id: chat }) => chat === chatId));
    assert.deepEqual(received, upTo(received.length), 'in order, without a gap');
    assert.equal(closing.sync_from_sequence[chatId], received.length, 'the last sequence received');
  }
}

test('a client that stops reading is warned, closed, and told where to sync from', async () => {
  const server = await start({
    ...SMALL_QUEUE,
    'gateway.backpressure.outbound.grace_period_seconds': 1,
    'gateway.close_timeout_seconds': 8,
  });
  const chats = ['x', 'y'];
  for (const chatId of chats) await makeChat(server, chatId, 'alice', 'slow', 'quick');
  const alice = await connect(server, 'alice');
  const quick = await connect(server, 'quick');
  const slow = await connect(server, 'slow');
  slow.socket._socket.pause();
  const total = 1500;
  const startedAt = Date.now();
  for (let n = 1; n <= total; n += 50)
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        sendMessage(alice, chats[i % 2], `${'b'.repeat(4000)} ${n + i}`),
      ),
    );
  await eventually(() => messagesOf(quick).length === total, 'the quick reader has all messages');
  const tookMs = Date.now() - startedAt;
  await eventually(
    async () => (await metric(server, 'gateway_slow_consumer_disconnects')) === 1,
    'the slow reader is disconnected',
  );
  slow.socket._socket.resume();
  const { code } = await slow.ended();
  assert.equal(code, 4003, `after ${tookMs} ms of sending`);
  expectSlowConsumerClosing(slow, chats);
});

test('presence is dropped in favour of messages, and sent again when the client has caught up', async () => {
  const server = await start({
    ...SMALL_QUEUE,
    'gateway.backpressure.outbound.grace_period_seconds': 60,
  });
  await makeChat(server, 'c', 'alice', 'slow');
  for (const user of ['bob', 'carol']) await setVisibility(server, user, 'everyone');
  const alice = await connect(server, 'alice');
  const slow = await connect(server, 'slow');
  await slow.subscribe('bob', 'carol');
  slow.socket._socket.pause();
  let sent = 0;
  for (; (await metric(server, 'gateway_slow_consumer_warnings')) === 0; sent += 1)
    assert.equal((await sendMessage(alice, 'c', 'b'.repeat(4000))).type, 'message_ack');
  await connect(server, 'bob');
  await eventually(
    async () => (await metric(server, 'gateway_states_shed')) > 0,
    'a presence change is dropped',
  );
  slow.socket._socket.resume();
  const snapshot = await slow.next('presence_snapshot');
  assert.equal(snapshot.id, undefined);
  assert.equal(snapshot.presences.find(({ user_id: user }) => user === 'bob').status, 'online');
  assert.deepEqual(sequencesOf(messagesOf(slow)), upTo(sent));
  assert.equal((await slow.ask({ type: 'heartbeat' })).type, 'heartbeat_ack', 'the connection is served again');
});
