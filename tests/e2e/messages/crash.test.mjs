/**
 * kill -9 during a storm of sends, repeatedly on the same file: every acknowledged message is stored once, with
 * its sequence, and sequences have no gaps. $SOAK_ROUNDS is the number of rounds (10; `make soak` runs 200).
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
const ROUND_MS = 120000;

/** Every round has chats of its own, so that checks do not take longer with each round. */
const chatsOf = (round) => ['x', 'y', 'z'].map((name) => `${name}-${round}`);
const SENDERS = 8;
const IN_FLIGHT = 20;

const SETTINGS = { ...AMPLE_RATES, 'gateway.workers': 2 };

/** Keeps messages in flight until the connection ends; records them in `acked` and `pending`. */
function startStorm(client, name, chats, acked, pending) {
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

/** Checks that the stored messages of a chat agree with the acknowledgements; returns how many were compared. */
async function checkStored(path, chatId, acked) {
  const rows = await sql(
    path,
    `SELECT sequence || ' ' || client_message_id || ' ' || message_id FROM messages
     WHERE chat_id = '${chatId}' ORDER BY sequence`,
  );
  const stored = rows === '' ? [] : rows.split('\n').map((row) => row.split(' '));
  stored.forEach(([sequence], i) => assert.equal(Number(sequence), i + 1, 'sequences are dense from 1'));
  const byId = new Map(stored.map(([sequence, id, messageId]) => [id, [Number(sequence), messageId]]));
  assert.equal(byId.size, stored.length, 'each client_message_id is stored once');
  let checked = 0;
  for (const ack of acked.values()) {
    if (ack.chat_id !== chatId) continue;
    assert.deepEqual(byId.get(ack.client_message_id), [ack.sequence, ack.message_id]);
    checked += 1;
  }
  const counter = await sql(path, `SELECT sequence FROM chat_counters WHERE chat_id = '${chatId}'`);
  assert.equal(Number(counter), stored.length, 'the counter is the sequence of the last message');
  return checked;
}

/** Sends again what was not acknowledged; each is stored now, or was stored before. */
async function repeatPending(server, pending, acked) {
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

test(`no acknowledged message is lost over ${ROUNDS} kills in a storm`, { timeout: ROUNDS * ROUND_MS }, async (context) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-crash-'));
  context.after(() => rm(dataDir, { recursive: true, force: true }));
  const acked = new Map();
  const pending = new Map();
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await startServer({ dataDir, settings: SETTINGS });
    try {
      for (const chatId of chatsOf(round))
        await makeChat(server, chatId, 'alice', 'bob');
      await repeatPending(server, pending, acked);
      for (let i = 0; i < SENDERS; i += 1) {
        const client = await connect(server, 'alice', { device: `d${i}` });
        startStorm(client, `r${round}-s${i}`, chatsOf(round), acked, pending);
      }
      await sleep(50 + Math.random() * 400);
    } finally {
      await server.stop('SIGKILL');
      closeAll();
    }
    for (const chatId of chatsOf(round)) await checkStored(ledgerPath(server), chatId, acked);
  }
  let checked = 0;
  for (let round = 0; round < ROUNDS; round += 1)
    for (const chatId of chatsOf(round))
      checked += await checkStored(join(dataDir, 'ledger.db'), chatId, acked);
  assert.equal(checked, acked.size);
  assert.ok(acked.size > ROUNDS * 20, `only ${acked.size} messages were acknowledged`);
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
  }, 'the user is offline');
  await sleep(400); // the delay of the write-behind, and time for a slow disk
  await first.stop('SIGKILL');
  const second = await startServer({ dataDir });
  context.after(() => second.stop());
  const found = await presence(second);
  assert.deepEqual([found.status, found.last_seen], ['offline', left.last_seen]);
  assert.ok(found.version >= left.version);
});

test('clients that disconnect at any step of a send leave no gap and no duplicate', async () => {
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
