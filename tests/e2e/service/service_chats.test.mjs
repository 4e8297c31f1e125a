/** Chats, members and messages by the application; system messages; deletion. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, rest } from '../support/client.mjs';
import { NO_BUDGETS, startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo } from '../support/socketio.mjs';

let server;
let token;

before(async () => {
  server = await startServer({ settings: NO_BUDGETS });
  token = await server.token('backend', { scope: 'service' });
});
after(() => server.stop());
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

const service = (method, path, body) => rest(server, method, `/v1/service/chats${path}`, { token, body });
const history = async (user, chat) => (await rest(server, 'GET', `/v1/chats/${chat}/messages`, { user })).body.messages;

async function makeChat(id, ...members) {
  const { status, body } = await service('POST', '', { chat_id: id, members });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

test('the application makes a chat without anybody’s consent, and a repetition changes nothing', async () => {
  await rest(server, 'PUT', '/v1/blocks/ann', { user: 'ben' });
  await rest(server, 'PATCH', '/v1/me', { user: 'cas', body: { group_adds: 'contacts_only' } });
  const ben = await connect(server, 'ben');
  const chat = await makeChat('project', 'ann', 'ben', 'cas');
  assert.deepEqual([chat.members, chat.admins, chat.kind], [['ann', 'ben', 'cas'], ['ann'], 'group']);
  assert.equal((await ben.next('chat_added')).chat_id, 'project');
  const again = await service('POST', '', { chat_id: 'project', members: ['ann', 'ben', 'cas'] });
  assert.deepEqual([again.status, again.body.chat_id], [200, 'project']);
  const made = await service('POST', '', { members: ['ann'] });
  assert.equal(made.status, 201);
  assert.ok(made.body.chat_id.length > 0);
  assert.equal((await service('POST', '', { chat_id: 'project', members: ['dora'] })).status, 409);
});

test('members are added and removed without consent, however often', async () => {
  await makeChat('club', 'eve');
  await rest(server, 'PUT', '/v1/blocks/eve', { user: 'fay' });
  const fay = await connect(server, 'fay');
  for (let i = 0; i < 2; i += 1) assert.equal((await service('PUT', '/club/members/fay')).status, 204);
  assert.equal((await fay.next('chat_added')).chat_id, 'club');
  for (let i = 0; i < 2; i += 1) assert.equal((await service('DELETE', '/club/members/fay')).status, 204);
  assert.equal((await fay.next('chat_removed')).chat_id, 'club');
  assert.equal((await service('PUT', '/none/members/fay')).status, 404);
  assert.equal((await service('DELETE', '/none/members/fay')).status, 404);
  assert.equal((await service('PUT', '/club/members/a%07')).status, 400);
});

test('a system message has the sender null in pushes, history, sync and unread', async () => {
  await makeChat('news', 'gus', 'hal');
  const gus = await connect(server, 'gus');
  const hal = await connectSocketIo(server, 'hal');
  const order = { client_message_id: 'm1', body: 'Welcome.' };
  const sent = await service('POST', '/news/messages', order);
  assert.equal(sent.status, 201, JSON.stringify(sent.body));
  assert.deepEqual([sent.body.sequence, sent.body.duplicate], [1, false]);
  for (const pushed of [await gus.next('message'), await hal.next('message')])
    assert.deepEqual([pushed.sender_id, pushed.body, pushed.sequence], [null, 'Welcome.', 1]);
  assert.equal((await service('POST', '/news/messages', order)).body.duplicate, true);
  const [message] = await history('gus', 'news');
  assert.deepEqual([message.sender_id, message.body], [null, 'Welcome.']);
  const synced = await gus.ask({ type: 'sync_request', chat_id: 'news', after_sequence: 0 });
  assert.equal(synced.messages[0].sender_id, null);
  assert.equal((await rest(server, 'GET', '/v1/chats/news', { user: 'gus' })).body.unread, 1);
});

test('the application sends in the name of a member and of nobody else', async () => {
  await makeChat('team', 'ida', 'jon');
  const jon = await connect(server, 'jon');
  const post = (sender) => service('POST', '/team/messages', { sender_id: sender, client_message_id: 'c', body: 'hi' });
  assert.equal((await post('ida')).status, 201);
  assert.equal((await jon.next('message')).sender_id, 'ida');
  assert.equal((await post('ida')).body.duplicate, true);
  assert.equal((await post('kim')).status, 404);
});

test('a deleted message is a tombstone: pushed in both dialects, without body in history and sync', async () => {
  await makeChat('board', 'lea', 'max');
  const lea = await connect(server, 'lea');
  const max = await connectSocketIo(server, 'max');
  for (const id of ['a', 'b'])
    await service('POST', '/board/messages', { sender_id: 'lea', client_message_id: id, body: `body ${id}` });
  await max.next('message', ({ sequence }) => sequence === 2);
  for (let i = 0; i < 2; i += 1) {
    assert.equal((await service('DELETE', '/board/messages/1')).status, 204);
    const { type, ...pushed } = await lea.next('message_deleted');
    assert.deepEqual(pushed, { chat_id: 'board', sequence: 1 });
    assert.deepEqual(await max.next('message_deleted'), { chat_id: 'board', sequence: 1 });
  }
  const synced = await lea.ask({ type: 'sync_request', chat_id: 'board', after_sequence: 0 });
  for (const messages of [await history('lea', 'board'), synced.messages]) {
    assert.deepEqual(messages.map(({ sequence }) => sequence), [1, 2]);
    assert.equal(messages[0].deleted, true);
    assert.ok(!('body' in messages[0]));
    assert.deepEqual([messages[1].body, messages[1].deleted], ['body b', undefined]);
  }
  for (const [path, status] of [['/board/messages/3', 404], ['/none/messages/1', 404], ['/board/messages/0', 400],
    ['/board/messages/x', 400], [`/board/messages/${'9'.repeat(30)}`, 400]])
    assert.equal((await service('DELETE', path)).status, status, path);
});

test('bad requests are refused', async () => {
  await makeChat('strict', 'nia');
  const chats = [{}, { members: [] }, { members: 'nia' }, { members: [1] }, { members: [''] }, { members: ['nia'], chat_id: 5 },
    { members: ['nia'], chat_id: 'direct-x' }, { members: ['nia'], chat_id: 'a:b' }, { members: ['nia'], chat_id: '' },
    { members: ['nia'], members_can_add: 1 }, { members: Array.from({ length: 10001 }, (_, i) => `m${i}`) }];
  for (const body of chats)
    assert.equal((await service('POST', '', body)).status, 400, JSON.stringify(body).slice(0, 80));
  const messages = [{}, { client_message_id: 'x' }, { body: 'x' }, { client_message_id: '', body: 'x' },
    { client_message_id: 'x'.repeat(129), body: 'x' }, { client_message_id: 'x', body: '' }, { client_message_id: 'x', body: 5 },
    { client_message_id: 'x', body: 'x', sender_id: 5 }, { client_message_id: 'x', body: 'x', sender_id: '\u0001' }];
  for (const body of messages)
    assert.equal((await service('POST', '/strict/messages', body)).status, 400, JSON.stringify(body).slice(0, 80));
  const large = await service('POST', '/strict/messages', { client_message_id: 'x', body: 'x'.repeat(4097) });
  assert.equal(large.status, 413);
  assert.equal((await service('POST', '/none/messages', { client_message_id: 'x', body: 'x' })).status, 404);
});
