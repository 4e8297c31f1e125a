/** POST /v1/service/import: lines of any number, streamed, idempotent, restartable. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, eventually, metric, rest } from '../support/client.mjs';
import { block, friends, uniqueUsers } from '../support/contacts.mjs';
import { residentBytes, startServer } from '../support/server.mjs';

let server;
let backend;

before(async () => {
  // memory that is free must not count as used, under the sanitizer either
  const ASAN_OPTIONS = `${process.env.ASAN_OPTIONS ?? ''}:quarantine_size_mb=1:malloc_context_size=1`;
  server = await startServer({ args: ['--workers', '2'], env: { ASAN_OPTIONS } });
  backend = await server.token('backend', { scope: 'service' });
});
after(() => server.stop());
afterEach(closeAll);

/** Sends a body, text or an iterable of pieces; returns status and answer. */
async function importBody(body, on = server, token = backend) {
  const response = await fetch(new URL('v1/service/import', on.url), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson' },
    body: typeof body === 'string' ? body : Readable.toWeb(Readable.from(body)),
    duplex: 'half',
  });
  return { status: response.status, body: await response.json() };
}

const line = (object) => `${JSON.stringify(object)}\n`;
const contactsOf = async (user) => (await friends(server, user)).map(({ user_id: id }) => id).sort();

test('lines of every kind are stored and counted, and a repetition changes nothing', async () => {
  const [alice, bob, carol, mallory] = uniqueUsers('alice', 'bob', 'carol', 'mallory');
  const chat = `team-${alice}`;
  const text =
    line({ user: { user_id: alice, display_name: 'Alice', presence_visibility: 'everyone' } }) +
    line({ contact: [alice, bob] }) +
    line({ contact: [carol, alice] }) +
    '\n' +
    line({ block: [alice, mallory] }) +
    JSON.stringify({ chat: { chat_id: chat, members: [alice, bob] } });
  for (let i = 0; i < 2; i += 1) {
    const { status, body } = await importBody(text);
    assert.equal(status, 200);
    assert.deepEqual(body, { contacts: 2, blocks: 1, users: 1, chats: 1, errors: [] });
  }
  assert.deepEqual(await contactsOf(alice), [bob, carol].sort());
  const me = await rest(server, 'GET', '/v1/me', { user: alice });
  assert.equal(me.body.display_name, 'Alice');
  assert.equal(me.body.presence_visibility, 'everyone');
  const blocks = await rest(server, 'GET', '/v1/blocks', { user: alice });
  assert.deepEqual(blocks.body.blocks, [{ user_id: mallory }]);
  const got = await rest(server, 'GET', `/v1/chats/${chat}`, { user: bob });
  assert.deepEqual(got.body.members, [alice, bob].sort());
});

test('contacts that are imported are told to those who are online', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const alices = await connect(server, alice);
  await connect(server, bob);
  await importBody(line({ contact: [alice, bob] }));
  assert.equal((await alices.next('contact_accepted')).user_id, bob);
  await alices.nextChange(bob, 'online');
  await importBody(line({ block: [bob, alice] }));
  assert.equal((await alices.next('contact_removed')).user_id, bob);
});

test('the first 20 errors are told by line, and other lines count', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await block(server, bob, alice);
  const wrong = [
    line({ contact: [alice, bob] }),
    'not json\n',
    line({ contact: [alice] }),
    line({ contact: [alice, alice] }),
    line({ contact: [alice, 'x', 'y'] }),
    line({ contact: [alice, 7] }),
    line({ friend: [alice, bob] }),
    line({ contact: [alice, 'x'], block: [alice, 'x'] }),
    line({ user: { display_name: 'nobody' } }),
    line({ user: { user_id: alice, presence_visibility: 'all' } }),
    line({ user: 'alice' }),
    line({ chat: { chat_id: 'direct-x', members: [alice] } }),
    line({ chat: { chat_id: 'c', members: [] } }),
    line({ chat: { members: [alice] } }),
    '[]\n',
    `{"contact":["${'x'.repeat(129)}","b"]}\n`,
  ];
  const { body } = await importBody([line({ contact: [alice, 'carol'] }), ...wrong, ...wrong]);
  assert.equal(body.contacts, 1);
  assert.equal(body.errors.length, 20);
  assert.deepEqual(
    body.errors.map((error) => error.line),
    Array.from({ length: 20 }, (_, at) => at + 2),
  );
  assert.match(body.errors[0].message, /blocked/);
  for (const { message } of body.errors) assert.ok(message.length > 4, message);
});

test('a line longer than a list may be is an error, and the next line counts', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const piece = 'x'.repeat(65536);
  function* pieces() {
    yield '{"contact":["';
    for (let i = 0; i < 40; i += 1) yield piece;
    yield `","b"]}\n${line({ contact: [alice, bob] })}`;
  }
  const { body } = await importBody(pieces());
  assert.deepEqual(body, {
    contacts: 1,
    blocks: 0,
    users: 0,
    chats: 0,
    errors: [{ line: 1, message: 'the line is too long' }],
  });
});

test('lines may be cut anywhere and end with CR LF', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  const text = `${JSON.stringify({ contact: [alice, bob] })}\r\n{"contact" : [ "${alice}" , "\\u0063arol-x" ] }\r\n`;
  const { body } = await importBody([...text, line({ contact: [carol, alice] })]);
  assert.equal(body.contacts, 3);
  assert.deepEqual(await contactsOf(alice), [bob, 'carol-x', carol].sort());
});

test('a block after the contact of the same two wins, and the other way round is an error', async () => {
  const users = uniqueUsers(...Array.from({ length: 300 }, (_, at) => `u${at}`));
  const [alice] = uniqueUsers('alice');
  const { body } = await importBody(
    users.map((user) => line({ contact: [alice, user] })).join('') +
      users.map((user) => line({ block: [alice, user] })).join('') +
      line({ contact: [alice, users[0]] }),
  );
  assert.deepEqual([body.contacts, body.blocks, body.errors.length], [300, 300, 1]);
  assert.deepEqual(await contactsOf(alice), []);
});

test('a user’s writes go on during an import, and memory stays flat', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const chat = `busy-${alice}`;
  await rest(server, 'POST', '/v1/chats', { user: alice, body: { chat_id: chat, members: [bob] } });
  const alices = await connect(server, alice);
  const COUNT = 60000;
  function* pieces() {
    for (let at = 0; at < COUNT; at += 500) {
      let piece = '';
      for (let i = at; i < at + 500; i += 1) piece += line({ contact: [`p${i % 3000}-${alice}`, `q${i}-${alice}`] });
      yield piece;
    }
  }
  const warm = await importBody(line({ contact: ['warm', 'up'] }));
  assert.equal(warm.status, 200);
  const before = await residentBytes(server);
  const importing = importBody(pieces());
  let done = false;
  importing.finally(() => {
    done = true;
  });
  let slowest = 0;
  for (let at = 0; !done; at += 1) {
    const start = Date.now();
    const answer = await alices.ask({
      type: 'send_message',
      chat_id: chat,
      client_message_id: `m${at}`,
      body: 'hello',
    });
    assert.ok(['message_ack', 'error'].includes(answer.type));
    slowest = Math.max(slowest, Date.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  const { status, body } = await importing;
  assert.equal(status, 200);
  assert.deepEqual([body.contacts, body.errors], [COUNT, []]);
  assert.ok(slowest < 2500, `a message took ${slowest} ms`);
  const grown = (await residentBytes(server)) - before;
  assert.ok(grown < 64 << 20, `memory grew by ${grown >> 20} MB`);
});

test('a client that leaves in the middle leaves the server as it was', async () => {
  const [alice] = uniqueUsers('alice');
  const { hostname, port } = new URL(server.url);
  for (let i = 0; i < 8; i += 1) {
    const sent = request({
      hostname,
      port,
      method: 'POST',
      path: '/v1/service/import',
      headers: { authorization: `Bearer ${backend}` },
    });
    sent.on('error', () => {});
    for (let at = 0; at < 2000; at += 1) sent.write(line({ contact: [alice, `${alice}-${i}-${at}`] }));
    sent.write('{"contact":["half');
    const written = new Promise((resolve) => {
      sent.write(' ', resolve);
    });
    await Promise.race([written, once(sent, 'close')]);
    sent.destroy();
  }
  await eventually(async () => (await importBody(line({ contact: [alice, 'last'] }))).status === 200, 'a free place');
});

test('an import that a kill cut off is sent again, and the log shows how far it is', async (context) => {
  const COUNT = 120000;
  const [alice] = uniqueUsers('alice');
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-import-'));
  context.after(() => rm(dataDir, { recursive: true, force: true }));
  let other = await startServer({ dataDir });
  const token = await other.token('backend', { scope: 'service' });
  const text = Array.from({ length: COUNT }, (_, at) => line({ contact: [`p${at % 500}-${alice}`, `q${at}-${alice}`] })).join('');
  const send = () =>
    fetch(new URL('/v1/service/import', other.url), { method: 'POST', headers: { Authorization: `Bearer ${token}` }, body: text });
  const imported = () => metric(other, 'service_import_lines');

  const cut = send().then(() => 'answered', () => 'cut');
  await eventually(async () => (await imported()) > 1000, 'the first lines are stored');
  await other.stop('SIGKILL');
  assert.equal(await cut, 'cut');
  other = await startServer({ dataDir });
  const answer = await send();
  assert.equal(answer.status, 200);
  const { contacts, errors } = await answer.json();
  assert.deepEqual([contacts, errors], [COUNT, []]);
  assert.match(other.log(), /event=import_progress ended=false lines=1\d{5} /);
  assert.match(other.log(), new RegExp(`event=import_progress ended=true lines=${COUNT} `));
  const all = await rest(other, 'GET', `/v1/service/users/p7-${alice}/export`, { token });
  assert.equal(all.body.contacts.length, COUNT / 500);
  assert.equal(await other.stop(), 0);
});
