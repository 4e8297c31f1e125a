import assert from 'node:assert/strict';
import test from 'node:test';
import { codeOf, settle, world } from './support.mjs';

test('replies are matched by id in any order', async () => {
  const w = world();
  await w.ready();
  const first = w.client.queryPresence(['bob']);
  const second = w.client.queryPresence(['carol']);
  const [one, two] = w.socket.ofType('query_presence');
  assert.notEqual(one.id, two.id);
  w.socket.reply(two, {
    type: 'presence_snapshot',
    presences: [{ user_id: 'carol', status: 'away', version: 1 }],
  });
  w.socket.reply(one, {
    type: 'presence_snapshot',
    presences: [{ user_id: 'bob', status: 'online', version: 1 }],
  });
  assert.equal((await first)[0].status, 'online');
  assert.equal((await second)[0].status, 'away');
});

test("an error from the server rejects with its code and retryAfterSeconds", async () => {
  const w = world();
  await w.ready();
  const refused = w.client.requestCall('bob');
  w.socket.reply(w.socket.ofType('call_request')[0], {
    type: 'error',
    code: 'RATE_LIMITED',
    message: 'slow down',
    retry_after_seconds: 1.5,
  });
  await assert.rejects(refused, {
    name: 'RollcallError',
    code: 'RATE_LIMITED',
    message: 'slow down',
    retryAfterSeconds: 1.5,
  });
  assert.equal(w.errors.length, 0, 'an error that rejects a request is not an event too');
});

test('an error without a request is an event', async () => {
  const w = world();
  await w.ready();
  w.socket.serverSends({
    type: 'error',
    code: 'SLOW_CONSUMER',
    message: 'read faster',
    grace_period_seconds: 5,
  });
  assert.deepEqual([w.errors[0].code, w.errors[0].retryAfterSeconds], ['SLOW_CONSUMER', 5]);
});

test('no reply within 10 s, or within timeoutMs, is a TIMEOUT', async () => {
  const w = world();
  await w.ready();
  const normal = codeOf(w.client.queryPresence(['bob']));
  const quick = codeOf(
    w.client.request('query_presence', { user_ids: ['bob'] }, { timeoutMs: 100 }),
  );
  await w.time.advance(100);
  assert.equal(await quick, 'TIMEOUT');
  await w.time.advance(9900);
  assert.equal(await normal, 'TIMEOUT');
});

test('a late reply is ignored', async () => {
  const w = world();
  await w.ready();
  const quick = codeOf(w.client.request('call_end', { call_id: 'c' }, { timeoutMs: 100 }));
  await w.time.advance(100);
  await quick;
  w.socket.reply(w.socket.ofType('call_end')[0], { type: 'ok' });
  assert.equal(w.client.state, 'READY');
});

test('a request without a connection waits for the next one', async () => {
  const w = world();
  const early = w.client.queryPresence(['bob']);
  await w.ready();
  const [frame] = w.socket.ofType('query_presence');
  w.socket.reply(frame, { type: 'presence_snapshot', presences: [] });
  assert.deepEqual(await early, []);
});

test('a request without a connection fails after its time limit', async () => {
  const w = world();
  const early = codeOf(w.client.queryPresence(['bob']));
  await w.time.advance(10000);
  assert.equal(await early, 'TIMEOUT');
  await w.ready();
  assert.equal(w.socket.ofType('query_presence').length, 0);
});

test('after a lost connection an idempotent request is sent again, any other fails', async () => {
  const w = world();
  await w.ready();
  const query = w.client.queryPresence(['bob']);
  const call = codeOf(w.client.requestCall('bob'));
  w.socket.serverCloses();
  assert.equal(await call, 'DISCONNECTED');
  await w.reconnect();
  assert.equal(w.socket.ofType('call_request').length, 0);
  w.socket.reply(w.socket.ofType('query_presence')[0], {
    type: 'presence_snapshot',
    presences: [],
  });
  assert.deepEqual(await query, []);
});

test('the 101st pending request fails with QUEUE_FULL', async () => {
  const w = world();
  const pending = Array.from({ length: 100 }, () => codeOf(w.client.queryPresence(['bob'])));
  assert.equal(await codeOf(w.client.queryPresence(['bob'])), 'QUEUE_FULL');
  w.client.close();
  assert.deepEqual(new Set(await Promise.all(pending)), new Set(['CLOSED']));
});

test('before READY only restoring requests are sent, and none while the server is closing', async () => {
  const w = world();
  w.client.subscribePresence(['bob']).catch(() => {});
  w.client.queryPresence(['carol']).catch(() => {});
  w.client.connect();
  await w.accept();
  assert.equal(w.client.state, 'SYNCING');
  assert.deepEqual(
    w.socket.sent.map(({ type }) => type),
    ['heartbeat', 'subscribe_presence'],
  );
  w.socket.reply(w.socket.sent[1], { type: 'presence_snapshot', presences: [] });
  await settle();
  assert.equal(w.socket.ofType('query_presence').length, 1);
  w.socket.serverSends({ type: 'connection_closing', reason: 'draining', reconnect_allowed: true });
  const late = w.client.queryPresence(['dave']);
  assert.equal(w.socket.ofType('query_presence').length, 1);
  w.socket.serverCloses(1001);
  await w.time.advance(1000);
  await w.accept();
  w.socket.reply(w.socket.ofType('subscribe_presence')[0], {
    type: 'presence_snapshot',
    presences: [],
  });
  await settle();
  const frame = w.socket.ofType('query_presence').find(({ user_ids }) => user_ids[0] === 'dave');
  w.socket.reply(frame, { type: 'presence_snapshot', presences: [] });
  assert.deepEqual(await late, []);
});

test('calls send commands, receive replies and emit pushes', async () => {
  const w = world();
  await w.ready();
  const ringing = w.client.requestCall('bob', { callId: 'call_1' });
  const [request] = w.socket.ofType('call_request');
  assert.deepEqual([request.to, request.call_id], ['bob', 'call_1']);
  w.socket.reply(request, { type: 'call_ringing', call_id: 'call_1' });
  assert.equal((await ringing).call_id, 'call_1');

  const pushed = [];
  for (const type of ['call_incoming', 'call_accepted', 'call_ended', 'call_signal'])
    w.client.on(type, (message) => pushed.push(message.type));
  w.socket.serverSends({ type: 'call_accepted', call_id: 'call_1' });
  assert.equal(w.client.signal('call_1', { sdp: 'x' }), true);
  assert.deepEqual(w.socket.ofType('call_signal')[0].data, { sdp: 'x' });
  w.socket.serverSends({ type: 'call_signal', call_id: 'call_1', from: 'bob', data: {} });
  for (const [method, type] of [
    ['acceptCall', 'call_accept'],
    ['rejectCall', 'call_reject'],
    ['endCall', 'call_end'],
  ]) {
    const done = w.client[method]('call_1');
    w.socket.reply(w.socket.ofType(type)[0], { type: 'ok' });
    assert.equal((await done).type, 'ok');
  }
  assert.deepEqual(pushed, ['call_accepted', 'call_signal']);
});

test('typing and signals are not kept without a connection', async () => {
  const w = world();
  assert.equal(w.client.typing('chat'), false);
  assert.equal(w.client.signal('call', {}), false);
  await w.ready();
  assert.equal(w.client.typing('chat'), true);
  assert.equal(w.client.typing('chat', false), true);
  assert.deepEqual(
    w.socket.sent.slice(-2).map(({ type }) => type),
    ['typing_start', 'typing_stop'],
  );
});

test('on() returns a function that removes the listener, once() fires once, off() removes', async () => {
  const w = world();
  const received = [];
  const off = w.client.on('delivery', () => received.push('on'));
  w.client.once('delivery', () => received.push('once'));
  const listener = () => received.push('off');
  w.client.on('delivery', listener);
  await w.ready();
  w.socket.serverSends({ type: 'delivery', data: 1 });
  w.client.off('delivery', listener);
  w.socket.serverSends({ type: 'delivery', data: 2 });
  off();
  w.socket.serverSends({ type: 'delivery', data: 3 });
  assert.deepEqual(received, ['on', 'once', 'off', 'on']);
});
