import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { devToken, RollcallApi } from '../rollcall.js';
import { HTTP_TIMEOUT_MS } from '../http.js';
import { codeOf, settle, VirtualTime } from './support.mjs';

const json = (status, answer, headers = {}) =>
  new Response(answer === undefined ? null : JSON.stringify(answer), { status, headers });

/** An API whose server is `answer(request)`; `requests` has what was sent. */
function world(answer = () => json(200, {}), options = {}) {
  const requests = [];
  const time = new VirtualTime();
  const fetch = async (url, { method, headers, body, signal }) => {
    const request = { method, url, headers, body: body && JSON.parse(body), signal };
    requests.push(request);
    return answer(request, requests.length);
  };
  const api = new RollcallApi({ url: 'https://server.test', token: 'static', fetch, timers: time, ...options });
  return { api, requests, time, fetch };
}

test('a request carries the token, the JSON body and only the given parameters', async () => {
  const w = world();
  await w.api.requestContact('bob');
  await w.api.friends({ status: 'online' });
  assert.deepEqual(
    w.requests.map(({ method, url, headers, body }) => [method, url, headers, body]),
    [
      [
        'POST',
        'https://server.test/v1/contact-requests',
        { Authorization: 'Bearer static', 'Content-Type': 'application/json' },
        { to: 'bob' },
      ],
      ['GET', 'https://server.test/v1/friends?status=online', { Authorization: 'Bearer static' }, undefined],
    ],
  );
});

test('ids are escaped in paths', async () => {
  const w = world(() => json(204));
  assert.equal(await w.api.block('a/b ?é'), null);
  assert.equal(w.requests[0].url, 'https://server.test/v1/blocks/a%2Fb%20%3F%C3%A9');
});

test('the address of the WebSocket serves for the API too', async () => {
  for (const [url, expected] of [
    ['wss://server.test/v1/ws', 'https://server.test/v1/me'],
    ['ws://server.test:81', 'http://server.test:81/v1/me'],
    ['https://server.test/chat/v1/ws', 'https://server.test/chat/v1/me'],
  ]) {
    const w = world(undefined, { url });
    await w.api.me();
    assert.equal(w.requests[0].url, expected);
  }
});

test('a refused token is replaced once, by one call of getToken for all requests', async () => {
  let issued = 0;
  const getToken = async () => `token${++issued}`;
  const isOld = ({ headers }) => headers.Authorization === 'Bearer token1';
  const w = world((request) => (isOld(request) ? json(401, {}) : json(200, { user_id: 'alice' })), {
    token: undefined,
    getToken,
  });
  const answers = await Promise.all([w.api.me(), w.api.me(), w.api.me()]);
  assert.deepEqual(answers, Array(3).fill({ user_id: 'alice' }));
  assert.equal(issued, 2);
  assert.equal(w.requests.length, 6);
});

test('a token that is refused again, or cannot be replaced, is UNAUTHENTICATED', async () => {
  const refuse = () => json(401, { error: { code: 'UNAUTHENTICATED', message: 'expired' } });
  const renewable = world(refuse, { token: undefined, getToken: async () => 'token' });
  assert.equal(await codeOf(renewable.api.me()), 'UNAUTHENTICATED');
  assert.equal(renewable.requests.length, 2);
  const fixed = world(refuse);
  await assert.rejects(fixed.api.me(), { code: 'UNAUTHENTICATED', status: 401, message: 'expired' });
  assert.equal(fixed.requests.length, 1);
});

test('a getToken that hangs does not block later requests for ever', async () => {
  const answers = [new Promise(() => {}), Promise.resolve('token')];
  const w = world(undefined, { token: undefined, getToken: () => answers.shift() });
  const first = codeOf(w.api.me({ timeoutMs: 5000 }));
  await w.time.advance(5000);
  assert.equal(await first, 'TIMEOUT');
  await w.time.advance(5000);
  await w.api.me();
  assert.equal(w.requests[0].headers.Authorization, 'Bearer token');
});

test('errors have the code, the status and when to try again', async () => {
  const limited = { error: { code: 'RATE_LIMITED', message: 'slow down', retry_after_seconds: 1.5 } };
  for (const [answer, expected] of [
    [json(429, limited, { 'Retry-After': '2' }), { code: 'RATE_LIMITED', status: 429, retryAfterSeconds: 1.5, retryable: true }],
    [json(503, {}, { 'Retry-After': '7' }), { code: 'SERVICE_UNAVAILABLE', status: 503, retryAfterSeconds: 7 }],
    [new Response('<h1>Bad Gateway</h1>', { status: 502 }), { code: 'SERVICE_UNAVAILABLE', status: 502, retryAfterSeconds: undefined }],
    [json(404, { error: { code: 'NOT_FOUND', message: 'no' } }), { code: 'NOT_FOUND', status: 404, message: 'no', retryable: false }],
    [new Response('<h1>Welcome</h1>', { status: 200 }), { code: 'SERVICE_UNAVAILABLE' }],
  ]) {
    await assert.rejects(world(() => answer).api.me(), (error) => {
      for (const [field, value] of Object.entries(expected)) assert.equal(error[field], value, field);
      return error.name === 'RollcallError';
    });
  }
});

/** Never answers; ends when the signal says so, as fetch() does. */
const hang = ({ signal }) =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

test('a request without an answer ends with TIMEOUT, and leaves no timer', async () => {
  const w = world(hang);
  const code = codeOf(w.api.me());
  await w.time.advance(HTTP_TIMEOUT_MS);
  assert.equal(await code, 'TIMEOUT');
  assert.equal(w.time.running, 0);
});

test('a cancelled request rejects with the reason of its signal', async () => {
  const w = world(hang);
  const controller = new AbortController();
  const request = w.api.me({ signal: controller.signal });
  await settle();
  controller.abort();
  await assert.rejects(request, { name: 'AbortError' });
  await assert.rejects(w.api.me({ signal: controller.signal }), { name: 'AbortError' });
  assert.equal(w.requests.length, 1, 'nothing is sent after the cancellation');
  assert.equal(w.time.running, 0);
});

test('a server that cannot be reached is DISCONNECTED, with the cause', async () => {
  const cause = new TypeError('fetch failed');
  const w = world(() => Promise.reject(cause));
  await assert.rejects(w.api.me(), { code: 'DISCONNECTED', cause });
});

test('lists are read page by page', async () => {
  const chats = { '': ['a', 'b'], 2: ['c'] };
  const w = world(({ url }) => {
    const query = new URL(url).searchParams;
    if (url.includes('/friends')) {
      const ids = query.get('after') === 'bob' ? ['carol'] : ['alice', 'bob'];
      return json(200, { friends: ids.map((id) => ({ user_id: id })), has_more: ids.length > 1 });
    }
    const cursor = query.get('cursor') ?? '';
    const has_more = cursor === '';
    return json(200, { chats: chats[cursor], has_more, next_cursor: has_more ? '2' : null });
  });
  const [ids, friends] = [[], []];
  for await (const chat of w.api.eachChat()) ids.push(chat);
  for await (const { user_id: id } of w.api.eachFriend()) friends.push(id);
  assert.deepEqual(ids, ['a', 'b', 'c']);
  assert.deepEqual(friends, ['alice', 'bob', 'carol']);
});

test('history is read backwards to the first message', async () => {
  const w = world(({ url }) => {
    const query = new URL(url).searchParams;
    const before = Math.min(Number(query.get('before_sequence')), 6);
    const first = Math.max(1, before - Number(query.get('limit')));
    const messages = [];
    for (let sequence = first; sequence < before; sequence += 1) messages.push({ sequence });
    return json(200, { messages, has_more: first > 1, latest_sequence: 5 });
  });
  const read = async (options) => {
    const sequences = [];
    for await (const { sequence } of w.api.eachMessage('team', options)) sequences.push(sequence);
    return sequences;
  };
  assert.deepEqual(await read({ limit: 2 }), [5, 4, 3, 2, 1]);
  assert.deepEqual(await read({ limit: 2, beforeSequence: 3 }), [2, 1]);
});

test('devToken() asks a server in dev mode, without a token', async () => {
  const w = world(() => json(200, { token: 'dev' }));
  assert.equal(await devToken('alice', { url: 'http://server.test', fetch: w.fetch }), 'dev');
  const [{ method, url, headers, body }] = w.requests;
  assert.deepEqual([method, url, body], ['POST', 'http://server.test/dev/token', { user: 'alice' }]);
  assert.equal(headers.Authorization, undefined);
});

// --- Completeness ---------------------------------------------------------------------------------

/** Requests of the API that are not for users, or not for this class. */
const isForUsers = (path) =>
  path.startsWith('/v1/') &&
  !/^\/v1\/(ws|echo|service|users)\b/.test(path);

const ARGUMENTS = {
  createGroup: [{ members: ['u'] }],
  updateChat: ['c', { membersCanAdd: true }],
  presences: [['u']],
  sendMessage: ['c', 'text'],
  markRead: ['c', 1],
  updateMe: [{}],
  friends: [],
  chats: [],
  calls: [],
  contactRequests: [],
  me: [],
  blocks: [],
  ice: [],
};

test('there is a method for every request of a user in openapi.json', async () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../../docs/openapi.json', import.meta.url)));
  const wanted = Object.entries(paths)
    .filter(([path]) => isForUsers(path))
    .flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((method) => /^(get|put|post|patch|delete)$/.test(method))
        .map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, 'x')}`),
    );
  const w = world(() => json(200, { presences: [], blocks: [], calls: [] }));
  const methods = Object.getOwnPropertyNames(RollcallApi.prototype).filter(
    (name) => !/^(constructor|request|each.*)$/.test(name),
  );
  for (const name of methods) await w.api[name](...(ARGUMENTS[name] ?? ['x', 'x']));
  const sent = new Set(
    w.requests.map(({ method, url }) => `${method} ${new URL(url).pathname.replaceAll(/\/c\b/g, '/x')}`),
  );
  assert.deepEqual(wanted.filter((request) => !sent.has(request)), []);
});
