/** POST /v1/service/deliver: to users, to a chat, to everyone; by name for Socket.IO. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, eventually, nested, rest } from '../support/client.mjs';
import { NO_BUDGETS, startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo, PARSERS } from '../support/socketio.mjs';

const BODY_BYTES_MAX = 4096;

let server;
let backend;

before(async () => {
  server = await startServer({
    args: ['--workers', '3'],
    settings: { ...NO_BUDGETS, 'gateway.http.max_body_bytes': BODY_BYTES_MAX },
  });
  backend = await server.token('backend', { scope: 'service' });
});
after(() => server.stop());
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

const deliver = (body) => rest(server, 'POST', '/v1/service/deliver', { token: backend, body });

async function expectAccepted(body, accepted) {
  const answer = await deliver(body);
  assert.deepEqual([answer.status, answer.body], [200, { accepted }]);
}

test('a named event reaches every device of the users: by name over Socket.IO, as a delivery natively', async () => {
  const phone = await connect(server, 'alice', { device: 'phone' });
  const laptop = await connect(server, 'alice', { device: 'laptop' });
  const web = await connectSocketIo(server, 'bob');
  const packed = await connectSocketIo(server, 'bob', { parser: PARSERS.MessagePack });
  const data = { id: 7, texts: ['"', '\n', '☃'], none: null };
  await expectAccepted({ to: { users: ['alice', 'bob', 'nobody', 'alice'] }, event: 'order:shipped', data }, 2);
  for (const device of [phone, laptop]) {
    const { event, data: got } = await device.next('delivery');
    assert.deepEqual([event, got], ['order:shipped', data]);
  }
  for (const device of [web, packed]) assert.deepEqual(await device.next('order:shipped'), data);
});

test('an event without a name is a delivery in both dialects, whatever its data', async () => {
  const phone = await connect(server, 'alice');
  const web = await connectSocketIo(server, 'alice');
  for (const data of [null, 0, 'text', [1], { event: 'x', data: 2 }]) {
    await expectAccepted({ to: { users: ['alice'] }, data }, 1);
    assert.deepEqual((await phone.next('delivery')).data, data);
    assert.deepEqual((await web.next('delivery')).data, data);
  }
});

test('an event for a chat reaches its members and nobody else', async () => {
  const { body: chat } = await rest(server, 'POST', '/v1/chats', { user: 'carol', body: { members: ['dave', 'erin'] } });
  const carol = await connect(server, 'carol');
  const dave = await connect(server, 'dave');
  const frank = await connect(server, 'frank');
  await expectAccepted({ to: { chat: chat.chat_id }, event: 'poll', data: 1 }, 2);
  for (const member of [carol, dave]) assert.equal((await member.next('delivery')).event, 'poll');
  assert.deepEqual(await frank.settle(), []);
  assert.equal((await deliver({ to: { chat: 'none' }, data: 1 })).status, 404);
});

test('an event for everyone reaches all users on all workers once', async () => {
  const online = () => rest(server, 'GET', '/v1/service/online', { token: backend });
  await eventually(async () => (await online()).body.users.length === 0, 'the users of other tests are gone');
  const names = Array.from({ length: 40 }, (_, index) => `everyone-${index}`);
  const clients = await Promise.all(names.map((name) => connect(server, name)));
  const web = await connectSocketIo(server, 'everyone-web');
  await expectAccepted({ to: { everyone: true }, event: 'maintenance', data: { at: 5 } }, 41);
  for (const client of clients) {
    assert.deepEqual((await client.next('delivery')).data, { at: 5 });
  }
  assert.deepEqual(await web.next('maintenance'), { at: 5 });
  for (const client of clients) assert.deepEqual(await client.settle(), []);
});

test('bad requests are refused and nobody gets anything', async () => {
  const alice = await connect(server, 'alice');
  const to = { users: ['alice'] };
  const many = Array.from({ length: 10001 }, () => 'a');
  const bad = [
    [],
    {},
    { to },
    { data: 1 },
    { to: null, data: 1 },
    { to: 'alice', data: 1 },
    { to: {}, data: 1 },
    { to: { users: [] }, data: 1 },
    { to: { users: 'alice' }, data: 1 },
    { to: { users: ['alice', 7] }, data: 1 },
    { to: { users: ['alice', ''] }, data: 1 },
    { to: { users: ['x'.repeat(129)] }, data: 1 },
    { to: { users: ['a\u0007'] }, data: 1 },
    { to: { users: many }, data: 1 },
    { to: { everyone: false }, data: 1 },
    { to: { everyone: 1 }, data: 1 },
    { to: { users: ['alice'], everyone: true }, data: 1 },
    { to: { chat: 5 }, data: 1 },
    { to: { chat: '' }, data: 1 },
    { to: { group: 'x' }, data: 1 },
    { to, event: 5, data: 1 },
    { to, event: '', data: 1 },
    { to, event: 'x'.repeat(129), data: 1 },
    { to, event: 'a\nb', data: 1 },
    { to, event: 'connect', data: 1 },
    { to, event: 'disconnect', data: 1 },
    { to, data: nested(31) },
  ];
  for (const body of bad) {
    const answer = await deliver(body);
    assert.equal(answer.status, 400, JSON.stringify(body).slice(0, 100));
    assert.equal(answer.body.error.code, 'INVALID_MESSAGE');
  }
  const large = await deliver({ to, data: 'x'.repeat(BODY_BYTES_MAX) });
  assert.deepEqual([large.status, large.body.error.code], [413, 'MESSAGE_TOO_LARGE']);
  assert.deepEqual(await alice.settle(), []);
});

test('10,000 users are one request', async () => {
  const alice = await connect(server, 'alice');
  const users = Array.from({ length: 9999 }, (_, index) => `absent-${index}`);
  await expectAccepted({ to: { users: [...users, 'alice'] }, data: 'hello' }, 1);
  assert.equal((await alice.next('delivery')).data, 'hello');
});

test('everybody online is listed in pages of any size', async () => {
  const names = Array.from({ length: 25 }, (_, index) => `online ${index}`);
  await Promise.all(names.map((name) => connect(server, name)));
  const page = (query) => rest(server, 'GET', `/v1/service/online${query}`, { token: backend });
  for (const limit of [1, 10, 25, 1000]) {
    const listed = [];
    let next = '';
    do {
      const { status, body } = await page(`?limit=${limit}&after=${encodeURIComponent(next)}`);
      assert.equal(status, 200);
      assert.ok(body.users.length <= limit);
      listed.push(...body.users);
      next = body.next;
    } while (next !== null);
    assert.deepEqual(listed.filter((user) => user.startsWith('online ')).sort(), [...names].sort());
    assert.equal(new Set(listed).size, listed.length);
  }
  assert.equal((await page('')).status, 200);
  for (const bad of ['?limit=0', '?limit=1001', '?limit=x', `?after=${'x'.repeat(193)}`])
    assert.equal((await page(bad)).status, 400, bad);
});
