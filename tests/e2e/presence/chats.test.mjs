/** Chats: created, listed and changed over REST, opened and closed over WebSocket. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeAll, connect, eventually, metric, rest, setVisibility } from '../support/client.mjs';
import { NO_BUDGETS, startServer } from '../support/server.mjs';

const MAX_OPEN = 3;

let server;

before(async () => {
  server = await startServer({
    args: ['--workers', '1'],
    settings: { ...NO_BUDGETS, 'presence.max_open_chats': MAX_OPEN },
  });
});

after(() => server.stop());
afterEach(closeAll);

const post = (user, body) => rest(server, 'POST', '/v1/chats', { user, body });
const get = (user, path) => rest(server, 'GET', path, { user });
const put = (user, chat, member) =>
  rest(server, 'PUT', `/v1/chats/${chat}/members/${member}`, { user });
const remove = (user, chat, member) =>
  rest(server, 'DELETE', `/v1/chats/${chat}/members/${member}`, { user });
const open = (client, chat) => client.ask({ type: 'open_chat', chat_id: chat });

async function chatOf(chat, creator, ...members) {
  const { status } = await post(creator, { chat_id: chat, members });
  assert.equal(status, 201);
}

test('a chat is created with the given id, and creating it again changes nothing', async () => {
  const body = { chat_id: 'made', members: ['bob', 'carol', 'bob', 'alice'] };
  const expected = {
    chat_id: 'made',
    kind: 'group',
    members: ['alice', 'bob', 'carol'],
    admins: ['alice'],
    members_can_add: true,
    latest_sequence: 0,
    unread: 0,
    profiles: {},
    read: {},
  };
  const first = await post('alice', body);
  assert.equal(first.status, 201);
  assert.ok(Math.abs(Date.parse(first.body.last_activity) - Date.now()) < 60000);
  expected.last_activity = first.body.last_activity;
  assert.deepEqual(first.body, expected);
  const again = await post('alice', body);
  assert.equal(again.status, 200);
  assert.deepEqual(again.body, expected);
  assert.equal((await post('bob', body)).status, 200, 'another member may repeat it');
});

test('the creator repeats a creation after the members changed', async () => {
  const body = { chat_id: 'repeated', members: ['bob', 'carol'] };
  assert.equal((await post('alice', body)).status, 201);
  assert.equal((await remove('bob', 'repeated', 'bob')).status, 204);
  const again = await post('alice', body);
  assert.equal(again.status, 200);
  assert.deepEqual(again.body.members, ['alice', 'carol']);
  assert.equal((await post('carol', body)).status, 409);
});

test('an id in use by other members is refused', async () => {
  await chatOf('taken', 'alice', 'bob');
  for (const [user, members] of [
    ['bob', ['alice', 'carol']],
    ['mallory', ['bob']],
    ['mallory', ['alice', 'bob']],
  ]) {
    const { status, body } = await post(user, { chat_id: 'taken', members });
    assert.equal(status, 409);
    assert.deepEqual(body.error, { code: 'INVALID_MESSAGE', message: 'this chat_id is in use' });
  }
});

test('without an id the server chooses one', async () => {
  for (const none of [{}, { chat_id: null }]) {
    const { status, body } = await post('alice', { ...none, members: ['bob'] });
    assert.equal(status, 201);
    assert.match(body.chat_id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.deepEqual((await get('bob', `/v1/chats/${body.chat_id}`)).body, body);
  }
});

test('a chat may have a single member', async () => {
  assert.deepEqual((await post('hermit', { members: ['hermit'] })).body.members, ['hermit']);
  assert.deepEqual((await post('hermit', { members: [] })).body.members, ['hermit']);
});

test('invalid bodies are refused', async () => {
  for (const body of [
    {},
    { members: 'bob' },
    { members: ['bob', 7] },
    { members: [''] },
    { members: ['x'.repeat(129)] },
    { members: ['a\u0007b'] },
    { members: ['bob'], chat_id: '' },
    { members: ['bob'], chat_id: 7 },
    { members: ['bob'], chat_id: 'x'.repeat(129) },
    [],
  ]) {
    const answer = await post('alice', body);
    assert.equal(answer.status, 400, JSON.stringify(body).slice(0, 80));
    assert.equal(answer.body.error.code, 'INVALID_MESSAGE');
  }
});

test('a chat has at most ten thousand members', async () => {
  const members = Array.from({ length: 9999 }, (_, i) => `${'m'.repeat(120)}${i}`);
  const large = await post('boss', { chat_id: 'large', members });
  assert.equal(large.status, 201);
  assert.equal(large.body.members.length, 10000);
  for (const surplus of [['one'], ['one', 'two']]) {
    const { status, body } = await post('boss', { members: [...members, ...surplus] });
    assert.equal(status, 400);
    assert.match(body.error.message, /10000 members/);
  }
  const added = await put('boss', 'large', 'one');
  assert.equal(added.status, 400);
  assert.match(added.body.error.message, /10000 members/);
  const boss = await connect(server, 'boss');
  const snapshot = await open(boss, 'large');
  assert.equal(snapshot.type, 'chat_snapshot');
  assert.equal(snapshot.presences.length, 100);
});

test('only members see a chat; an unknown chat is not found', async () => {
  await chatOf('private', 'alice', 'bob');
  for (const [path, status, code] of [
    ['/v1/chats/private', 404, 'NOT_FOUND'],
    ['/v1/chats/nowhere', 404, 'NOT_FOUND'],
    [`/v1/chats/${'x'.repeat(129)}`, 400, 'INVALID_MESSAGE'],
  ]) {
    const answer = await get('mallory', path);
    assert.equal(answer.status, status, path);
    assert.equal(answer.body.error.code, code);
  }
  for (const [change, chat, status] of [
    [put, 'private', 404],
    [remove, 'private', 404],
    [put, 'nowhere', 404],
    [remove, 'nowhere', 404],
  ])
    assert.equal((await change('mallory', chat, 'mallory')).status, status);
  const mallory = await connect(server, 'mallory');
  assert.equal((await open(mallory, 'private')).code, 'NOT_FOUND');
  assert.equal((await open(mallory, 'nowhere')).code, 'NOT_FOUND');
  const long = await open(mallory, 'x'.repeat(129));
  assert.equal(long.code, 'INVALID_MESSAGE');
});

test('members are added and removed, and repeating either changes nothing', async () => {
  await chatOf('coming', 'alice', 'bob');
  assert.equal((await put('bob', 'coming', 'dora')).status, 204);
  assert.equal((await put('bob', 'coming', 'dora')).status, 204, 'added again');
  assert.deepEqual((await get('dora', '/v1/chats/coming')).body.members, ['alice', 'bob', 'dora']);
  assert.equal((await remove('dora', 'coming', 'dora')).status, 204, 'dora leaves');
  assert.equal((await get('dora', '/v1/chats/coming')).status, 404);
  assert.equal((await remove('alice', 'coming', 'dora')).status, 204, 'removed again');
  assert.equal((await put('alice', 'coming', 'x'.repeat(129))).status, 400);
});

test('the list of chats is paged by activity, the latest first', async () => {
  for (const id of ['p1', 'p2', 'p3']) {
    await chatOf(id, 'pager', 'bob');
    await sleep(5); // a later millisecond
  }
  const list = async (query) => {
    const { status, body } = await get('pager', `/v1/chats?${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return { ...body, ids: body.chats.map((chat) => chat.chat_id) };
  };
  const all = await list('');
  assert.deepEqual([all.ids, all.has_more, all.next_cursor], [['p3', 'p2', 'p1'], false, null]);
  const { last_activity, ...chat } = all.chats[0];
  assert.ok(last_activity > all.chats[1].last_activity);
  assert.deepEqual(chat, {
    chat_id: 'p3',
    kind: 'group',
    members: ['bob', 'pager'],
    admins: ['pager'],
    members_can_add: true,
    latest_sequence: 0,
    unread: 0,
  });
  const first = await list('limit=2');
  assert.deepEqual([first.ids, first.has_more], [['p3', 'p2'], true]);
  const send = { client_message_id: 'm1', body: 'hello' };
  const sent = await rest(server, 'POST', '/v1/chats/p3/messages', { user: 'bob', body: send });
  assert.equal(sent.status, 201);
  const second = await list(`limit=2&cursor=${first.next_cursor}`);
  assert.deepEqual([second.ids, second.next_cursor], [['p1'], null], 'neither skipped nor repeated');
  await rest(server, 'POST', '/v1/chats/p1/messages', { user: 'bob', body: send });
  assert.deepEqual((await list('')).ids, ['p1', 'p3', 'p2'], 'a message is activity');
  assert.deepEqual((await list('limit=2&after=p3')).ids, ['p2'], 'how clients paged before');
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'limit=', 'after=', 'cursor=', 'cursor=p1', 'cursor=%00'])
    assert.equal((await get('pager', `/v1/chats?${query}`)).status, 400, query);
  assert.deepEqual((await get('nobody-yet', '/v1/chats')).body, {
    chats: [],
    has_more: false,
    next_cursor: null,
  });
});

test('the snapshot shows members as the viewer may see them', async () => {
  await setVisibility(server, 'open-olga', 'everyone');
  await setVisibility(server, 'shy-sam', 'nobody');
  await chatOf('snap', 'viewer', 'open-olga', 'shy-sam', 'no-contact');
  await connect(server, 'open-olga');
  await connect(server, 'shy-sam');
  const viewer = await connect(server, 'viewer');
  const snapshot = await open(viewer, 'snap');
  assert.equal(snapshot.type, 'chat_snapshot');
  assert.equal(snapshot.chat_id, 'snap');
  assert.equal(snapshot.latest_sequence, 0);
  assert.deepEqual(snapshot.typing, []);
  const by = Object.fromEntries(snapshot.presences.map((one) => [one.user_id, one]));
  assert.deepEqual(Object.keys(by).sort(), ['no-contact', 'open-olga', 'shy-sam', 'viewer']);
  assert.equal(by['open-olga'].status, 'online');
  assert.equal(by['shy-sam'].status, 'unknown');
  assert.equal(by['shy-sam'].reason, 'privacy');
  assert.equal(by['no-contact'].status, 'unknown');
  assert.equal(by['no-contact'].reason, 'not_contacts');
  assert.equal(by.viewer.status, 'online');
});

test('the number of open chats per connection is limited', async () => {
  const alice = await connect(server, 'many');
  for (let i = 0; i <= MAX_OPEN; i += 1) await chatOf(`many-${i}`, 'many', 'bob');
  for (let i = 0; i < MAX_OPEN; i += 1)
    assert.equal((await open(alice, `many-${i}`)).type, 'chat_snapshot');
  assert.equal((await open(alice, 'many-0')).type, 'chat_snapshot', 'a chat that is open already');
  assert.equal((await open(alice, `many-${MAX_OPEN}`)).code, 'SUBSCRIPTION_LIMIT');
  const closing = { type: 'close_chat', chat_id: 'many-1' };
  assert.equal((await alice.ask(closing)).type, 'ok');
  assert.equal((await alice.ask(closing)).type, 'ok', 'a chat that is not open');
  assert.equal((await open(alice, `many-${MAX_OPEN}`)).type, 'chat_snapshot');
  assert.equal((await open(alice, 'nowhere')).code, 'SUBSCRIPTION_LIMIT');
});

test('a chat that cannot be opened does not count against the limit', async () => {
  const client = await connect(server, 'refused');
  for (let i = 0; i < 2 * MAX_OPEN; i += 1)
    assert.equal((await open(client, `nowhere-${i}`)).code, 'NOT_FOUND');
});

test('an open chat is closed at once for a removed member', async () => {
  await setVisibility(server, 'typist', 'everyone');
  await chatOf('leaving', 'typist', 'victim', 'witness');
  const typist = await connect(server, 'typist');
  const victim = await connect(server, 'victim');
  const witness = await connect(server, 'witness');
  await open(victim, 'leaving');
  await open(witness, 'leaving');
  assert.equal((await remove('typist', 'leaving', 'victim')).status, 204);
  assert.deepEqual(await victim.next('chat_closed'), {
    type: 'chat_closed',
    chat_id: 'leaving',
    reason: 'removed',
  });
  assert.equal((await victim.next('chat_removed')).chat_id, 'leaving');
  typist.send({ type: 'typing_start', chat_id: 'leaving' });
  await witness.next('typing_changed');
  assert.deepEqual(await victim.settle(), []);
  assert.equal((await open(victim, 'leaving')).code, 'NOT_FOUND');
});

test('a visible presence change reaches users with the chat open within a second, once', async () => {
  await setVisibility(server, 'shown', 'everyone');
  await setVisibility(server, 'hidden', 'nobody');
  await chatOf('watched', 'watcher', 'shown', 'hidden', 'no-contact2');
  await chatOf('watched-too', 'watcher', 'shown');
  const watcher = await connect(server, 'watcher');
  await open(watcher, 'watched');
  await open(watcher, 'watched-too');
  const shown = await connect(server, 'shown');
  await connect(server, 'hidden');
  await connect(server, 'no-contact2');
  const online = await watcher.nextChange('shown', 'online');
  assert.ok(online.version > 0);
  shown.send({ type: 'heartbeat', active: false });
  await watcher.nextChange('shown', 'away');
  await watcher.ask({ type: 'close_chat', chat_id: 'watched-too' });
  shown.terminate();
  await watcher.nextChange('shown', 'offline');
  assert.deepEqual(await watcher.settle(), [], 'no change of hidden users');
  await watcher.ask({ type: 'close_chat', chat_id: 'watched' });
  await connect(server, 'shown');
  assert.deepEqual(await watcher.settle(), [], 'no change without an open chat');
});

test('a change comes once to a user with both a subscription and an open chat', async () => {
  await setVisibility(server, 'twice', 'everyone');
  await chatOf('both', 'keen', 'twice');
  const keen = await connect(server, 'keen');
  await open(keen, 'both');
  await keen.subscribe('twice');
  await connect(server, 'twice');
  await keen.nextChange('twice', 'online');
  assert.deepEqual(await keen.settle(), []);
});

test('a user who hides becomes unknown in an open chat, once', async () => {
  await setVisibility(server, 'fickle', 'everyone');
  await chatOf('fickle-chat', 'observer', 'fickle');
  const fickle = await connect(server, 'fickle');
  const observer = await connect(server, 'observer');
  await open(observer, 'fickle-chat');
  await setVisibility(server, 'fickle', 'nobody');
  const unknown = await observer.nextChange('fickle', 'unknown');
  assert.equal(unknown.version, 0);
  fickle.terminate();
  assert.deepEqual(await observer.settle(), []);
  await setVisibility(server, 'fickle', 'everyone');
  await observer.nextChange('fickle', 'offline');
});

test('a block between two users prevents a new chat and does not reveal who blocked', async () => {
  const block = (user, other, method = 'PUT') =>
    rest(server, method, `/v1/blocks/${other}`, { user });
  await chatOf('old', 'blocked', 'friend');
  assert.ok((await block('blocker', 'blocked')).status < 300);
  const answers = [
    await post('blocked', { members: ['blocker'] }),
    await post('blocker', { members: ['blocked'] }),
    await post('blocked', { members: ['friend', 'blocker'] }),
    await put('blocked', 'old', 'blocker'),
  ];
  for (const { status, body } of answers) {
    assert.equal(status, 403);
    assert.deepEqual(body, answers[0].body);
  }
  assert.equal((await get('blocked', '/v1/chats')).body.chats.length, 1, 'no chat was created');
  assert.ok((await block('blocker', 'blocked', 'DELETE')).status < 300);
  assert.equal((await post('blocked', { members: ['blocker'] })).status, 201);
});

test('a block prevents messages in a chat of two, but not in a larger one', async () => {
  await chatOf('pair', 'caller-of-names', 'target');
  await chatOf('group', 'caller-of-names', 'target', 'witness');
  const path = '/v1/blocks/caller-of-names';
  assert.equal((await rest(server, 'PUT', path, { user: 'target' })).status, 204);
  const client = await connect(server, 'caller-of-names');
  const send = (chat, id) =>
    client.ask({ type: 'send_message', chat_id: chat, client_message_id: id, body: 'hey' });
  assert.equal((await send('pair', 'one')).code, 'FORBIDDEN');
  assert.equal((await send('group', 'one')).type, 'message_ack');
  assert.equal((await get('caller-of-names', '/v1/chats/pair')).status, 200, 'the chat stays');
  assert.equal((await rest(server, 'DELETE', path, { user: 'target' })).status, 204);
  assert.equal((await send('pair', 'one')).type, 'message_ack');
});

test('a metric counts open chats', async () => {
  const gauge = () => metric(server, 'chats_open');
  await eventually(async () => (await gauge()) === 0, 'no chat is open');
  await chatOf('gauge', 'counter', 'bob');
  const client = await connect(server, 'counter');
  await open(client, 'gauge');
  await open(client, 'gauge');
  assert.equal(await gauge(), 1);
  client.terminate();
  await eventually(async () => (await gauge()) === 0, 'the chat is closed with its connection');
});
