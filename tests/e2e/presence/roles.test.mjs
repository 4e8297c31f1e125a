/** Direct chats, roles in groups, the pushes that tell of them, and how users appear to one another. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, rest } from '../support/client.mjs';
import { befriend, block, expectRest, friends, uniqueUsers } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo } from '../support/socketio.mjs';

let server;
before(async () => {
  server = await startServer({ args: ['--workers', '2'] });
});
after(() => server.stop());
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

const call = (user, method, path, body) => rest(server, method, path, { user, body });
const statusOf = async (...request) => (await call(...request)).status;
const group = async (creator, ...members) =>
  (await expectRest(server, 201, 'POST', '/v1/chats', creator, { members })).chat_id;
const chatOf = (user, chat) => expectRest(server, 200, 'GET', `/v1/chats/${chat}`, user);
const setMe = (user, body) => expectRest(server, 200, 'PATCH', '/v1/me', user, body);

test('the direct chat of two users is the same for both, whoever asks first', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const first = await call(alice, 'POST', '/v1/chats', { direct_with: bob });
  assert.equal(first.status, 201);
  assert.deepEqual(
    [first.body.kind, first.body.members, first.body.admins, first.body.members_can_add],
    ['direct', [alice, bob], [], false],
  );
  const second = await call(bob, 'POST', '/v1/chats', { direct_with: alice });
  assert.deepEqual([second.status, second.body.chat_id], [200, first.body.chat_id]);
  const { body } = await call(bob, 'GET', '/v1/chats');
  assert.deepEqual(body.chats.map((chat) => chat.chat_id), [first.body.chat_id]);
  const send = { client_message_id: 'm1', body: 'hello' };
  assert.equal(await statusOf(alice, 'POST', `/v1/chats/${first.body.chat_id}/messages`, send), 201);
});

test('a direct chat needs another user, no block, and nothing else in the request', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  for (const body of [
    { direct_with: alice },
    { direct_with: '' },
    { direct_with: 7 },
    { direct_with: bob, members: [carol] },
    { direct_with: bob, chat_id: 'mine' },
  ])
    assert.equal(await statusOf(alice, 'POST', '/v1/chats', body), 400, JSON.stringify(body));
  await block(server, bob, alice);
  assert.equal(await statusOf(alice, 'POST', '/v1/chats', { direct_with: bob }), 403);
  assert.equal(await statusOf(bob, 'POST', '/v1/chats', { direct_with: alice }), 403);
});

test('admins remove and appoint, members add while the chat allows it, and anybody leaves', async () => {
  const [alice, bob, carol, dave] = uniqueUsers('alice', 'bob', 'carol', 'dave');
  const chat = await group(alice, bob, carol);
  const path = `/v1/chats/${chat}`;
  assert.equal(await statusOf(bob, 'DELETE', `${path}/members/${carol}`), 403);
  assert.equal(await statusOf(bob, 'PUT', `${path}/admins/${bob}`), 403);
  assert.equal(await statusOf(bob, 'PATCH', path, { members_can_add: false }), 403);
  assert.equal((await call(alice, 'PATCH', path, { members_can_add: false })).body.members_can_add, false);
  assert.equal(await statusOf(bob, 'PUT', `${path}/members/${dave}`), 403);
  assert.equal(await statusOf(alice, 'PUT', `${path}/admins/${bob}`), 204);
  assert.equal(await statusOf(bob, 'PUT', `${path}/members/${dave}`), 204);
  assert.equal(await statusOf(bob, 'DELETE', `${path}/members/${carol}`), 204);
  assert.equal(await statusOf(bob, 'DELETE', `${path}/admins/${alice}`), 204);
  assert.equal(await statusOf(bob, 'DELETE', `${path}/admins/${bob}`), 403, 'the last admin stays one');
  assert.deepEqual((await chatOf(dave, chat)).admins, [bob]);
  assert.equal(await statusOf(bob, 'DELETE', `${path}/members/${bob}`), 204);
  const { admins, members } = await chatOf(dave, chat);
  assert.deepEqual({ admins, members }, { admins: [alice], members: [alice, dave] });
});

test('members_can_add may be given with a new group', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const body = { members: [bob], members_can_add: false };
  const made = await expectRest(server, 201, 'POST', '/v1/chats', alice, body);
  assert.equal(made.members_can_add, false);
  assert.equal(await statusOf(alice, 'POST', '/v1/chats', { members: [], members_can_add: 'no' }), 400);
});

test('clients are told of chats that they are added to or removed from, and of changes', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  const bobs = await connect(server, bob);
  const sio = await connectSocketIo(server, bob);
  const chat = await group(alice, bob);
  assert.deepEqual(await bobs.next('chat_added'), { type: 'chat_added', chat_id: chat, kind: 'group' });
  assert.deepEqual(await sio.next('chat_added'), { chat_id: chat, kind: 'group' });
  await bobs.ask({ type: 'open_chat', chat_id: chat });
  const path = `/v1/chats/${chat}`;
  for (const [method, target, body] of [
    ['PUT', `${path}/members/${carol}`],
    ['PUT', `${path}/admins/${carol}`],
    ['DELETE', `${path}/members/${carol}`],
    ['PATCH', path, { members_can_add: false }],
  ]) {
    assert.ok((await statusOf(alice, method, target, body)) < 300, target);
    assert.deepEqual(await bobs.next('chat_changed'), { type: 'chat_changed', chat_id: chat });
  }
  await statusOf(alice, 'PUT', `${path}/admins/${bob}`);
  assert.deepEqual(await sio.next('chat_changed'), { chat_id: chat }, 'a role, also with the chat closed');
  await statusOf(alice, 'DELETE', `${path}/members/${bob}`);
  assert.deepEqual(await bobs.next('chat_removed'), { type: 'chat_removed', chat_id: chat });
  assert.deepEqual(await sio.next('chat_removed'), { chat_id: chat });
});

test('settings have defaults, change one by one, and are checked', async () => {
  const [alice] = uniqueUsers('alice');
  const defaults = {
    user_id: alice,
    presence_visibility: 'contacts_only',
    last_seen_visibility: 'contacts_only',
    group_adds: 'everyone',
    read_receipts: true,
    display_name: null,
    avatar_url: null,
  };
  assert.deepEqual((await call(alice, 'GET', '/v1/me')).body, defaults);
  const url = `https://example.org/${'x'.repeat(2048 - 20)}`;
  const name = '😀'.repeat(64);
  for (const [patch, expected] of [
    [{ group_adds: 'contacts_only' }, { group_adds: 'contacts_only' }],
    [{ read_receipts: false }, { read_receipts: false }],
    [{ display_name: name }, { display_name: name }],
    [{ avatar_url: url }, { avatar_url: url }],
    [{ display_name: null, presence_visibility: 'nobody' }, { display_name: null, presence_visibility: 'nobody' }],
    [{ avatar_url: null }, { avatar_url: null }],
  ]) {
    Object.assign(defaults, expected);
    assert.deepEqual(await setMe(alice, patch), defaults);
  }
  for (const patch of [
    { group_adds: 'nobody' },
    { group_adds: null },
    { read_receipts: 'yes' },
    { display_name: 'x'.repeat(65) },
    { display_name: 'a\nb' },
    { display_name: 'a\u0085b' },
    { display_name: 7 },
    { avatar_url: 'ftp://example.org/' },
    { avatar_url: 'javascript:alert(1)' },
    { avatar_url: 'https://' },
    { avatar_url: 'https://a b/' },
    { avatar_url: `${url}x` },
  ])
    assert.equal(await statusOf(alice, 'PATCH', '/v1/me', patch), 400, JSON.stringify(patch).slice(0, 60));
  assert.deepEqual((await call(alice, 'GET', '/v1/me')).body, defaults, 'a refused change changes nothing');
});

test('friends and members of a chat see name and picture', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  const profile = { display_name: 'Bob ✓', avatar_url: 'http://example.org/bob.png' };
  await setMe(bob, profile);
  await befriend(server, alice, bob);
  const [friend] = await friends(server, alice);
  assert.deepEqual([friend.user_id, friend.display_name, friend.avatar_url], [bob, ...Object.values(profile)]);
  const chat = await group(carol, bob);
  assert.deepEqual((await chatOf(carol, chat)).profiles, { [bob]: profile });
  const { body: direct } = await call(carol, 'POST', '/v1/chats', { direct_with: bob });
  assert.deepEqual(direct.profiles, { [bob]: profile });
  const { body: list } = await call(carol, 'GET', '/v1/chats');
  assert.deepEqual(list.chats.map(({ kind, profiles }) => [kind, profiles]), [
    ['direct', { [bob]: profile }],
    ['group', undefined],
  ]);
  await setMe(bob, { display_name: null, avatar_url: null });
  assert.deepEqual((await chatOf(carol, chat)).profiles, {});
});
