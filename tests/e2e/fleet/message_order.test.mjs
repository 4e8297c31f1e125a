/**
 * Messages between two gateways with one `rollcall ledger`: they arrive in the order in which one sender sent
 * them, and what was acknowledged arrives live, also when the sender's gateway is killed.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AMPLE_RATES, makeChat } from '../support/chats.mjs';
import { closeAll, eventually } from '../support/client.mjs';
import { joinFleet, startFleet } from '../support/fleet.mjs';
import { startRedis } from '../support/redis.mjs';

const MESSAGES = 400;
const IN_FLIGHT = 40;

async function startTwoGateways() {
  const redis = await startRedis();
  const fleet = await startFleet({ redis, settings: AMPLE_RATES });
  after(async () => {
    closeAll();
    await fleet.stop();
    await redis.stop();
  });
  return fleet;
}

/** Sends messages in bursts, without waiting for the answer to one before the next. */
async function sendInBursts(client, chatId, count) {
  for (let first = 1; first <= count; first += IN_FLIGHT) {
    const acked = Array.from({ length: IN_FLIGHT }, (_, i) =>
      client.ask({
        type: 'send_message',
        chat_id: chatId,
        client_message_id: `m-${first + i}`,
        body: `${first + i}`,
      }),
    );
    for (const ack of await Promise.all(acked)) assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
  }
}

test('messages of one sender reach a device on another gateway in their order', async () => {
  const fleet = await startTwoGateways();
  const [one, two] = fleet.gateways;
  await makeChat(one, 'ordered', 'alice', 'bob');
  const alice = await joinFleet(one, 'alice');
  const bob = await joinFleet(two, 'bob');
  await sendInBursts(alice, 'ordered', MESSAGES);
  await eventually(() => bob.bodies().length === MESSAGES, 'all messages arrive');
  assert.deepEqual(
    bob.bodies(),
    Array.from({ length: MESSAGES }, (_, i) => `${i + 1}`),
  );
});
