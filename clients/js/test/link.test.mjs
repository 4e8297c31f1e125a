import assert from 'node:assert/strict';
import test from 'node:test';
import { codeOf, settle, tokenEndingAt, world } from './support.mjs';

const draining = (reconnectAfterMs) => ({
  type: 'connection_closing',
  reason: 'draining',
  reconnect_allowed: true,
  reconnect_after_ms: reconnectAfterMs,
});

test('the handshake carries the token as a subprotocol and the device in the URL', async () => {
  const w = world({ url: 'https://server.test' });
  w.client.connect();
  await settle();
  assert.equal(w.socket.url, 'wss://server.test/v1/ws?device_id=device_1');
  assert.deepEqual(w.socket.protocols, ['rollcall.v1', 'bearer.static']);
});

test('the first connect() goes through all states to READY', async () => {
  const w = world();
  await w.ready();
  assert.deepEqual(w.states, ['RECONNECTING', 'CONNECTED', 'SYNCING', 'READY']);
  assert.equal(w.client.userId, 'alice');
  assert.equal(w.client.connectionId, 'conn_1');
});

test('an unexpected close goes DISCONNECTED, BACKOFF, RECONNECTING and back to READY', async () => {
  const w = world();
  await w.ready();
  w.states.length = 0;
  w.socket.serverCloses(1006);
  assert.deepEqual(w.states, ['DISCONNECTED', 'BACKOFF']);
  await w.reconnect();
  assert.deepEqual(w.states, [
    'DISCONNECTED',
    'BACKOFF',
    'RECONNECTING',
    'CONNECTED',
    'SYNCING',
    'READY',
  ]);
  assert.equal(w.sockets.length, 2);
});

test('delays double from 1 s to 16 s and stay at 16 s', async () => {
  const w = world();
  await w.ready();
  w.socket.serverCloses();
  const delays = [];
  for (let attempt = 0; attempt < 7; attempt += 1) {
    delays.push(w.changes.at(-1).delayMs);
    await w.time.advance(w.changes.at(-1).delayMs);
    w.socket.serverCloses();
    await settle();
  }
  assert.deepEqual(delays, [1000, 2000, 4000, 8000, 16000, 16000, 16000]);
});

test('jitter stays within 20 % on both sides', async () => {
  for (const [random, expected] of [
    [0, 800],
    [0.25, 900],
    [0.999999999, 1200],
  ]) {
    const w = world({ random: () => random });
    await w.ready();
    w.socket.serverCloses();
    assert.equal(w.changes.at(-1).delayMs, expected);
  }
});

test('delays start at 1 s again after ten seconds of READY, not before', async () => {
  const w = world();
  await w.ready();
  w.socket.serverCloses();
  await w.time.advance(1000);
  w.socket.serverCloses();
  assert.equal(w.changes.at(-1).delayMs, 2000);
  await w.reconnect();
  await w.time.advance(9999);
  assert.equal(w.client.state, 'READY');
  w.socket.serverCloses();
  assert.equal(
    w.changes.at(-1).delayMs,
    4000,
    'the client does not reconnect every second',
  );
  await w.reconnect();
  await w.time.advance(10000);
  w.socket.serverCloses();
  assert.equal(w.changes.at(-1).delayMs, 1000);
});

test('no attempt is made before the delay is over', async () => {
  const w = world();
  await w.ready();
  w.socket.serverCloses();
  await w.time.advance(999);
  assert.equal(w.sockets.length, 1);
  await w.time.advance(1);
  assert.equal(w.sockets.length, 2);
});

test('connect() during the back-off reconnects at once', async () => {
  const w = world();
  await w.ready();
  w.socket.serverCloses();
  const again = w.client.connect();
  await w.accept();
  await again;
  assert.equal(w.client.state, 'READY');
  await w.time.advance(4000);
  assert.equal(w.sockets.length, 2, 'the cancelled timer must not fire');
});

test('reconnect_after_ms is obeyed to the millisecond, without jitter', async () => {
  const w = world({ random: () => 0 });
  await w.ready();
  const announced = [];
  w.client.on('connection_closing', (message) => announced.push(message.reason));
  w.socket.serverSends(draining(7345));
  assert.equal(w.client.state, 'CLOSING');
  w.socket.serverCloses(1001);
  assert.deepEqual(w.states.slice(-3), ['CLOSING', 'DISCONNECTED', 'BACKOFF']);
  assert.equal(w.changes.at(-1).delayMs, 7345);
  await w.time.advance(7344);
  assert.equal(w.sockets.length, 1);
  await w.time.advance(1);
  assert.equal(w.sockets.length, 2);
  assert.deepEqual(announced, ['draining']);
});

test('reconnect_after_ms counts from connection_closing, not from the close', async () => {
  const w = world();
  await w.ready();
  w.socket.serverSends(draining(3480));
  await w.time.advance(480);
  w.socket.serverCloses(1001);
  assert.equal(w.changes.at(-1).delayMs, 3000);
});

test('reconnect_after_ms applies to one attempt; failures after it back off from 1 s', async () => {
  const w = world();
  await w.ready();
  w.socket.serverSends(draining(50));
  w.socket.serverCloses(1001);
  await w.time.advance(50);
  w.socket.serverCloses();
  assert.equal(w.changes.at(-1).delayMs, 1000);
});

test('reconnect_after_ms applies to one attempt, also if getToken fails then', async () => {
  let fail = false;
  const w = world({
    getToken: () => {
      if (fail) throw new Error('no network');
      return tokenEndingAt(w.time.now() + 10);
    },
  });
  await w.ready();
  fail = true;
  w.socket.serverSends(draining(50));
  w.socket.serverCloses(1001);
  await w.time.advance(50);
  assert.equal(w.changes.at(-1).delayMs, 1000);
});

test('close() while the token is being fetched opens no socket', async () => {
  let deliver;
  const w = world({ getToken: () => new Promise((resolve) => (deliver = resolve)) });
  w.client.connect();
  await settle();
  w.client.close();
  deliver('token');
  await settle();
  assert.equal(w.sockets.length, 0);
});

test('reconnect_allowed: false stops the client', async () => {
  const w = world();
  await w.ready();
  w.socket.serverSends({ type: 'connection_closing', reason: 'admin', reconnect_allowed: false });
  w.socket.serverCloses(4005);
  assert.equal(w.client.state, 'DISCONNECTED');
  assert.equal(w.changes.at(-1).final, true);
  assert.equal(w.changes.at(-1).error.code, 'CLOSED');
  await w.time.advance(3600000);
  assert.equal(w.sockets.length, 1);
});

test('a close without connection_closing is not final', async () => {
  const w = world();
  await w.ready();
  w.socket.serverCloses(4005);
  assert.equal(w.client.state, 'BACKOFF');
});

test('a server that announces its closing and does not close is dropped', async () => {
  const w = world();
  await w.ready();
  w.socket.serverSends({ type: 'connection_closing', reason: 'draining', reconnect_allowed: true });
  for (let second = 0; second < 59; second += 1) {
    await w.time.advance(1000);
    w.socket.serverSends({ type: 'heartbeat_ack' });
  }
  assert.equal(w.client.state, 'CLOSING');
  await w.time.advance(1000);
  assert.equal(w.client.state, 'BACKOFF');
});

test('a handshake without an answer is given up after 10 s', async () => {
  const w = world();
  w.client.connect();
  await w.time.advance(9999);
  assert.equal(w.client.state, 'RECONNECTING');
  await w.time.advance(1);
  assert.equal(w.client.state, 'BACKOFF');
  assert.equal(w.sockets[0].closedWith, 1000);
});

test('a socket without connection_established is given up after 10 s', async () => {
  const w = world();
  w.client.connect();
  await settle();
  w.socket.serverOpens();
  await w.time.advance(10000);
  assert.deepEqual(w.states.slice(-3), ['CONNECTED', 'DISCONNECTED', 'BACKOFF']);
});

test('a late close event of an abandoned socket changes nothing', async () => {
  const w = world();
  w.client.connect();
  await w.time.advance(10000);
  const abandoned = w.socket;
  await w.reconnect();
  abandoned.serverCloses();
  abandoned.serverOpens();
  assert.equal(w.client.state, 'READY');
});

test('close() disconnects and leaves no timer', async () => {
  const w = world();
  await w.ready();
  const pending = codeOf(w.client.queryPresence(['bob']));
  const message = codeOf(w.client.sendMessage('chat', 'hello'));
  w.client.close();
  assert.equal(await pending, 'CLOSED');
  assert.equal(await message, 'CLOSED');
  assert.equal(w.socket.closedWith, 1000);
  assert.equal(w.client.state, 'DISCONNECTED');
  assert.equal(w.time.running, 0);
});

test('close() during the back-off, or inside a state listener, stops the client', async () => {
  const w = world();
  await w.ready();
  w.socket.serverCloses();
  w.client.close();
  await w.time.advance(60000);
  assert.equal(w.sockets.length, 1);

  const other = world();
  await other.ready();
  other.client.on('state', ({ state }) => state === 'DISCONNECTED' && other.client.close());
  other.socket.serverCloses();
  await other.time.advance(60000);
  assert.equal(other.client.state, 'DISCONNECTED');
  assert.equal(other.sockets.length, 1);
});

test('connect() works again after close()', async () => {
  const w = world();
  await w.ready();
  w.client.close();
  await w.ready();
  assert.equal(w.client.state, 'READY');
  assert.equal(w.sockets.length, 2);
});

test('connect() rejects if close() comes before READY', async () => {
  const w = world();
  const connected = codeOf(w.client.connect());
  w.client.close();
  assert.equal(await connected, 'CLOSED');
});

test('a 401 with a static token is final', async () => {
  const w = world();
  const connected = codeOf(w.client.connect());
  await settle();
  w.socket.serverRefuses(401);
  assert.equal(await connected, 'UNAUTHENTICATED');
  await w.time.advance(60000);
  assert.equal(w.sockets.length, 1);
});

test('after a 401 a fresh token is fetched once; a second 401 is final', async () => {
  let fetched = 0;
  const w = world({ getToken: async () => `token${++fetched}` });
  const connected = codeOf(w.client.connect());
  await settle();
  assert.equal(w.socket.token, 'token1');
  w.socket.serverRefuses(401);
  await w.time.advance(1000);
  assert.equal(w.socket.token, 'token2');
  w.socket.serverRefuses(401);
  assert.equal(await connected, 'UNAUTHENTICATED');
  assert.equal(fetched, 2);
});

test('a refused token is replaced although failed attempts have replaced one before', async () => {
  let fetched = 0;
  const w = world({ getToken: async () => `token${++fetched}` });
  const connected = codeOf(w.client.connect());
  await settle();
  w.socket.serverCloses(); // the network is down
  await w.time.advance(1000);
  w.socket.serverCloses();
  await w.time.advance(2000);
  assert.equal(w.socket.token, 'token2');
  w.socket.serverRefuses(401);
  await w.time.advance(4000);
  assert.equal(w.socket.token, 'token3');
  w.socket.serverRefuses(401);
  assert.equal(await connected, 'UNAUTHENTICATED');
  assert.equal(fetched, 3);
});

test('4001 and token_expired fetch a fresh token, even if reconnect_allowed is false', async () => {
  let fetched = 0;
  const w = world({ getToken: () => `token${++fetched}` });
  await w.ready();
  w.socket.serverSends({
    type: 'connection_closing',
    reason: 'token_expired',
    reconnect_allowed: false,
  });
  w.socket.serverCloses(4001);
  await w.reconnect();
  assert.equal(w.socket.token, 'token2');
  assert.equal(w.client.state, 'READY');
  w.socket.serverCloses(4001);
  await w.reconnect();
  assert.equal(w.socket.token, 'token3', 'READY in between: this is a new outage');
});

test('a handshake that fails without a reason replaces the token once', async () => {
  let fetched = 0;
  const w = world({ getToken: () => `token${++fetched}` });
  w.client.connect();
  await settle();
  w.socket.serverCloses();
  await w.time.advance(1000);
  w.socket.serverCloses();
  await w.time.advance(2000);
  w.socket.serverCloses();
  await w.time.advance(4000);
  assert.deepEqual(
    w.sockets.map((socket) => socket.token),
    ['token1', 'token2', 'token2', 'token2'],
  );
});

test('a failing getToken is retried with back-off; UNAUTHENTICATED is final', async () => {
  let fail = true;
  const w = world({
    getToken: async () => {
      if (fail) throw new Error('no network');
      return 'token';
    },
  });
  w.client.connect();
  await settle();
  assert.equal(w.client.state, 'BACKOFF');
  assert.equal(w.errors[0].message, 'no network');
  fail = false;
  await w.reconnect();
  assert.equal(w.client.state, 'READY');

  const refused = world({
    getToken: () =>
      Promise.reject(Object.assign(new Error('logged out'), { code: 'UNAUTHENTICATED' })),
  });
  assert.equal(await codeOf(refused.client.connect()), 'UNAUTHENTICATED');
});

test('an expired static token is not sent', async () => {
  const w = world({ token: tokenEndingAt(Date.parse('2025-12-31T23:00:00Z')) });
  assert.equal(await codeOf(w.client.connect()), 'UNAUTHENTICATED');
  assert.equal(w.sockets.length, 0);
});

test('invalid messages from the server are reported and do not stop the client', async () => {
  const w = world();
  await w.ready();
  for (const text of [
    'not json',
    'null',
    '{}',
    '[]',
    '{"type":7}',
    '{"type":"presence_snapshot"}',
    '{"type":"error"}',
  ]) {
    w.socket.serverSends(text);
  }
  assert.equal(w.client.state, 'READY');
  assert.equal(w.errors.length, 6);
});

test('a listener that throws does not stop the client, and its error is uncaught', async (t) => {
  const thrown = [];
  t.mock.method(globalThis, 'queueMicrotask', (callback) => thrown.push(callback));
  const w = world();
  w.client.on('state', ({ state }) => {
    if (state === 'CONNECTED') throw new Error('listener');
  });
  await w.ready();
  assert.equal(w.client.state, 'READY');
  assert.throws(thrown[0], /listener/);
});

test('the constructor throws without a token or a WebSocket, and for a wrong URL', () => {
  assert.throws(() => world({ WebSocket: null }), /no global WebSocket/);
  assert.throws(() => world({ token: undefined }), /token or getToken/);
  assert.throws(() => world({ url: 'ftp://server.test' }), /not a WebSocket address/);
});
