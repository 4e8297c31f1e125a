/**
 * Attacks on chats, each with an attacker and victims: what the attacker learns and what the victims notice is asserted.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, devToken, rest, setVisibility } from '../support/client.mjs';
import { block, expectRest, uniqueUsers } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

/** The chats that an attacker's budget pays for at once. */
const CHATS_AT_ONCE = 20;
const FORCED_CHATS = 1000;
const OPENED_AT_ONCE = 8;

let server;
before(async () => {
  server = await startServer({ args: ['--workers', '2'] });
});
after(() => server.stop());
afterEach(closeAll);

const openDirect = (user, other, status = 201) =>
  expectRest(server, status, 'POST', '/v1/chats', user, { direct_with: other });
const chatPath = (id) => `/v1/chats/${encodeURIComponent(id)}`;

/** Sends a request; returns status and body as they were sent, byte for byte. */
async function raw(user, method, path, body) {
  const response = await fetch(new URL(path, server.url), {
    method,
    headers: { Authorization: `Bearer ${await devToken(server, user)}` },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return `${response.status} ${await response.text()}`;
}

test('nobody can take the id of another pair’s chat, or make one that looks like it', async () => {
  const [mallory, alice, bob] = uniqueUsers('mallory', 'alice', 'bob');
  const { chat_id: id } = await openDirect(alice, bob);
  assert.match(id, /^direct-[0-9A-HJKMNP-TV-Z]{26}$/);
  for (const chatId of [id, 'direct', 'direct-x', `dm:${alice}:${bob}`, `${alice}:${bob}`]) {
    const { status, body } = await rest(server, 'POST', '/v1/chats', {
      user: mallory,
      body: { chat_id: chatId, members: [alice, bob] },
    });
    assert.equal(status, 400, `${chatId}: ${JSON.stringify(body)}`);
  }
  const mine = await openDirect(mallory, alice);
  assert.notEqual(mine.chat_id, id);
  assert.equal((await openDirect(bob, alice, 200)).chat_id, id, 'the pair keeps its chat');
});

test('both sides that open their direct chat at once, on several gateways, get the same one', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const answers = await Promise.all(
    Array.from({ length: OPENED_AT_ONCE }, (_, i) =>
      rest(server, 'POST', '/v1/chats', {
        user: i % 2 ? alice : bob,
        body: { direct_with: i % 2 ? bob : alice },
      }),
    ),
  );
  assert.equal(new Set(answers.map(({ body }) => body.chat_id)).size, 1);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(OPENED_AT_ONCE - 1).fill(200), 201]);
});

test('a message cannot be planted in another pair’s chat', async () => {
  const [mallory, alice, bob] = uniqueUsers('mallory', 'alice', 'bob');
  const { chat_id: id } = await openDirect(alice, bob);
  const send = { client_message_id: 'm1', body: 'it is me, bob' };
  for (const [method, path, body] of [
    ['POST', `${chatPath(id)}/messages`, send],
    ['PUT', `${chatPath(id)}/members/${mallory}`],
    ['PUT', `${chatPath(id)}/admins/${mallory}`],
    ['PATCH', chatPath(id), { members_can_add: true }],
    ['POST', `${chatPath(id)}/read`, { sequence: 1 }],
  ])
    assert.equal((await rest(server, method, path, { user: mallory, body })).status, 404, path);
  for (const user of [alice, bob]) {
    assert.equal((await rest(server, 'PUT', `${chatPath(id)}/members/${mallory}`, { user })).status, 403);
    assert.equal((await rest(server, 'DELETE', `${chatPath(id)}/members/${user}`, { user })).status, 403);
  }
  const page = await expectRest(server, 200, 'GET', `${chatPath(id)}/messages`, alice);
  assert.deepEqual(page.messages, []);
  assert.deepEqual((await expectRest(server, 200, 'GET', chatPath(id), alice)).members, [alice, bob]);
});

/** Every way to name a chat over REST. */
const NAMING = [
  ['GET', ''],
  ['PATCH', '', { members_can_add: false }],
  ['POST', '/read', { sequence: 1 }],
  ['PUT', '/members/someone'],
  ['DELETE', '/members/someone'],
  ['PUT', '/admins/someone'],
  ['DELETE', '/admins/someone'],
  ['GET', '/messages'],
  ['POST', '/messages', { client_message_id: 'm1', body: 'x' }],
];
const COMMANDS = [
  { type: 'open_chat' },
  { type: 'typing_start' },
  { type: 'sync_request', after_sequence: 0 },
  { type: 'send_message', client_message_id: 'm1', body: 'x' },
];

for (const kind of ['direct', 'group', 'left', 'halted by a block'])
  test(`a chat that exists and one that does not are the same to an outsider: ${kind}`, async () => {
    const [mallory, alice, bob] = uniqueUsers('mallory', 'alice', 'bob');
    let id;
    if (kind === 'direct' || kind === 'halted by a block') id = (await openDirect(alice, bob)).chat_id;
    else id = (await expectRest(server, 201, 'POST', '/v1/chats', alice, { members: [bob, mallory] })).chat_id;
    if (kind === 'group') await expectRest(server, 204, 'DELETE', `${chatPath(id)}/members/${mallory}`, alice);
    if (kind === 'left') await expectRest(server, 204, 'DELETE', `${chatPath(id)}/members/${mallory}`, mallory);
    if (kind === 'halted by a block') await block(server, bob, alice);
    const absent = id.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    for (const [method, tail, body] of NAMING) {
      const there = await raw(mallory, method, chatPath(id) + tail, body);
      assert.equal(there, await raw(mallory, method, chatPath(absent) + tail, body), `${method} ${tail}`);
      assert.match(there, /^404 /);
    }
    const client = await connect(server, mallory);
    for (const command of COMMANDS) {
      const there = await client.ask({ ...command, chat_id: id });
      const nowhere = await client.ask({ ...command, chat_id: absent });
      assert.deepEqual({ ...there, id: 0 }, { ...nowhere, id: 0 }, command.type);
      assert.equal(there.code, 'NOT_FOUND', command.type);
    }
  });

test('somebody who is no contact learns nothing from opening a direct chat about who talks to whom', async () => {
  const [mallory, alice, bob, carol] = uniqueUsers('mallory', 'alice', 'bob', 'carol');
  await openDirect(alice, bob);
  const shape = ({ chat_id: _, last_activity: __, members, ...rest }) => ({ ...rest, count: members.length });
  assert.deepEqual(shape(await openDirect(mallory, alice)), shape(await openDirect(mallory, carol)));
});

test('a creator who repeats the creation of a large group is given back no more than the repeat cost', async () => {
  const [attacker] = uniqueUsers('attacker');
  const members = Array.from({ length: 900 }, (_, i) => `m${i}`); // counts as ten chats
  const create = (body) => rest(server, 'POST', '/v1/chats', { user: attacker, body });
  assert.equal((await create({ chat_id: attacker, members })).status, 201);
  for (let i = 0; i < 5; i++) assert.equal((await create({ chat_id: attacker, members: [] })).status, 200);
  assert.equal((await create({ members })).status, 201);
  assert.equal((await create({ members })).status, 429);
});

test('a thousand forced chats keep no presence from the real ones', { timeout: 300000 }, async () => {
  const [victim, friend] = uniqueUsers('victim', 'friend');
  await setVisibility(server, victim, 'everyone');
  const { chat_id: id } = await openDirect(victim, friend);
  for (let made = 0; made < FORCED_CHATS; made += CHATS_AT_ONCE) {
    const [mallory] = uniqueUsers('mallory');
    const answers = await Promise.all(
      Array.from({ length: CHATS_AT_ONCE }, () =>
        rest(server, 'POST', '/v1/chats', { user: mallory, body: { members: [victim] } }),
      ),
    );
    for (const { status } of answers) assert.equal(status, 201);
  }
  const friends = await connect(server, friend);
  await friends.ask({ type: 'open_chat', chat_id: id });
  await connect(server, victim);
  assert.equal((await friends.nextChange(victim)).status, 'online');
  const { body } = await rest(server, 'GET', '/v1/chats?limit=1', { user: victim });
  assert.equal(body.has_more, true);
});

test('who accepts groups from contacts only is in none of them, and the answer does not say why', async () => {
  const [mallory, victim, other, blocker] = uniqueUsers('mallory', 'victim', 'other', 'blocker');
  await expectRest(server, 200, 'PATCH', '/v1/me', victim, { group_adds: 'contacts_only' });
  await block(server, blocker, mallory);
  const refused = await raw(mallory, 'POST', '/v1/chats', { members: [other, victim] });
  assert.match(refused, /^403 /);
  assert.equal(refused, await raw(mallory, 'POST', '/v1/chats', { members: [other, blocker] }));
  assert.deepEqual((await rest(server, 'GET', '/v1/chats', { user: other })).body.chats, []);
  const { chat_id: id } = await expectRest(server, 201, 'POST', '/v1/chats', mallory, { members: [other] });
  for (const user of [victim, blocker])
    assert.equal(await raw(mallory, 'PUT', `${chatPath(id)}/members/${user}`), refused);
});

test('repeating a change pushes nothing again to the user concerned', async () => {
  const [mallory, victim] = uniqueUsers('mallory', 'victim');
  const devices = await connect(server, victim);
  const { chat_id: direct } = await openDirect(mallory, victim);
  assert.deepEqual(await devices.next('chat_added'), { type: 'chat_added', chat_id: direct, kind: 'direct' });
  const { chat_id: id } = await expectRest(server, 201, 'POST', '/v1/chats', mallory, { members: [victim] });
  assert.deepEqual(await devices.next('chat_added'), { type: 'chat_added', chat_id: id, kind: 'group' });
  for (let n = 0; n < 3; n += 1) {
    await openDirect(mallory, victim, 200);
    await expectRest(server, 204, 'PUT', `${chatPath(id)}/members/${victim}`, mallory);
  }
  assert.deepEqual(await devices.settle(), []);
});
