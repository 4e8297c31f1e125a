/** DELETE /v1/service/users/{user}: what is left of a user, and what others see of it. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, eventually, rest, sleep } from '../support/client.mjs';
import { block, friends, requestContact, uniqueUsers } from '../support/contacts.mjs';
import { NO_BUDGETS, startServer } from '../support/server.mjs';

let server;
let backend;

before(async () => {
  server = await startServer({ args: ['--workers', '2'], settings: NO_BUDGETS });
  backend = await server.token('backend', { scope: 'service' });
});
after(() => server.stop());
afterEach(closeAll);

const service = (method, path, body) => rest(server, method, `/v1/service${path}`, { token: backend, body });
const send = (user, chat, id, body) =>
  rest(server, 'POST', `/v1/chats/${chat}/messages`, { user, body: { client_message_id: id, body } });

test('an erased user leaves tombstones and nothing else', async () => {
  const [alice, bob, carol, mallory] = uniqueUsers('alice', 'bob', 'carol', 'mallory');
  const chat = `team-${alice}`;
  await service('PUT', `/contacts/${alice}/${bob}`);
  await rest(server, 'PATCH', '/v1/me', {
    user: alice,
    body: { display_name: 'Alice', last_seen_visibility: 'everyone', presence_visibility: 'everyone' },
  });
  await requestContact(server, alice, carol);
  await block(server, alice, mallory);
  await rest(server, 'POST', '/v1/chats', { user: alice, body: { chat_id: chat, members: [bob] } });
  const direct = await rest(server, 'POST', '/v1/chats', { user: alice, body: { direct_with: bob } });
  const old = await server.token(alice);
  for (let at = 0; at < 300; at += 1) await send(at % 3 ? alice : bob, chat, `m${at}`, `secret ${at}`);
  await send(alice, direct.body.chat_id, 'd', 'secret');
  const alices = await connect(server, alice, { token: old });
  const bobs = await connect(server, bob);
  await eventually(async () => (await service('GET', `/presence?users=${alice}`)).body.presences[0].status === 'online', 'online');
  const before = (await service('GET', `/presence?users=${alice}`)).body.presences[0];

  assert.equal((await service('DELETE', `/users/${alice}`)).status, 204);

  assert.equal((await alices.ended()).code, 4001);
  assert.equal((await bobs.next('contact_removed')).user_id, alice);
  assert.equal((await rest(server, 'GET', '/v1/me', { token: old })).status, 401);
  assert.deepEqual(await friends(server, bob), []);
  const shown = (await service('GET', `/presence?users=${alice}`)).body.presences[0];
  assert.deepEqual([shown.status, shown.last_seen], ['offline', null]);
  const { body: page } = await rest(server, 'GET', `/v1/chats/${chat}/messages?after_sequence=0&limit=500`, { user: bob });
  const all = [...page.messages];
  while (all.length < page.latest_sequence) {
    const next = await rest(server, 'GET', `/v1/chats/${chat}/messages?after_sequence=${all.length}&limit=500`, { user: bob });
    all.push(...next.body.messages);
  }
  assert.deepEqual(all.map(({ sequence }) => sequence), Array.from({ length: 300 }, (_, at) => at + 1));
  for (const { sender_id: sender, sequence, body, deleted } of all)
    assert.deepEqual([body, deleted], sender === alice ? [undefined, true] : [`secret ${sequence - 1}`, undefined]);
  const members = await rest(server, 'GET', `/v1/chats/${chat}`, { user: bob });
  assert.deepEqual([members.body.members, members.body.admins], [[bob], [bob]]);
  const { body: rest_ } = await service('GET', `/users/${alice}/export`);
  assert.deepEqual(
    [rest_.contacts, rest_.blocks, rest_.chats, rest_.messages, rest_.last_seen, rest_.settings.display_name],
    [[], [], [], [], null, null],
  );
  assert.deepEqual(rest_.contact_requests, { incoming: [], outgoing: [] });
  assert.equal(rest_.settings.presence_visibility, 'contacts_only');

  await sleep(1100); // tokens of the second of the erasure are refused
  const again = await connect(server, alice);
  const now = (await again.query(alice))[0];
  assert.equal(now.status, 'online');
  assert.ok(now.version > before.version, `${now.version} > ${before.version}`);
  const opened = await rest(server, 'POST', '/v1/chats', { user: alice, body: { direct_with: bob } });
  assert.equal(opened.status, 201);
  assert.notEqual(opened.body.chat_id, direct.body.chat_id);
});

test('messages in groups that the user has left are exported and erased', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const chats = [`left-${alice}`, `removed-${alice}`, `back-${alice}`];
  const texts = async (chat) =>
    (await rest(server, 'GET', `/v1/chats/${chat}/messages?after_sequence=0`, { user: bob })).body.messages.map(({ body }) => body);
  for (const chat of chats) {
    await rest(server, 'POST', '/v1/chats', { user: bob, body: { chat_id: chat, members: [alice] } });
    await send(alice, chat, 'a', `secret of ${chat}`);
    await send(bob, chat, 'b', 'an answer');
  }
  await rest(server, 'DELETE', `/v1/chats/${chats[0]}/members/${alice}`, { user: alice });
  await rest(server, 'DELETE', `/v1/chats/${chats[1]}/members/${alice}`, { user: bob });
  await service('DELETE', `/chats/${chats[2]}/members/${alice}`);
  await service('PUT', `/chats/${chats[2]}/members/${alice}`);

  const { body: all } = await service('GET', `/users/${alice}/export`);
  assert.deepEqual(all.chats.map(({ chat_id: id }) => id), [chats[2]]);
  assert.deepEqual(all.messages.map(({ body }) => body).sort(), chats.map((chat) => `secret of ${chat}`).sort());

  assert.equal((await service('DELETE', `/users/${alice}`)).status, 204);
  for (const chat of chats) assert.deepEqual(await texts(chat), [undefined, 'an answer']);
  assert.deepEqual((await service('GET', `/users/${alice}/export`)).body.messages, []);
});

test('an erasure is repeated without harm, also of a user nobody knows', async () => {
  const [ghost] = uniqueUsers('ghost');
  assert.equal((await service('DELETE', `/users/${ghost}`)).status, 204);
  assert.equal((await service('DELETE', `/users/${ghost}`)).status, 204);
  assert.equal((await service('DELETE', `/users/${'x'.repeat(129)}`)).status, 400);
});

test('a server that ends during an erasure ends in order', async () => {
  const other = await startServer();
  const token = await other.token('backend', { scope: 'service' });
  await connect(other, 'short');
  const erased = rest(other, 'DELETE', '/v1/service/users/short', { token }).catch(() => {});
  await sleep(300);
  assert.equal(await other.stop(), 0);
  await erased;
});
