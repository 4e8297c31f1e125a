/** Limits on what a connection may cost the server, and the signals a client gets before it is closed. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import {
  closeAll,
  connect,
  deliver,
  eventually,
  metric,
  refusal,
  setVisibility,
  sleep,
  SOON_MS,
} from '../support/client.mjs';
import { startSilentFlood } from '../support/silent_flood.mjs';
import { destroyAll, frame, OPCODE, rawConnect, rawWebSocket } from '../support/raw.mjs';
import { residentBytes, startServer } from '../support/server.mjs';

const LARGE = 'x'.repeat(60000);
const ONE_WORKER = ['--workers', '1'];
const AMPLE_COMMANDS = {
  'gateway.backpressure.inbound.command_rate_per_second': 100000,
  'gateway.backpressure.inbound.command_rate_burst': 100000,
};

/** A client that does not read is soon a slow consumer. */
const SMALL_QUEUE = {
  'gateway.backpressure.outbound.max_buffer_messages': 20,
  'gateway.backpressure.outbound.max_buffer_bytes': 10000000,
  'gateway.backpressure.outbound.grace_period_seconds': 1,
  'gateway.socket_unsent_bytes_max': 4096,
  'gateway.close_timeout_seconds': 20,
};

let server; // with the default limits
const others = [];

before(async () => {
  server = await startServer({ args: ONE_WORKER });
});
after(() => server.stop());
afterEach(async () => {
  closeAll();
  destroyAll();
  await Promise.all(others.splice(0).map((other) => other.stop()));
});

async function serve(settings, args = []) {
  const other = await startServer({ args: [...ONE_WORKER, ...args], settings });
  others.push(other);
  return other;
}

test('commands beyond fifty a second, or a hundred at once, are RATE_LIMITED', async () => {
  const client = await connect(server, 'hasty');
  const startedMs = Date.now();
  for (let id = 0; id < 250; id += 1) client.send({ type: 'heartbeat', id });
  const answers = [];
  for (let id = 0; id < 250; id += 1) answers.push(await client.next((answer) => answer.id === id));
  const allowed = answers.filter(({ type }) => type === 'heartbeat_ack').length;
  const secondsMax = (Date.now() - startedMs) / 1000;
  assert.ok(allowed >= 100, `${allowed} allowed`);
  assert.ok(allowed <= 101 + 50 * secondsMax, `${allowed} allowed in ${secondsMax} s`);
  const refused = answers.filter(({ code }) => code === 'RATE_LIMITED');
  assert.equal(refused.length, 250 - allowed);
  const { type, retry_after_seconds: retryAfter } = refused.at(-1);
  assert.equal(type, 'error');
  assert.ok(retryAfter > 0 && retryAfter <= 1, `retry after ${retryAfter} s`);
  await sleep(retryAfter * 1000 + 50);
  assert.equal((await client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
});

test('invalid messages count against the command rate', async () => {
  const client = await connect(server, 'babbler');
  for (let n = 0; n < 200; n += 1) client.send('nonsense');
  await client.next(({ code }) => code === 'RATE_LIMITED');
  const [{ code }] = client.messages;
  assert.equal(code, 'INVALID_MESSAGE');
});

test('an invalid message is answered INVALID_MESSAGE, and the connection stays', async () => {
  const lenient = await serve(AMPLE_COMMANDS);
  const client = await connect(lenient, 'odd');
  const withId = [
    { type: 'no_such_thing' },
    { type: 7 },
    {},
    { type: 'connection_established' },
    { type: 'heartbeat', active: 'yes' },
    { type: 'heartbeat', active: 1 },
    { type: 'subscribe_presence' },
    { type: 'subscribe_presence', user_ids: 'bob' },
    { type: 'subscribe_presence', user_ids: [7] },
    { type: 'subscribe_presence', user_ids: [''] },
    { type: 'query_presence', user_ids: ['x'.repeat(129)] },
    { type: 'query_presence', user_ids: ['bob', null] },
    { type: 'unsubscribe_presence', user_ids: {} },
    { type: 'refresh_token' },
    { type: 'refresh_token', token: '' },
  ];
  for (const message of withId) {
    const answer = await client.ask(message);
    assert.equal(answer.type, 'error', JSON.stringify(message));
    assert.equal(answer.code, 'INVALID_MESSAGE', JSON.stringify(message));
    assert.equal(typeof answer.message, 'string');
  }
  const withoutId = [
    '',
    ' ',
    '{',
    '[]',
    '7',
    '"heartbeat"',
    'null',
    '{"type":"heartbeat"} {}',
    '{"type":"heartbeat",}',
    "{'type':'heartbeat'}",
    '{"type":"heart\u0001beat"}',
    '{"type":"\\ud800"}',
    '{"type":"heartbeat","id":{}}',
    `{"type":"heartbeat","id":"${'x'.repeat(300)}"}`,
    `{"type":${'['.repeat(30000)}${']'.repeat(30000)}}`,
    '['.repeat(60000),
    `{"a":`.repeat(10000),
    `{"type":"${'x'.repeat(65000)}"}`,
    `{${Array.from({ length: 5000 }, (_, n) => `"k${n}":0`).join()}}`,
    `{"type":"query_presence","user_ids":[${'"a",'.repeat(12000)}"a"]}`,
  ];
  for (const text of withoutId) {
    client.send(text);
    const answer = await client.next('error');
    assert.equal(answer.code, 'INVALID_MESSAGE', text.slice(0, 40));
  }
  client.socket.send(Buffer.from('{"type":"heartbeat"}'), { binary: true });
  assert.equal((await client.next('error')).code, 'INVALID_MESSAGE');
  await client.settle();
  assert.deepEqual(client.messages, []);
});

test('a message over the frame limit closes the connection with 1009', async () => {
  const client = await connect(server, 'giant');
  client.send('x'.repeat(65537));
  assert.equal((await client.ended()).code, 1009);
});

test('commands beyond the queue’s depth are answered SERVER_BUSY, each once', async () => {
  const shallow = await serve({ 'gateway.backpressure.inbound.max_queue_depth': 2 });
  const headers = [`Authorization: Bearer ${await shallow.token('pusher')}`];
  const socket = await rawWebSocket(shallow, '/v1/ws', headers);
  const queries = Array.from({ length: 30 }, (_, id) =>
    frame(OPCODE.text, JSON.stringify({ type: 'query_presence', user_ids: ['bob'], id })),
  );
  socket.send(Buffer.concat(queries));
  const answers = new Map();
  await socket.frame(); // connection_established
  while (answers.size < 30) {
    const { id, type, code } = JSON.parse((await socket.frame()).payload);
    assert.ok(!answers.has(id), `${id} answered twice`);
    answers.set(id, type === 'error' ? code : type);
  }
  assert.deepEqual(new Set(answers.values()), new Set(['presence_snapshot', 'SERVER_BUSY']));
});

const QUICK_HEARTBEATS = {
  'gateway.timeouts.heartbeat_interval_seconds': 0.3,
  'gateway.timeouts.heartbeat_timeout_seconds': 0.6,
  'presence.expiry_window_seconds': 1.8,
};

test('a silent client is pinged, then closed with 4002, and its user goes offline', async () => {
  const quick = await serve(QUICK_HEARTBEATS);
  await setVisibility(quick, 'mute', 'everyone');
  const watcher = await connect(quick, 'watcher'); // sends no heartbeats, only answers pings
  await watcher.subscribe('mute');
  const mute = await connect(quick, 'mute', { ws: { autoPong: false } });
  assert.equal(mute.established.heartbeat_interval_seconds, 0.3);
  assert.equal(mute.established.expiry_window_seconds, 1.8);
  await watcher.nextChange('mute', 'online');
  const closing = await mute.next('connection_closing');
  assert.equal(mute.pings.length, 1);
  assert.equal(closing.reason, 'heartbeat_timeout');
  assert.equal(closing.reconnect_allowed, true);
  assert.equal((await mute.ended()).code, 4002);
  const { last_seen: lastSeen } = await watcher.nextChange('mute', 'offline');
  assert.ok(Math.abs(Date.parse(lastSeen) - Date.now()) < 5000);
  await sleep(2000);
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);
  assert.ok(watcher.pings.length > 0);
});

test('a connection that reaches the maximum age is closed with 1001 and may reconnect', async () => {
  const brief = await serve({ 'gateway.max_lifetime_seconds': 1 });
  const client = await connect(brief, 'old');
  const { reason, reconnect_allowed: allowed } = await client.next('connection_closing');
  assert.deepEqual([reason, allowed], ['max_lifetime', true]);
  assert.equal((await client.ended()).code, 1001);
});

/** Delivers large messages to a user until `isEnough`; returns how many. */
async function deliverUntil(at, user, isEnough, limit = 400) {
  const token = await at.token('operator', { scope: 'deliver' });
  for (let n = 0; n < limit; n += 1) {
    await deliver(at, token, user, { n, LARGE });
    if (await isEnough(n)) return n + 1;
  }
  throw new Error(`${limit} deliveries were not enough`);
}

test('a client that keeps up with a burst is no slow consumer', async () => {
  const tight = await serve({ ...SMALL_QUEUE, ...AMPLE_COMMANDS });
  const headers = [`Authorization: Bearer ${await tight.token('burst')}`];
  const socket = await rawWebSocket(tight, '/v1/ws', headers);
  await socket.frame(); // connection_established
  const beats = Array.from({ length: 500 }, (_, id) =>
    frame(OPCODE.text, JSON.stringify({ type: 'heartbeat', id })),
  );
  socket.send(Buffer.concat(beats));
  for (let id = 0; id < 500; id += 1)
    assert.equal(JSON.parse((await socket.frame()).payload).id, id);
});

test('a slow consumer is warned, given a grace period, and closed with 4003', async () => {
  const tight = await serve(SMALL_QUEUE);
  await setVisibility(tight, 'snail', 'everyone');
  const snail = await connect(tight, 'snail', { device: 'slow' });
  const hare = await connect(tight, 'snail', { device: 'fast' });
  snail.socket.pause();
  const count = await deliverUntil(tight, 'snail', (n) => n >= 60);
  assert.ok((await metric(tight, 'gateway_slow_consumer_warnings')) >= 1);
  await eventually(() => metric(tight, 'gateway_slow_consumer_disconnects'), 'the slow consumer is disconnected');
  const isUserLogged = () => /event=outbound_queue_filling user="snail"/.test(tight.log());
  await eventually(isUserLogged, 'the log names the user');
  for (let n = 0; n < count; n += 1) assert.equal((await hare.next('delivery')).data.n, n);

  snail.socket.resume();
  const warning = await snail.next('error');
  assert.equal(warning.code, 'SLOW_CONSUMER');
  assert.equal(warning.grace_period_seconds, 1);
  const closing = await snail.next('connection_closing');
  assert.equal(closing.reason, 'slow_consumer');
  assert.equal(closing.reconnect_allowed, true);
  assert.equal((await snail.ended()).code, 4003);
  const received = snail.messages.map(({ data }) => data.n);
  assert.deepEqual(
    received,
    received.map((_, n) => n),
    'no delivery is missing in between',
  );
  assert.ok(received.length >= 20 && received.length < count, `${received.length} of ${count} deliveries`);
  await hare.settle();
  assert.deepEqual(hare.messages, []);
});

test('a slow consumer that catches up within the grace period stays connected', async () => {
  const tight = await serve({
    ...SMALL_QUEUE,
    'gateway.backpressure.outbound.max_buffer_messages': 200,
    'gateway.backpressure.outbound.warning_threshold_percent': 5,
    'gateway.backpressure.outbound.critical_threshold_percent': 10,
    'gateway.backpressure.outbound.grace_period_seconds': 2,
  });
  const sloth = await connect(tight, 'sloth');
  sloth.socket.pause();
  const isWarned = () => metric(tight, 'gateway_slow_consumer_warnings');
  const count = await deliverUntil(tight, 'sloth', isWarned, 150);
  sloth.socket.resume();
  assert.equal((await sloth.next('error')).code, 'SLOW_CONSUMER');
  for (let n = 0; n < count; n += 1) assert.equal((await sloth.next('delivery')).data.n, n);
  await sleep(2500);
  await sloth.settle();
  assert.deepEqual(sloth.messages, []);
  assert.equal(await metric(tight, 'gateway_slow_consumer_disconnects'), 0);
});

test('the outbound queue is bounded in bytes as well as in messages', async () => {
  const tight = await serve({
    ...SMALL_QUEUE,
    'gateway.backpressure.outbound.max_buffer_messages': 10000,
    'gateway.backpressure.outbound.max_buffer_bytes': 300000,
  });
  const heavy = await connect(tight, 'heavy');
  heavy.socket.pause();
  await deliverUntil(tight, 'heavy', () => metric(tight, 'gateway_slow_consumer_warnings'));
  await eventually(() => metric(tight, 'gateway_slow_consumer_disconnects'), 'the slow consumer is disconnected');
  heavy.socket.resume();
  assert.equal((await heavy.next('connection_closing')).reason, 'slow_consumer');
  assert.equal((await heavy.ended()).code, 4003);
});

test('a slow consumer gets the latest presence of a user whose presence changes often', async () => {
  const tight = await serve({ ...SMALL_QUEUE, ...AMPLE_COMMANDS });
  await setVisibility(tight, 'flicker', 'everyone');
  const flicker = await connect(tight, 'flicker');
  const reader = await connect(tight, 'reader');
  await reader.subscribe('flicker');
  reader.socket.pause();
  const token = await tight.token('operator', { scope: 'deliver' });
  for (let n = 0; n < 14; n += 1) await deliver(tight, token, 'reader', { n, LARGE });

  for (let n = 0; n < 1000; n += 1) {
    flicker.send({ type: 'heartbeat', active: n % 2 === 1 });
    if (n % 50 === 0) await flicker.settle(); // its own outbound queue is short, too
  }
  flicker.send({ type: 'heartbeat', active: false });
  await flicker.settle();
  await sleep(1200); // longer than the grace period

  reader.socket.resume();
  await reader.settle();
  const changes = reader.messages.filter(({ type }) => type === 'presence_changed');
  assert.ok(changes.length < 20, `${changes.length} changes were queued`);
  assert.equal(changes.at(-1).status, 'away');
  const [now] = await reader.query('flicker');
  assert.equal(changes.at(-1).version, now.version);
  assert.ok(!reader.messages.some(({ type }) => type === 'connection_closing'));
});

test('when memory is short, connections are notified and closed with 4004', async () => {
  const largeQueue = {
    'gateway.backpressure.outbound.max_buffer_messages': 10000,
    'gateway.backpressure.outbound.max_buffer_bytes': 500000000,
    'gateway.close_timeout_seconds': 60,
    'gateway.timeouts.heartbeat_timeout_seconds': 60,
    'presence.expiry_window_seconds': 60,
  };
  const probe = await serve(largeQueue);
  await connect(probe, 'probe');
  const limitBytes = (await residentBytes(probe)) + (24 << 20);
  const small = await serve({ ...largeQueue, 'gateway.memory_limit_bytes': limitBytes });
  const hoarder = await connect(small, 'hoarder');
  hoarder.socket.pause();
  const token = await small.token('operator', { scope: 'deliver' });
  for (let n = 0; n < 1500 && (await residentBytes(small)) < limitBytes; n += 1)
    await deliver(small, token, 'hoarder', { n, LARGE }).catch(() => {}); // refused once memory is short
  await eventually(() => /event=memory_pressure/.test(small.log()), 'memory pressure is logged');
  hoarder.socket.resume();
  const closing = await hoarder.next('connection_closing', 3 * SOON_MS);
  assert.equal(closing.reason, 'memory_pressure');
  assert.equal(closing.reconnect_allowed, true);
  assert.equal((await hoarder.ended(3 * SOON_MS)).code, 4004);
});

test('while memory is short, a new connection gets 503', async () => {
  const starved = await serve({ 'gateway.memory_limit_bytes': 1 });
  const url = `${starved.url.replace('http', 'ws')}v1/ws`;
  await eventually(() => /event=memory_pressure/.test(starved.log()), 'memory pressure is logged');
  const token = await starved.token('late');
  const { status, headers } = await refusal(url, [], {
    headers: { Authorization: `Bearer ${token}` },
  });
  assert.equal(status, 503);
  assert.ok(Number(headers['retry-after']) > 0);
});

test('connections beyond the limit get 503 until one leaves', async () => {
  const small = await serve({ 'gateway.max_connections': 3 });
  const clients = [];
  for (let n = 0; n < 3; n += 1) clients.push(await connect(small, `user-${n}`));
  const over = rawConnect(small);
  const { status, headers } = await over.response();
  assert.equal(status, 503);
  assert.ok(Number(headers['retry-after']) > 0);
  await over.end();
  for (const client of clients)
    assert.equal((await client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await clients[0].close();
  await eventually(
    () => connect(small, 'user-3').then(Boolean, () => false),
    'a new connection is accepted',
  );
});

test('many silent connections do not block a client, and are closed in time', async () => {
  const patient = await serve({ 'gateway.http.header_timeout_seconds': 1 });
  const crowd = Array.from({ length: 300 }, () => rawConnect(patient));
  await Promise.all(crowd.map((socket) => socket.connected));
  const client = await connect(patient, 'patient');
  assert.equal((await client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await Promise.all(crowd.map((socket) => socket.end()));
});

test('silent connections give way when the limit is reached', async () => {
  const small = await serve({ 'gateway.max_connections': 60, 'gateway.workers': 1 });
  const token = await small.token('user');
  const clients = [];
  for (let n = 0; n < 3; n += 1) clients.push(await connect(small, 'user', { token }));
  const flood = startSilentFlood({ port: small.port, count: 200 });
  try {
    await eventually(() => flood.closedCount() > 200, 'silent connections are closed');
    for (let n = 0; n < 3; n += 1) clients.push(await connect(small, 'user', { token }));
    for (const client of clients) {
      const before = flood.closedCount();
      assert.equal((await client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
      await eventually(() => flood.closedCount() > before, 'the flood goes on');
    }
    assert.equal(await metric(small, 'gateway_connections_refused'), 0);
  } finally {
    flood.stop();
  }
});
