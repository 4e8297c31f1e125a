/** Chats and typing with members on different workers. This file also runs under ThreadSanitizer. */
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

/** Opens one connection of a user on each worker. */
async function connectToEachWorker(user) {
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
const isTyping = (user, state) => (message) =>
  message.type === 'typing_changed' && message.user_id === user && message.typing === state;

const untakenTyping = async (client) =>
  (await client.settle()).filter(({ type }) => type === 'typing_changed');

test('typing reaches every worker once, and so does its end', async () => {
  await chatOf('everywhere', 'alice', 'bob');
  const bobs = await connectToEachWorker('bob');
  for (const bob of bobs) await open(bob, 'everywhere');
  const alice = await connect(server, 'alice');
  alice.send({ type: 'typing_start', chat_id: 'everywhere' });
  for (const bob of bobs) await bob.next(isTyping('alice', true));
  const late = await connect(server, 'bob');
  assert.deepEqual((await open(late, 'everywhere')).typing, ['alice']);
  alice.terminate();
  for (const bob of [...bobs, late]) {
    await bob.next(isTyping('alice', false));
    assert.deepEqual(await untakenTyping(bob), []);
  }
});

test('presence reaches every worker where the chat is open, once', async () => {
  await chatOf('present', 'grace', 'heidi');
  const heidis = await connectToEachWorker('heidi');
  for (const heidi of heidis) await open(heidi, 'present');
  const grace = await connect(server, 'grace');
  for (const heidi of heidis) await heidi.nextChange('grace', 'online');
  grace.terminate();
  for (const heidi of heidis) await heidi.nextChange('grace', 'offline');
  for (const heidi of heidis) assert.deepEqual(await heidi.settle(), []);
});

/** Repeats `act` until it takes less than a second, the period of the rate limit; returns its result. */
async function withinASecond(act) {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const before = performance.now();
    const result = await act();
    if (performance.now() - before < 1000) return result;
    await sleep(1000);
  }
  throw new Error('no attempt took less than a second: this machine is too slow');
}

test('the devices of a user share one typing limit across workers', async () => {
  await chatOf('limit', 'carol', 'dave');
  const carols = await connectToEachWorker('carol');
  const dave = await connect(server, 'dave');
  await open(dave, 'limit');
  const answers = await withinASecond(() =>
    Promise.all(carols.map((carol) => carol.ask({ type: 'typing_start', chat_id: 'limit' }))),
  );
  assert.equal(answers.filter(({ code }) => code === 'RATE_LIMITED').length, WORKERS - 1);
  await dave.next(isTyping('carol', true));
  await dave.next(isTyping('carol', false));
  assert.deepEqual(await untakenTyping(dave), []);
});

test('a removed member’s chat is closed on every worker', async () => {
  await chatOf('removal', 'erin', 'frank');
  const franks = await connectToEachWorker('frank');
  for (const frank of franks) await open(frank, 'removal');
  const { status } = await rest(server, 'DELETE', '/v1/chats/removal/members/frank', {
    user: 'erin',
  });
  assert.equal(status, 204);
  for (const frank of franks) await frank.next('chat_closed');
  for (const frank of franks) await frank.next('chat_removed');
  const erin = await connect(server, 'erin');
  erin.send({ type: 'typing_start', chat_id: 'removal' });
  await erin.settle();
  for (const frank of franks) assert.deepEqual(await frank.settle(), []);
});

test('after many users open, type and leave at the same time, typing ends for all', async () => {
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
  const { typing: stillTyping } = await open(watcher, 'busy');
  for (const user of stillTyping) await watcher.next(isTyping(user, false));
});
