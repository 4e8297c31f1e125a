/**
 * One user asks the ledger for as much as they can; another sends messages. The attacker creates chats of very many
 * members from many connections; the victim's messages are all stored, between the slices of the attacker's chats,
 * nearly as fast as without the attack. Embedded, and with a `rollcall ledger` and the attacker on another gateway.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { AMPLE_RATES, makeChat, sendMessage } from '../support/chats.mjs';
import { closeAll, connect, metric, rest, sleep } from '../support/client.mjs';
import { makeLedger, PEER_SECRET } from '../support/ledger_server.mjs';
import { startServer } from '../support/server.mjs';

const CHATS = 37;
const MEMBERS = 9999;
const ATTACKERS = 12;
const RETRY_MS = 500;
/** How many messages the victim sends to find out how long one takes without the attacker. */
const MESSAGES_ALONE = 50;
/** How much slower the victim may be served in the median, and below which time nobody notices. The attacker's requests
 * keep this process and the gateway busy, too; with one transaction per chat, the median is above a second. */
const SLOWDOWN_MAX = 5;
const UNNOTICED_MS = 20;

const members = Array.from({ length: MEMBERS }, (_, i) => `member-${i}`);

const createLargeChat = (server, user, chatId) =>
  rest(server, 'POST', '/v1/chats', { user, body: { chat_id: chatId, members } });

const median = (values) => values.slice().sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Sends messages one after the other while `wanted` says so; returns how long each waited for its acknowledgement. */
async function measureWaits(client, wanted) {
  const waits = [];
  while (wanted(waits.length)) {
    const startedMs = performance.now();
    const ack = await sendMessage(client, 'friends', 'hello');
    assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
    waits.push(performance.now() - startedMs);
  }
  return waits;
}

/** Creates the chats from `ATTACKERS` connections at once, each again until it exists; returns how many were refused. */
async function attack(server) {
  let refused = 0;
  let next = 0;
  const attacker = async () => {
    while (next < CHATS) {
      const chatId = `large-${(next += 1)}`;
      for (;;) {
        const { status, body } = await createLargeChat(server, 'mallory', chatId);
        if (status === 201 || status === 200) break;
        assert.equal(status, 503, JSON.stringify(body));
        refused += 1;
        await sleep(RETRY_MS);
      }
    }
  };
  await Promise.all(Array.from({ length: ATTACKERS }, attacker));
  return refused;
}

async function expectVictimUnharmed(context, victims, attackers) {
  await makeChat(victims, 'friends', 'alice', 'bob');
  const alice = await connect(victims, 'alice');
  const alone = await measureWaits(alice, (sent) => sent < MESSAGES_ALONE);
  let over = false;
  const attacking = attack(attackers).finally(() => {
    over = true;
  });
  const attacked = await measureWaits(alice, () => !over);
  const refused = await attacking;
  const aloneMs = median(alone);
  const attackedMs = median(attacked);
  const figures =
    `median ${attackedMs.toFixed(1)} ms, alone ${aloneMs.toFixed(1)} ms; ${attacked.length} messages, ` +
    `the slowest after ${Math.max(...attacked).toFixed()} ms; ${refused} of the attacker's requests were refused`;
  context.diagnostic(figures);
  assert.ok(attackedMs <= SLOWDOWN_MAX * Math.max(aloneMs, UNNOTICED_MS), figures);
  assert.equal(await metric(victims, 'gateway_circuit_breaker_open'), 0);
}

test('one user who creates very large chats does not keep another from sending', async (context) => {
  const server = await startServer({ settings: { ...AMPLE_RATES, 'gateway.workers': 2 } });
  after(() => server.stop());
  after(closeAll);
  await expectVictimUnharmed(context, server, server);
});

test('nor does a user of another gateway on the same ledger', async (context) => {
  const ledger = await makeLedger();
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-fairness-'));
  await ledger.start();
  const start = () =>
    startServer({
      dataDir,
      args: ['--ledger', ledger.url],
      settings: { ...AMPLE_RATES, 'peer.secret': PEER_SECRET, 'gateway.workers': 1 },
    });
  const gateways = [await start(), await start()];
  after(async () => {
    closeAll();
    await Promise.all(gateways.map((server) => server.stop()));
    await ledger.remove();
    await rm(dataDir, { recursive: true, force: true });
  });
  await expectVictimUnharmed(context, ...gateways);
});
