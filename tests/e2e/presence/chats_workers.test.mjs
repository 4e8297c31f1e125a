/** Chats and typing where every member may be on another worker; also run under ThreadSanitizer. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, rest, setVisibility } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const WORKERS = 3;
const CONNECTIONS_MAX = 60;

let server;

before(async () => {
  server = await startServer({
    args: ['--workers', String(WORKERS)],
    settings: { 'typing.ttl_seconds': 2 },
  });
});

after(() => server.stop());
afterEach(closeAll);

/** Connections of a user, one on each worker. */
async function everywhere(user) {
  const found = new Map();
  for (let i = 0; i < CONNECTIONS_MAX && found.size < WORKERS; i += 1) {
    const client = await connect(server, user);
    const worker = client.established.server_id;
    if (found.has(worker)) await client.close();
    else found.set(worker, client);
  }
  assert.equal(found.size, WORKERS, 'a connection on each worker');
  return [...found.values()];
}

async function chatOf(chat, ...users) {
  for (const user of users) await setVisibility(server, user, 'everyone');
  await makeChat(server, chat, ...users);
}

const open = (client, chat) => client.ask({ type: 'open_chat', chat_id: chat });
const typing = (user, state) => (message) =>
  message.type === 'typing_changed' && message.user_id === user && message.typing === state;

const typingLeft = async (client) =>
  (await client.settle()).filter(({ type }) => type === 'typing_changed');

test('typing reaches every worker once, and so does its end', async () => {
  await chatOf('everywhere', 'alice', 'bob');
  const bobs = await everywhere('bob');
  for (const bob of bobs) await open(bob, 'everywhere');
  const alice = await connect(server, 'alice');
  alice.send({ type: 'typing_start', chat_id: 'everywhere' });
  for (const bob of bobs) await bob.next(typing('alice', true));
  const late = await connect(server, 'bob');
  assert.deepEqual((await open(late, 'everywhere')).typing, ['alice']);
  alice.terminate();
  for (const bob of [...bobs, late]) {
    await bob.next(typing('alice', false));
    assert.deepEqual(await typingLeft(bob), []);
  }
});

test('presence reaches every worker where the chat is open, once', async () => {
  await chatOf('present', 'grace', 'heidi');
  const heidis = await everywhere('heidi');
  for (const heidi of heidis) await open(heidi, 'present');
  const grace = await connect(server, 'grace');
  for (const heidi of heidis) await heidi.nextChange('grace', 'online', 1000);
  grace.terminate();
  for (const heidi of heidis) await heidi.nextChange('grace', 'offline', 1000);
  for (const heidi of heidis) assert.deepEqual(await heidi.settle(), []);
});

/** What came of it, once it took less than the second that the limit speaks of. */
async function withinASecond(act) {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const before = performance.now();
    const result = await act();
    if (performance.now() - before < 1000) return result;
    await sleep(1000);
  }
  throw new Error('this machine is too slow for it');
}

test('the devices of a user share one limit across workers', async () => {
  await chatOf('limit', 'carol', 'dave');
  const carols = await everywhere('carol');
  const dave = await connect(server, 'dave');
  await open(dave, 'limit');
  const answers = await withinASecond(() =>
    Promise.all(carols.map((carol) => carol.ask({ type: 'typing_start', chat_id: 'limit' }))),
  );
  assert.equal(answers.filter(({ code }) => code === 'RATE_LIMITED').length, WORKERS - 1);
  await dave.next(typing('carol', true));
  await dave.next(typing('carol', false));
  assert.deepEqual(await typingLeft(dave), []);
});

test('who is removed loses the chat on every worker', async () => {
  await chatOf('removal', 'erin', 'frank');
  const franks = await everywhere('frank');
  for (const frank of franks) await open(frank, 'removal');
  const { status } = await rest(server, 'DELETE', '/v1/chats/removal/members/frank', {
    user: 'erin',
  });
  assert.equal(status, 204);
  for (const frank of franks) await frank.next('chat_closed');
  const erin = await connect(server, 'erin');
  erin.send({ type: 'typing_start', chat_id: 'removal' });
  await erin.settle();
  for (const frank of franks) assert.deepEqual(await frank.settle(), []);
});

test('many open, type and leave at the same time', async () => {
  const users = Array.from({ length: 12 }, (_, i) => `busy-${i}`);
  await chatOf('busy', ...users);
  const rounds = users.map(async (user, index) => {
    for (let round = 0; round < 3; round += 1) {
      const client = await connect(server, user);
      assert.equal((await open(client, 'busy')).type, 'chat_snapshot');
      client.send({ type: 'typing_start', chat_id: 'busy' });
      await client.settle();
      if (index % 2) client.terminate();
      else await client.close();
    }
  });
  await Promise.all(rounds);
  const watcher = await connect(server, users[0]);
  const { typing: left } = await open(watcher, 'busy');
  for (const user of left) await watcher.next(typing(user, false));
});
