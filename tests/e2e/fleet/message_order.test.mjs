/**
 * Messages between two gateways with one `rollcall ledger`: they arrive in the order in which one sender sent
 * them, and what was acknowledged arrives live, also when the sender's gateway is killed.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { AMPLE_RATES, makeChat, sendMessage } from '../support/chats.mjs';
import { closeAll, eventually } from '../support/client.mjs';
import { joinFleet, startFleet } from '../support/fleet.mjs';
import { ledgerPath, sql } from '../support/ledger.mjs';
import { startRedis } from '../support/redis.mjs';
import { startServer } from '../support/server.mjs';

const MESSAGES = 400;
const IN_FLIGHT = 40;
/** The feed takes over after six seconds at most; a busy machine may add to that. */
const TAKEOVER_MS_MAX = 20000;

async function startTwoGateways() {
  const redis = await startRedis();
  const fleet = await startFleet({ redis, settings: AMPLE_RATES });
  after(async () => {
    closeAll();
    await fleet.stop();
    await redis.stop();
  });
  return { fleet, redis };
}

/** Sends messages in bursts, without waiting for the answer to one before the next; returns their bodies. */
async function sendInBursts(client, chatId, count, prefix = '') {
  const bodies = Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);
  for (let first = 0; first < count; first += IN_FLIGHT) {
    const burst = bodies.slice(first, first + IN_FLIGHT);
    for (const ack of await Promise.all(burst.map((body) => sendMessage(client, chatId, body))))
      assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
  }
  return bodies;
}

test('messages of one sender reach a device on another gateway in their order', async () => {
  const { fleet } = await startTwoGateways();
  const [one, two] = fleet.gateways;
  await makeChat(one, 'ordered', 'alice', 'bob');
  const alice = await joinFleet(one, 'alice');
  const bob = await joinFleet(two, 'bob');
  const sent = await sendInBursts(alice, 'ordered', MESSAGES);
  await eventually(() => bob.bodies().length === MESSAGES, 'all messages arrive');
  assert.deepEqual(bob.bodies(), sent);
});

/** Redis answers nobody, so what is acknowledged cannot be sent on before the gateway dies. */
test('what a killed gateway acknowledged reaches recipients on another one live, within seconds', async () => {
  const { fleet, redis } = await startTwoGateways();
  const [one, two] = fleet.gateways;
  await makeChat(one, 'orphaned', 'alice', 'bob');
  const alice = await joinFleet(one, 'alice');
  const bob = await joinFleet(two, 'bob');
  await sendInBursts(alice, 'orphaned', IN_FLIGHT);
  await eventually(() => bob.bodies().length === IN_FLIGHT, 'the first messages arrive');
  redis.pause();
  const acked = await sendInBursts(alice, 'orphaned', IN_FLIGHT, 'late-');
  await fleet.crash(one);
  redis.resume();
  const crashedMs = Date.now();
  await eventually(
    () => acked.every((body) => bob.bodies().includes(body)),
    () => `all of ${acked} among ${bob.bodies()}`,
    TAKEOVER_MS_MAX,
  );
  assert.equal(new Set(bob.bodies()).size, bob.bodies().length, 'none arrives twice');
  assert.ok(Date.now() - crashedMs < TAKEOVER_MS_MAX);
});

test('after the restart of a gateway with its own ledger recipients who come back get it live', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-order-'));
  after(() => rm(dataDir, { recursive: true, force: true }));
  const first = await startServer({ dataDir, settings: AMPLE_RATES });
  await makeChat(first, 'restarted', 'alice', 'bob');
  const ack = await sendMessage(await joinFleet(first, 'alice'), 'restarted', 'before the kill');
  assert.equal(ack.sequence, 1);
  await first.stop('SIGKILL');
  /* As if the process had been killed before the message was sent on. */
  await sql(ledgerPath(first), "INSERT OR IGNORE INTO outbox (chat_id, sequence) VALUES ('restarted', 1)");
  const second = await startServer({ dataDir, settings: AMPLE_RATES });
  after(() => second.stop());
  const bob = await joinFleet(second, 'bob');
  await eventually(() => bob.bodies().includes('before the kill'), 'the message', TAKEOVER_MS_MAX);
});
