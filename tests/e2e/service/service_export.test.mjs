/** GET /v1/service/users/{user}/export: everything of a user, streamed. */
import assert from 'node:assert/strict';
import { get } from 'node:http';
import { after, afterEach, before, test } from 'node:test';
import { AMPLE_RATES } from '../support/chats.mjs';
import { closeAll, connect, rest } from '../support/client.mjs';
import { block, requestContact, uniqueUsers } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

let server;
let backend;

before(async () => {
  server = await startServer({ args: ['--workers', '2'], settings: AMPLE_RATES });
  backend = await server.token('backend', { scope: 'service' });
});
after(() => server.stop());
afterEach(closeAll);

const exported = async (user) => rest(server, 'GET', `/v1/service/users/${user}/export`, { token: backend });

test('an export has settings, relations, chats, own messages and calls', async () => {
  const [alice, bob, carol, dave, mallory] = uniqueUsers('alice', 'bob', 'carol', 'dave', 'mallory');
  const chat = `team-${alice}`;
  await rest(server, 'PUT', `/v1/service/contacts/${alice}/${bob}`, { token: backend });
  await rest(server, 'PATCH', '/v1/me', { user: alice, body: { display_name: 'Alice', read_receipts: false } });
  const { id: sent } = await requestContact(server, alice, carol);
  const { id: received } = await requestContact(server, dave, alice);
  await block(server, alice, mallory);
  await rest(server, 'POST', '/v1/chats', { user: alice, body: { chat_id: chat, members: [bob] } });
  for (let at = 0; at < 7; at += 1)
    await rest(server, 'POST', `/v1/chats/${chat}/messages`, {
      user: at % 2 ? bob : alice,
      body: { client_message_id: `m${at}`, body: `hello ${at}` },
    });
  const { status, body } = await exported(alice);
  assert.equal(status, 200);
  assert.equal(body.user_id, alice);
  assert.equal(body.settings.display_name, 'Alice');
  assert.equal(body.settings.read_receipts, false);
  assert.deepEqual(body.contacts, [bob]);
  assert.deepEqual(body.blocks, [mallory]);
  assert.deepEqual(body.contact_requests.outgoing.map(({ id, to }) => [id, to]), [[sent, carol]]);
  assert.deepEqual(body.contact_requests.incoming.map(({ id, from }) => [id, from]), [[received, dave]]);
  assert.deepEqual(body.chats.map(({ chat_id: id }) => id), [chat]);
  assert.deepEqual(
    body.messages.map(({ sender_id: sender, sequence, body: text }) => [sender, sequence, text]),
    [1, 3, 5, 7].map((sequence) => [alice, sequence, `hello ${sequence - 1}`]),
  );
  assert.deepEqual([body.calls, body.revoked_at, body.last_seen], [[], null, null]);
});

test('an export of many chats and messages is whole', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const alices = await connect(server, alice);
  for (let at = 0; at < 130; at += 1)
    await rest(server, 'POST', '/v1/chats', { user: bob, body: { chat_id: `${alice}-${at}`, members: [alice] } });
  const body = 'x'.repeat(3000);
  for (let at = 0; at < 600; at += 1) {
    const answer = await alices.ask({
      type: 'send_message',
      chat_id: `${alice}-${at % 3}`,
      client_message_id: `m${at}`,
      body,
    });
    if (answer.type !== 'message_ack') {
      at -= 1;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  const { body: all } = await exported(alice);
  assert.equal(all.chats.length, 130);
  assert.equal(new Set(all.chats.map(({ chat_id: id }) => id)).size, 130);
  assert.equal(all.messages.length, 600);
});

test('a user nobody knows has an empty export, and a bad id is refused', async () => {
  const [ghost] = uniqueUsers('ghost');
  const { body } = await exported(ghost);
  assert.deepEqual([body.contacts, body.chats, body.messages, body.blocks], [[], [], [], []]);
  assert.equal((await exported('x'.repeat(129))).status, 400);
});

test('a client that leaves in the middle of an export harms nobody', async () => {
  const [alice] = uniqueUsers('alice');
  const address = new URL(`v1/service/users/${alice}/export`, server.url);
  for (let at = 0; at < 5; at += 1)
    await new Promise((resolve) => {
      const asked = get(address, { headers: { authorization: `Bearer ${backend}` } }, (answer) => {
        answer.destroy();
        resolve();
      });
      asked.on('error', resolve);
    });
  assert.equal((await exported(alice)).status, 200);
});
