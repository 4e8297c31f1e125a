/** The JavaScript client over real sockets, against the real server. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { Rollcall } from '../../../clients/js/rollcall.js';
import { newChat } from '../support/chats.mjs';
import { startServer } from '../support/server.mjs';

const LIVE_MS = 30000;
const EVERYONE = { presence_visibility: 'everyone', last_seen_visibility: 'everyone' };

let dataDir;
let server;
const clients = [];

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'rollcall-client-'));
  server = await startServer({ dataDir });
});

after(async () => {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

/** Makes a client of a user whom everybody may see. */
async function clientOf(user, { ttlSeconds, ...options } = {}) {
  const getToken = () => server.token(user, { ttlSeconds });
  const response = await fetch(`${server.url}v1/me`, {
    method: 'PATCH',
    headers: {
      Authorization: `Bearer ${await server.token(user)}`,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify(EVERYONE),
  });
  assert.equal(response.status, 200);
  const client = new Rollcall({ url: server.url, getToken, WebSocket, ...options });
  clients.push(client);
  return client;
}

/** Waits for an event of a type that matches; the error lists those that did not. */
function nextEvent(client, type, matches = () => true) {
  return new Promise((resolve, reject) => {
    const others = [];
    const timeout = setTimeout(() => {
      reject(new Error(`no matching ${type} within ${LIVE_MS} ms, only ${JSON.stringify(others)}`));
    }, LIVE_MS);
    const off = client.on(type, (payload) => {
      others.push(payload);
      if (!matches(payload)) return;
      clearTimeout(timeout);
      off();
      resolve(payload);
    });
  });
}

const hasStatus = (user, expected) => (presence) =>
  presence.user_id === user && presence.status === expected;

const hasState = (expected) => (change) => change.state === expected;

test('a subscriber receives online, away, online and offline, with growing versions', async () => {
  const watcher = await clientOf('watcher');
  const bob = await clientOf('bob');
  await watcher.connect();
  assert.equal(watcher.userId, 'watcher');
  const versions = [];
  watcher.on('presence', ({ version }) => versions.push(version));
  const [before] = await watcher.subscribePresence(['bob']);
  assert.equal(before.status, 'offline');

  const online = nextEvent(watcher, 'presence', hasStatus('bob', 'online'));
  await bob.connect();
  await online;
  const away = nextEvent(watcher, 'presence', hasStatus('bob', 'away'));
  bob.setActive(false);
  await away;
  const back = nextEvent(watcher, 'presence', hasStatus('bob', 'online'));
  bob.setActive(true);
  await back;
  const offline = nextEvent(watcher, 'presence', hasStatus('bob', 'offline'));
  bob.close();
  const { last_seen: lastSeen } = await offline;
  assert.ok(Math.abs(Date.parse(lastSeen) - Date.now()) < 5000);
  assert.deepEqual(
    versions,
    [...versions].sort((left, right) => left - right),
  );

  await watcher.unsubscribePresence(['bob']);
  const [queried] = await watcher.queryPresence(['bob']);
  assert.equal(queried.status, 'offline');
});

test('heartbeats keep a connection open beyond its lease', async () => {
  const settings = ['--set', 'timing.profile=realtime'];
  for (const [name, seconds] of [
    ['gateway.timeouts.heartbeat_interval_seconds', 0.5],
    ['gateway.timeouts.heartbeat_timeout_seconds', 1],
    ['presence.expiry_window_seconds', 1.5],
  ]) {
    settings.push('--set', `${name}=${seconds}`);
  }
  const quick = await startServer({ args: settings });
  const client = new Rollcall({ url: quick.url, token: await quick.token('carol'), WebSocket });
  try {
    await client.connect();
    const changes = [];
    client.on('state', (change) => changes.push(change));
    await new Promise((resolve) => setTimeout(resolve, 4000));
    assert.deepEqual(changes, []);
  } finally {
    client.close();
    await quick.stop();
  }
});

test('the client reconnects to a killed server that is restarted, and restores subscriptions', async () => {
  const dave = await clientOf('dave');
  const erin = await clientOf('erin');
  await dave.connect();
  await erin.connect();
  await dave.subscribePresence(['erin']);
  const { port } = server;
  const lost = nextEvent(dave, 'state', hasState('BACKOFF'));
  await server.stop('SIGKILL');
  await lost;
  const ready = nextEvent(dave, 'state', hasState('READY'));
  server = await startServer({ dataDir, port });
  await ready;
  await erin.connect();
  const offline = nextEvent(dave, 'presence', hasStatus('erin', 'offline'));
  erin.close();
  await offline;
});

test('the client follows the reconnect delay of a drain', async () => {
  const frank = await clientOf('frank');
  await frank.connect();
  const { port } = server;
  const closing = nextEvent(frank, 'connection_closing');
  const waiting = nextEvent(frank, 'state', hasState('BACKOFF'));
  const stopped = server.stop('SIGTERM');
  const { reason, reconnect_allowed: allowed, reconnect_after_ms: afterMs } = await closing;
  assert.deepEqual([reason, allowed], ['draining', true]);
  const { delayMs } = await waiting;
  if (afterMs !== undefined) assert.ok(delayMs <= afterMs, `waits ${delayMs} of at most ${afterMs} ms`);
  assert.equal(await stopped, 0);
  server = await startServer({ dataDir, port });
  await frank.connect();
});

test('a token is renewed on the open connection before it expires', async () => {
  const grace = await clientOf('grace', { ttlSeconds: 4 });
  await grace.connect();
  const changes = [];
  grace.on('state', (change) => changes.push(change));
  await new Promise((resolve) => setTimeout(resolve, 6000));
  assert.deepEqual(changes, []);
  assert.equal(grace.state, 'READY');
});

test('an expired static token closes the client with UNAUTHENTICATED', async () => {
  const token = await server.token('heidi', { ttlSeconds: 3 });
  const heidi = new Rollcall({ url: server.url, token, WebSocket });
  clients.push(heidi);
  await heidi.connect();
  const { error } = await nextEvent(heidi, 'state', ({ final }) => final);
  assert.equal(error.code, 'UNAUTHENTICATED');
});

test('a token with a wrong signature is refused at the handshake', async () => {
  const token = `${(await server.token('ivan')).slice(0, -8)}AAAAAAAA`;
  const ivan = new Rollcall({ url: server.url, token, WebSocket });
  clients.push(ivan);
  await assert.rejects(ivan.connect(), { code: 'UNAUTHENTICATED' });
});

test('an error rejects the request that caused it', async () => {
  const judy = await clientOf('judy');
  await judy.connect();
  await assert.rejects(judy.request('no_such_command'), { code: 'INVALID_MESSAGE' });
  const tooMany = Array.from({ length: 21 }, (_, n) => `user${n}`);
  await assert.rejects(judy.subscribePresence(tooMany), { code: 'SUBSCRIPTION_LIMIT' });
  assert.equal(judy.state, 'READY');
});

test('a message larger than any frame may be is refused, and the next one arrives', async () => {
  const leo = await clientOf('leo');
  await leo.connect();
  const chatId = await newChat(server, 'leo', 'judy');
  const huge = leo.sendMessage(chatId, 'x'.repeat(70000));
  const next = leo.sendMessage(chatId, 'hello');
  await assert.rejects(huge, { code: 'MESSAGE_TOO_LARGE' });
  assert.equal((await next).sequence, 1);
});

test('closing while connecting rejects connect() and disconnects', async () => {
  const kim = await clientOf('kim');
  const connected = kim.connect();
  await new Promise((resolve) => setTimeout(resolve, 1));
  kim.close();
  await assert.rejects(connected, { code: 'CLOSED' });
  assert.equal(kim.state, 'DISCONNECTED');
});
