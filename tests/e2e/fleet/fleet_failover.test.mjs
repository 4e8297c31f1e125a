/**
 * A master of a Redis Cluster is killed under load: within 30 s everything is served again, no client is
 * disconnected, and no acknowledged message is lost.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, eventually, setVisibility, sleep } from '../support/client.mjs';
import {
  assertInvariants,
  isReady,
  joinFleet,
  QUICK,
  QUICK_WINDOW_MS,
  startFleet,
} from '../support/fleet.mjs';
import { startCluster } from '../support/redis.mjs';

const RECOVERY_MS_MAX = 60000;
const USERS = 24;
const SEND_EVERY_MS = 50;

/** All clients send in turn; `acknowledged` collects the ids of acknowledged messages. */
function startLoad(clients) {
  const load = { acknowledged: new Set(), sent: 0 };
  for (const client of clients)
    client.socket.on('message', (data) => {
      const message = JSON.parse(data);
      if (message.type === 'message_ack') load.acknowledged.add(message.client_message_id);
    });
  const timer = setInterval(() => {
    load.sent += 1;
    clients[load.sent % USERS].send({
      type: 'send_message',
      chat_id: 'everybody',
      client_message_id: `load-${load.sent}`,
      body: `load ${load.sent}`,
    });
  }, SEND_EVERY_MS);
  load.stop = () => clearInterval(timer);
  return load;
}

/** The ids of all stored messages. */
async function storedIds(client) {
  const stored = new Set();
  for (let after = 0, more = true; more; ) {
    const page = await client.ask({ type: 'sync_request', chat_id: 'everybody', after_sequence: after });
    for (const { body } of page.messages) stored.add(body.replace('load ', 'load-'));
    after = page.messages.at(-1)?.sequence ?? after;
    more = page.has_more;
  }
  return stored;
}

test('after a master fails under load, all is served again and nothing acknowledged is lost', { timeout: 600000 }, async (t) => {
  const redis = await startCluster();
  const fleet = await startFleet({ redis, settings: QUICK });
  t.after(async () => {
    closeAll();
    await fleet.stop();
    await redis.stop();
  });
  const users = Array.from({ length: USERS }, (_, n) => `user-${n}`);
  for (const user of users) await setVisibility(fleet.gateways[0], user, 'everyone');
  const clients = [];
  for (const [n, user] of users.entries()) clients.push(await joinFleet(fleet.gateways[n % 2], user));
  for (const [n, client] of clients.entries()) await client.subscribe(users[(n + 1) % USERS]);
  await makeChat(fleet.gateways[0], 'everybody', ...users);

  const load = startLoad(clients);
  t.after(load.stop);
  await sleep(1000);

  const killed = Date.now();
  await redis.killMasterOf('{user-0}');
  await sleep(500);
  await eventually(
    async () => {
      for (const server of fleet.gateways) if (!(await isReady(server))) return false;
      const [presence] = await clients[1].query('user-0');
      const routes = await redis.command('SMEMBERS', 'user_servers:{user-0}').catch(() => []);
      return presence.status === 'online' && presence.stale !== true && routes.length === 1;
    },
    'everything is served again',
    RECOVERY_MS_MAX,
  );
  t.diagnostic(`served again after ${Date.now() - killed} ms`);
  assert.ok(Date.now() - killed < RECOVERY_MS_MAX);
  const late = await connect(fleet.gateways[0], 'late');
  assert.equal(late.established.server_id, 'gw-001');
  await sleep(QUICK_WINDOW_MS + 1000);
  load.stop();
  await sleep(1000);

  for (const { socket } of clients) assert.equal(socket.readyState, 1, 'no client was disconnected');
  for (const client of clients)
    assert.deepEqual(client.changes().map(({ user_id: user, status }) => [user, status]), []);
  const { acknowledged, sent } = load;
  const stored = await storedIds(clients[0]);
  assert.ok(acknowledged.size > 50, `${acknowledged.size} of ${sent} acknowledged`);
  for (const id of acknowledged) assert.ok(stored.has(id), `acknowledged message ${id} is stored`);
  for (const client of clients) {
    const received = client.bodies();
    assert.equal(new Set(received).size, received.length, 'no message comes twice');
  }
  await assertInvariants(redis, QUICK_WINDOW_MS);
});
