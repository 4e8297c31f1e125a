import assert from 'node:assert/strict';
import test from 'node:test';
import { PRESENCE_CACHE_MAX, PresenceCache } from '../presence.js';
import { codeOf, settle, world } from './support.mjs';

const bob = (status, version, more = {}) => ({
  user_id: 'bob',
  status,
  in_call: false,
  last_seen: null,
  version,
  ...more,
});

async function watching(w, ...userIds) {
  const subscribed = w.client.subscribePresence(userIds);
  await settle();
  w.socket.reply(w.socket.ofType('subscribe_presence').at(-1), {
    type: 'presence_snapshot',
    presences: [bob('offline', 1)],
  });
  return subscribed;
}

function recordStatuses(w) {
  const statuses = [];
  w.client.on('presence', (presence) => statuses.push(presence.status));
  return statuses;
}

test('a subscription returns the snapshot, then emits changes', async () => {
  const w = world();
  await w.ready();
  const statuses = recordStatuses(w);
  assert.deepEqual(await watching(w, 'bob'), [bob('offline', 1)]);
  w.socket.serverSends({ type: 'presence_changed', timestamp: 'now', ...bob('online', 2) });
  assert.deepEqual(statuses, ['offline', 'online']);
  assert.equal(w.client.presence('bob').status, 'online');
  assert.equal(w.client.presence('nobody'), undefined);
  assert.ok(!('type' in w.client.presence('bob')));
});

test('an older version is ignored', async () => {
  const w = world();
  await w.ready();
  const statuses = recordStatuses(w);
  w.socket.serverSends({ type: 'presence_changed', ...bob('online', 5) });
  w.socket.serverSends({ type: 'presence_changed', ...bob('offline', 4) });
  w.socket.serverSends({ type: 'presence_snapshot', presences: [bob('away', 3)] });
  assert.deepEqual(statuses, ['online']);
  w.socket.serverSends({ type: 'presence_changed', ...bob('away', 6) });
  assert.deepEqual(statuses, ['online', 'away']);
});

test('version 0 (no visibility) is always applied, and so is the first version after it', async () => {
  const w = world();
  await w.ready();
  const statuses = recordStatuses(w);
  w.socket.serverSends({ type: 'presence_changed', ...bob('online', 9) });
  w.socket.serverSends({ type: 'presence_changed', ...bob('unknown', 0, { reason: 'privacy' }) });
  w.socket.serverSends({ type: 'presence_changed', ...bob('online', 9) });
  assert.deepEqual(statuses, ['online', 'unknown', 'online']);
});

test('an unchanged presence emits no event', async () => {
  const w = world();
  await w.ready();
  const statuses = recordStatuses(w);
  w.socket.serverSends({ type: 'presence_snapshot', presences: [bob('online', 2)] });
  w.socket.serverSends({ type: 'presence_snapshot', presences: [bob('online', 2)] });
  assert.deepEqual(statuses, ['online']);
  w.socket.serverSends({
    type: 'presence_snapshot',
    presences: [bob('online', 2, { stale: true })],
  });
  assert.deepEqual(statuses, ['online', 'online']);
});

test('after a reconnect all users are subscribed again before READY', async () => {
  const w = world();
  await w.ready();
  await watching(w, 'bob');
  await watching(w, 'carol', 'dave');
  const gone = w.client.unsubscribePresence(['carol']);
  w.socket.reply(w.socket.ofType('unsubscribe_presence')[0], { type: 'ok' });
  await gone;
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.client.state, 'SYNCING');
  const [frame] = w.socket.ofType('subscribe_presence');
  assert.deepEqual(frame.user_ids, ['bob', 'dave']);
  w.socket.reply(frame, { type: 'presence_snapshot', presences: [bob('online', 7)] });
  await settle();
  assert.equal(w.client.state, 'READY');
  assert.equal(w.client.presence('bob').status, 'online');
});

test('a refused subscription is not restored', async () => {
  const w = world();
  await w.ready();
  await watching(w, 'bob');
  const refused = codeOf(w.client.subscribePresence(['bob', 'carol']));
  w.socket.reply(w.socket.ofType('subscribe_presence').at(-1), {
    type: 'error',
    code: 'SUBSCRIPTION_LIMIT',
    message: '20',
  });
  assert.equal(await refused, 'SUBSCRIPTION_LIMIT');
  w.socket.serverCloses();
  await w.reconnect();
  assert.deepEqual(w.socket.ofType('subscribe_presence')[0].user_ids, ['bob']);
});

test('restoring waits for a rate limit, and continues without a service that is unavailable', async () => {
  const w = world();
  await w.ready();
  await watching(w, 'bob');
  w.socket.serverCloses();
  await w.reconnect();
  w.socket.reply(w.socket.ofType('subscribe_presence')[0], {
    type: 'error',
    code: 'RATE_LIMITED',
    message: '',
    retry_after_seconds: 0.5,
  });
  await w.time.advance(499);
  assert.equal(w.client.state, 'SYNCING');
  assert.equal(w.socket.ofType('subscribe_presence').length, 1);
  await w.time.advance(1);
  w.socket.reply(w.socket.ofType('subscribe_presence')[1], {
    type: 'error',
    code: 'SERVICE_UNAVAILABLE',
    message: '',
  });
  await settle();
  assert.equal(w.client.state, 'READY');
  await w.time.advance(2000);
  assert.equal(w.socket.ofType('subscribe_presence').length, 3, 'retried in the background');
  assert.equal(w.errors.length, 0);
});

test('a subscription that cannot be restored in ten attempts is reported', async () => {
  const w = world();
  await w.ready();
  await watching(w, 'bob');
  w.socket.serverCloses();
  await w.reconnect();
  for (let attempt = 0; attempt < 10; attempt += 1) {
    assert.equal(w.errors.length, 0);
    w.socket.reply(w.socket.ofType('subscribe_presence')[attempt], {
      type: 'error',
      code: 'RATE_LIMITED',
      message: '',
      retry_after_seconds: 1,
    });
    await w.time.advance(1000);
    w.socket.serverSends({ type: 'heartbeat_ack' });
  }
  assert.deepEqual([w.errors[0].code, w.client.state], ['RATE_LIMITED', 'READY']);
});

test('the cache is bounded and keeps subscribed users', () => {
  const cache = new PresenceCache();
  cache.subscribe(['watched']);
  cache.apply({ user_id: 'watched', status: 'online', version: 1 });
  for (let n = 0; n < PRESENCE_CACHE_MAX; n += 1)
    cache.apply({ user_id: `user${n}`, status: 'online', version: 1 });
  assert.equal(cache.get('watched').status, 'online');
  assert.equal(cache.get('user0'), undefined);
  assert.equal(cache.get('user1').status, 'online');
});
