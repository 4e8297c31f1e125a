import assert from 'node:assert/strict';
import test from 'node:test';
import { Timers } from '../timers.js';
import { tokenExpiryMs, TokenRefresh, TokenSource } from '../token.js';
import { codeOf, settle, tokenEndingAt, VirtualTime, world } from './support.mjs';

const START_MS = Date.parse('2026-01-01T00:00:00.000Z');
const DAY_MS = 86400000;

/** A getToken whose tokens expire `lifeMs` after they are fetched. */
function issuer(lifeMs) {
  const issued = [];
  const getToken = () => {
    const token = tokenEndingAt(issuer.time.now() + lifeMs, `token${issued.length}`);
    issued.push(token);
    return token;
  };
  return { issued, getToken };
}

function worldWithIssuer(lifeMs) {
  const { issued, getToken } = issuer(lifeMs);
  const w = world({ getToken });
  issuer.time = w.time;
  return { w, issued };
}

/** Advances time with a server that answers heartbeats and refreshes. */
async function alive(w, ms) {
  for (let passed = 0; passed < ms; passed += 1000) {
    await w.time.advance(1000);
    w.socket.serverSends({ type: 'heartbeat_ack' });
    for (const frame of w.socket.ofType('refresh_token')) w.socket.reply(frame, { type: 'ok' });
    await settle();
  }
}

test('exp is read from the payload, other tokens never expire', () => {
  assert.equal(tokenExpiryMs(tokenEndingAt(START_MS)), START_MS);
  assert.equal(tokenExpiryMs('opaque'), Infinity);
  assert.equal(tokenExpiryMs('a.b.c'), Infinity);
  assert.equal(
    tokenExpiryMs(`e30.${Buffer.from('{"exp":"soon"}').toString('base64url')}.x`),
    Infinity,
  );
});

test('a minute before the token expires the next one is sent over the open connection', async () => {
  const { w, issued } = worldWithIssuer(600000);
  await w.ready();
  await alive(w, 539000);
  assert.equal(issued.length, 1);
  await alive(w, 1000);
  assert.equal(issued.length, 2);
  assert.equal(w.socket.ofType('refresh_token')[0].token, issued[1]);
  await alive(w, 540000);
  assert.equal(issued.length, 3, 'the next token is replaced in the same way');
  assert.equal(w.sockets.length, 1);
});

test('a token with less than two minutes left is replaced at half of that time', async () => {
  const { w, issued } = worldWithIssuer(40000);
  await w.ready();
  await alive(w, 19000);
  assert.equal(issued.length, 1);
  await alive(w, 1000);
  assert.equal(issued.length, 2);
});

test("the server's clock decides when a token expires", async () => {
  const { w, issued } = worldWithIssuer(600000);
  w.client.connect();
  await w.accept({ server_time: new Date(START_MS + 120000).toISOString() });
  await alive(w, 419000);
  assert.equal(issued.length, 1);
  await alive(w, 1000);
  assert.equal(issued.length, 2);
});

test('a failed refresh is retried with back-off', async () => {
  let calls = 0;
  const w = world({
    getToken: () => {
      calls += 1;
      if (calls === 2) throw new Error('no network');
      return tokenEndingAt(START_MS + 600000 * calls);
    },
  });
  await w.ready();
  await alive(w, 540000);
  assert.deepEqual([calls, w.errors.length], [2, 1]);
  assert.equal(w.socket.ofType('refresh_token').length, 0);
  await alive(w, 1000);
  assert.equal(calls, 3);
  assert.equal(w.socket.ofType('refresh_token').length, 1);
});

/** A client that waits for its second token. */
async function waitingForToken() {
  let answer;
  let calls = 0;
  const getToken = () => {
    calls += 1;
    if (calls === 1) return tokenEndingAt(START_MS + 600000);
    return new Promise((resolve, reject) => (answer = { resolve, reject }));
  };
  const w = world({ getToken });
  await w.ready();
  await alive(w, 540000);
  return { w, answer, calls: () => calls };
}

test('a getToken that fails after close() is not retried', async () => {
  const { w, answer, calls } = await waitingForToken();
  w.client.close();
  answer.reject(new Error('no network'));
  await settle();
  assert.deepEqual([w.time.running, w.errors.length], [0, 0]);
  await w.time.advance(600000);
  assert.equal(calls(), 2);
});

test('a token that arrives after its connection was lost is not sent over the next', async () => {
  const { w, answer } = await waitingForToken();
  w.socket.serverCloses();
  await w.reconnect();
  answer.resolve(tokenEndingAt(START_MS + 1200000));
  await settle();
  assert.equal(w.socket.ofType('refresh_token').length, 0);
});

test('a token that arrives while the server closes is used for the next connection', async () => {
  const { w, answer, calls } = await waitingForToken();
  w.socket.serverSends({ type: 'connection_closing', reason: 'draining', reconnect_allowed: true });
  const token = tokenEndingAt(START_MS + 1200000);
  answer.resolve(token);
  await settle();
  w.socket.serverCloses(1001);
  await w.reconnect();
  assert.deepEqual([w.socket.token, calls(), w.errors.length], [token, 2, 0]);
});

test('UNAUTHENTICATED from getToken stops the client, from the server it does not', async () => {
  const { w, answer } = await waitingForToken();
  answer.resolve(tokenEndingAt(START_MS + 1200000));
  await settle();
  const refusal = { type: 'error', code: 'UNAUTHENTICATED', message: 'no' };
  w.socket.reply(w.socket.ofType('refresh_token')[0], refusal);
  await settle();
  assert.equal(w.client.state, 'READY');

  const other = await waitingForToken();
  other.answer.reject(Object.assign(new Error('signed out'), { code: 'UNAUTHENTICATED' }));
  await settle();
  const { final, error } = other.w.changes.at(-1);
  assert.deepEqual([final, error.message], [true, 'signed out']);
  assert.equal(other.w.time.running, 0);
});

/** A refresh that has begun with tokens of `endAt(now)`; `sent()` counts what it sent. */
async function refreshing(endAt) {
  const time = new VirtualTime();
  const tokens = new TokenSource({ getToken: () => tokenEndingAt(endAt(time.now())), now: time.now });
  await tokens.current();
  let sent = 0;
  new TokenRefresh({
    tokens,
    timers: new Timers(time),
    random: () => 0.5,
    send: async () => (sent += 1),
    onError: assert.fail,
  }).start(0);
  return { time, sent: () => sent };
}

test('a getToken that repeats an expiring token is called at most once a second', async () => {
  const { time, sent } = await refreshing(() => START_MS + 10000);
  await time.advance(20000);
  assert.equal(sent(), 14, 'after 5, 7.5 and 8.75 s, then once a second');
});

test('a token that expires in months is refreshed in time, although no timer lasts that long', async () => {
  const { time, sent } = await refreshing((nowMs) => nowMs + 90 * DAY_MS);
  await time.advance(90 * DAY_MS - 61000);
  assert.equal(sent(), 0);
  await time.advance(1000);
  assert.equal(sent(), 1);
});

test('reconnecting uses the present token until it expires, and the new one after a refresh', async () => {
  const { w, issued } = worldWithIssuer(600000);
  await w.ready();
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.socket.token, issued[0]);
  await alive(w, 560000);
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.socket.token, issued[1]);
});

test('refreshToken() sends the given token and uses it for the next handshake', async () => {
  const w = world();
  await w.ready();
  const refreshed = w.client.refreshToken('next');
  await settle();
  w.socket.reply(w.socket.ofType('refresh_token')[0], { type: 'ok' });
  await refreshed;
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.socket.token, 'next');
});

test('refreshToken() rejects if the server refuses the token', async () => {
  const w = world();
  await w.ready();
  const refreshed = codeOf(w.client.refreshToken('bad'));
  await settle();
  w.socket.reply(w.socket.ofType('refresh_token')[0], {
    type: 'error',
    code: 'UNAUTHENTICATED',
    message: 'no',
  });
  assert.equal(await refreshed, 'UNAUTHENTICATED');
});
