/**
 * kill -9 in a storm of sends, again and again on the same file: every message that was acknowledged is
 * there once, with its sequence, and sequences have no gap. $SOAK_ROUNDS sets how often (10; `make soak`
 * runs 200).
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AMPLE_RATES, makeChat } from '../support/chats.mjs';
import { closeAll, connect, eventually, openSocket, rest, sleep } from '../support/client.mjs';
import { ledgerPath, sql } from '../support/ledger.mjs';
import { startServer } from '../support/server.mjs';

const ROUNDS = Number(process.env.SOAK_ROUNDS ?? 10);
const ROUND_MS = 30000;

/** Every round has chats of its own, or checking the last would take ever longer. */
const chatsOf = (round) => ['x', 'y', 'z'].map((name) => `${name}-${round}`);
const SENDERS = 8;
const IN_FLIGHT = 20;

const SETTINGS = { ...AMPLE_RATES, 'gateway.workers': 2 };

/** Keeps messages in flight until the connection ends; notes what was acknowledged. */
function storm(client, name, chats, acked, pending) {
  let sent = 0;
  const sendOne = () => {
    const id = `${name}-${(sent += 1)}`;
    const chatId = chats[sent % chats.length];
    pending.set(id, chatId);
    client.send({ type: 'send_message', chat_id: chatId, client_message_id: id, body: id });
  };
  client.socket.on('message', (data) => {
    const message = JSON.parse(data);
    if (message.type === 'message_ack') {
      acked.set(message.client_message_id, message);
      pending.delete(message.client_message_id);
    }
    if (message.type === 'message_ack' || message.type === 'error') sendOne();
  });
  for (let i = 0; i < IN_FLIGHT; i += 1) sendOne();
}

/** What the file says of a chat, and whether that agrees with what was acknowledged. */
async function check(path, chatId, acked) {
  const rows = await sql(
    path,
    `SELECT sequence || ' ' || client_message_id || ' ' || message_id FROM messages
     WHERE chat_id = '${chatId}' ORDER BY sequence`,
  );
  const stored = rows === '' ? [] : rows.split('\n').map((row) => row.split(' '));
  stored.forEach(([sequence], i) => assert.equal(Number(sequence), i + 1, 'dense from 1'));
  const byId = new Map(stored.map(([sequence, id, messageId]) => [id, [Number(sequence), messageId]]));
  assert.equal(byId.size, stored.length, 'each client_message_id once');
  let checked = 0;
  for (const ack of acked.values()) {
    if (ack.chat_id !== chatId) continue;
    assert.deepEqual(byId.get(ack.client_message_id), [ack.sequence, ack.message_id]);
    checked += 1;
  }
  const counter = await sql(path, `SELECT sequence FROM chat_counters WHERE chat_id = '${chatId}'`);
  assert.equal(Number(counter), stored.length, 'the counter is that of the last message');
  return checked;
}

/** Repeats what was sent and not acknowledged: each is either new or the first result. */
async function repeat(server, pending, acked) {
  const client = await connect(server, 'alice');
  for (const [id, chatId] of [...pending].slice(0, 50)) {
    const ack = await client.ask({
      type: 'send_message',
      chat_id: chatId,
      client_message_id: id,
      body: id,
    });
    assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
    acked.set(id, ack);
  }
  pending.clear();
}

test(`${ROUNDS} kills in a storm`, { timeout: ROUNDS * ROUND_MS }, async (context) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-crash-'));
  context.after(() => rm(dataDir, { recursive: true, force: true }));
  const acked = new Map();
  const pending = new Map();
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await startServer({ dataDir, settings: SETTINGS });
    try {
      for (const chatId of chatsOf(round))
        await makeChat(server, chatId, 'alice', 'bob');
      await repeat(server, pending, acked);
      for (let i = 0; i < SENDERS; i += 1) {
        const client = await connect(server, 'alice', { device: `d${i}` });
        storm(client, `r${round}-s${i}`, chatsOf(round), acked, pending);
      }
      await sleep(50 + Math.random() * 400);
    } finally {
      await server.stop('SIGKILL');
      closeAll();
    }
    for (const chatId of chatsOf(round)) await check(ledgerPath(server), chatId, acked);
  }
  let checked = 0;
  for (let round = 0; round < ROUNDS; round += 1)
    for (const chatId of chatsOf(round))
      checked += await check(join(dataDir, 'ledger.db'), chatId, acked);
  assert.equal(checked, acked.size);
  assert.ok(acked.size > ROUNDS * 20, `${acked.size} acknowledged`);
  context.diagnostic(`${acked.size} acknowledged messages over ${ROUNDS} kills`);
});

test('the last-seen time survives a kill soon after it was set', async (context) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-crash-'));
  context.after(() => rm(dataDir, { recursive: true, force: true }));
  const presence = async (server) =>
    (await rest(server, 'GET', '/v1/presence/seen', { user: 'seen' })).body;
  const first = await startServer({ dataDir });
  await connect(first, 'seen');
  closeAll();
  const left = await eventually(async () => {
    const found = await presence(first);
    return found.status === 'offline' && found;
  }, 'offline');
  await sleep(400); // the write-behind's moment, and a slow disk
  await first.stop('SIGKILL');
  const second = await startServer({ dataDir });
  context.after(() => second.stop());
  const found = await presence(second);
  assert.deepEqual([found.status, found.last_seen], ['offline', left.last_seen]);
  assert.ok(found.version >= left.version);
});

test('clients killed at every step of a send leave nothing half done', async () => {
  const server = await startServer({ settings: SETTINGS });
  try {
    await makeChat(server, 'x', 'alice', 'bob');
    const bearer = await server.token('alice');
    const url = `ws://127.0.0.1:${server.port}/v1/ws`;
    const headers = { Authorization: `Bearer ${bearer}` };
    for (let step = 0; step < 60; step += 1) {
      const client = openSocket(url, [], { headers });
      if (step % 4 > 0) await client.next('connection_established');
      const send = {
        type: 'send_message',
        chat_id: 'x',
        client_message_id: `k-${step}`,
        body: 'x',
      };
      if (step % 4 > 1) client.send(send);
      if (step % 4 > 2) await sleep(step / 10);
      client.terminate();
    }
    const alice = await connect(server, 'alice');
    const sequences = [];
    for (let step = 0; step < 60; step += 1) {
      const ack = await alice.ask({
        type: 'send_message',
        chat_id: 'x',
        client_message_id: `k-${step}`,
        body: 'x',
      });
      assert.equal(ack.type, 'message_ack');
      sequences.push(ack.sequence);
    }
    assert.deepEqual(
      sequences.sort((a, b) => a - b),
      Array.from({ length: 60 }, (_, i) => i + 1),
    );
  } finally {
    closeAll();
    assert.equal(await server.stop(), 0);
  }
});
