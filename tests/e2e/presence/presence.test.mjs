/** Presence end to end: transitions, subscriptions, queries, visibility, and restarts. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, eventually, rest, setVisibility, sleep } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/;
const ODD_USERS = ['a/b', 'a,b', '100%', 'a b', 'a+b', 'a?b#c', 'Zoë', '日本 😀', '..', '{x}'];

let server;

before(async () => {
  server = await startServer({ args: ['--node-id', 'gw-001', '--workers', '1'] });
});
after(() => server.stop());
afterEach(closeAll);

const showToEveryone = (...users) =>
  Promise.all(users.map((user) => setVisibility(server, user, 'everyone')));

async function watch(user, ...watched) {
  await showToEveryone(...watched);
  const watcher = await connect(server, user);
  const presences = await watcher.subscribe(...watched);
  return { watcher, presences };
}

const isNow = (time) => Math.abs(Date.parse(time) - Date.now()) < 5000;

test('connection_established has the connection’s ids, time and intervals', async () => {
  const { established } = await connect(server, 'greta');
  assert.match(established.conn_id, ULID);
  assert.match(established.server_time, RFC3339);
  assert.ok(isNow(established.server_time));
  const { type, server_id, user_id, heartbeat_interval_seconds, expiry_window_seconds } =
    established;
  assert.deepEqual(
    { type, server_id, user_id, heartbeat_interval_seconds, expiry_window_seconds },
    {
      type: 'connection_established',
      server_id: 'gw-001',
      user_id: 'greta',
      heartbeat_interval_seconds: 5,
      expiry_window_seconds: 15,
    },
  );
  const again = await connect(server, 'greta');
  assert.notEqual(again.established.conn_id, established.conn_id);
});

test('a heartbeat is acknowledged, with its id when it has one', async () => {
  const client = await connect(server, 'hal');
  client.send({ type: 'heartbeat' });
  const plain = await client.next('heartbeat_ack');
  assert.ok(isNow(plain.server_time));
  assert.equal('id' in plain, false);
  for (const id of ['x', 7, '😀"\\']) {
    client.send({ type: 'heartbeat', id, active: true, unknown: { field: [1] } });
    assert.equal((await client.next('heartbeat_ack')).id, id);
  }
});

test('a subscriber receives online, away, online and offline, each once, in order', async () => {
  const { watcher, presences } = await watch('wanda', 'ollie');
  const { version: before, ...offline } = presences[0];
  assert.deepEqual(offline, {
    user_id: 'ollie',
    status: 'offline',
    in_call: false,
    last_seen: null,
  });
  const ollie = await connect(server, 'ollie');
  const steps = [
    ['online', () => ollie.send({ type: 'heartbeat' })], // changes neither to active nor to idle
    ['away', () => ollie.send({ type: 'heartbeat', active: false })],
    ['online', () => ollie.send({ type: 'heartbeat', active: true })],
    ['offline', () => ollie.close()],
  ];
  const versions = [];
  for (const [status, act] of steps) {
    act();
    act();
    const change = await watcher.nextChange('ollie');
    assert.equal(change.status, status);
    assert.equal(change.in_call, false);
    assert.ok(isNow(change.timestamp));
    assert.equal('device_count' in change, false);
    if (status === 'offline') assert.ok(isNow(change.last_seen));
    else assert.equal(change.last_seen, null);
    versions.push(change.version);
  }
  assert.deepEqual(
    versions,
    [...new Set(versions)].sort((left, right) => left - right),
  );
  assert.ok(versions[0] > before);
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);
  const [queried] = await watcher.query('ollie');
  assert.equal(queried.status, 'offline');
  assert.equal(queried.version, versions.at(-1));
});

test('only the first and the last device of a user change its presence', async () => {
  const { watcher } = await watch('wim', 'multi');
  const phone = await connect(server, 'multi', { device: 'phone' });
  await watcher.nextChange('multi', 'online');
  const laptop = await connect(server, 'multi', { device: 'laptop' });
  phone.send({ type: 'heartbeat', active: false });
  await phone.settle();
  await phone.close();
  await laptop.settle();
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);
  await laptop.close();
  await watcher.nextChange('multi', 'offline');
});

test('a user is away if all devices are idle, and online if one is active', async () => {
  const { watcher } = await watch('wes', 'duo');
  const [one, two] = [await connect(server, 'duo'), await connect(server, 'duo')];
  await watcher.nextChange('duo', 'online');
  one.send({ type: 'heartbeat', active: false });
  await one.settle();
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);
  two.send({ type: 'heartbeat', active: false });
  await watcher.nextChange('duo', 'away');
  one.send({ type: 'heartbeat', active: true });
  await watcher.nextChange('duo', 'online');
  one.terminate();
  await watcher.nextChange('duo', 'away');
  two.terminate();
  await watcher.nextChange('duo', 'offline');
});

test('a user without activity is away after the idle time', async () => {
  const quick = await startServer({ settings: { 'presence.idle_seconds': 0.5 } });
  try {
    await setVisibility(quick, 'idler', 'everyone');
    const watcher = await connect(quick, 'watcher');
    await watcher.subscribe('idler');
    const idler = await connect(quick, 'idler');
    await watcher.nextChange('idler', 'online');
    idler.send({ type: 'heartbeat' });
    await watcher.nextChange('idler', 'away');
    idler.send({ type: 'heartbeat', active: true });
    await watcher.nextChange('idler', 'online');
    await watcher.nextChange('idler', 'away');
  } finally {
    await quick.stop();
  }
});

test('a client receives no changes of a user after it has unsubscribed', async () => {
  const { watcher } = await watch('una', 'chatty', 'other');
  const answer = await watcher.ask({ type: 'unsubscribe_presence', user_ids: ['chatty', 'never'] });
  assert.equal(answer.type, 'ok');
  const chatty = await connect(server, 'chatty');
  await connect(server, 'other');
  await watcher.nextChange('other', 'online');
  await chatty.close();
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);
});

test('a repeated subscription returns a snapshot, and each change still comes once', async () => {
  const { watcher } = await watch('dup', 'same');
  const [again, twice] = await watcher.subscribe('same', 'same');
  assert.equal(again.status, 'offline');
  assert.equal(twice?.status ?? 'offline', 'offline');
  await connect(server, 'same');
  await watcher.nextChange('same', 'online');
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);
});

test('users see their own presence, whatever their settings', async () => {
  await setVisibility(server, 'selfie', 'nobody');
  const selfie = await connect(server, 'selfie');
  const [self] = await selfie.subscribe('selfie');
  assert.equal(self.status, 'online');
  const second = await rest(server, 'GET', '/v1/presence/selfie', { user: 'selfie' });
  assert.equal(second.body.status, 'online');
});

test('at most twenty subscriptions are accepted, and a refused one changes nothing', async () => {
  const client = await connect(server, 'collector');
  const users = Array.from({ length: 21 }, (_, n) => `star-${n}`);
  await showToEveryone('star-0', 'star-20');
  const over = await client.ask({ type: 'subscribe_presence', user_ids: users });
  assert.equal(over.type, 'error');
  assert.equal(over.code, 'SUBSCRIPTION_LIMIT');
  assert.equal((await client.subscribe(...users.slice(0, 20))).length, 20);
  assert.equal((await client.subscribe(...users.slice(0, 20))).length, 20); // the same ones
  const more = await client.ask({ type: 'subscribe_presence', user_ids: ['star-20'] });
  assert.equal(more.code, 'SUBSCRIPTION_LIMIT');
  await client.ask({ type: 'unsubscribe_presence', user_ids: ['star-1'] });
  assert.equal((await client.subscribe('star-20')).length, 1);
  await connect(server, 'star-20');
  await client.nextChange('star-20', 'online');
});

test('a query for up to a hundred users is answered in the requested order', async () => {
  const client = await connect(server, 'reader');
  const users = Array.from({ length: 101 }, (_, n) => `crowd-${n}`);
  const presences = await client.query(...users.slice(0, 100));
  assert.deepEqual(
    presences.map((presence) => presence.user_id),
    users.slice(0, 100),
  );
  const over = await client.ask({ type: 'query_presence', user_ids: users });
  assert.equal(over.code, 'INVALID_MESSAGE');
  const path = (ids) => `/v1/presence?users=${ids.join(',')}`;
  const many = await rest(server, 'GET', path(users.slice(0, 100)), { user: 'reader' });
  assert.equal(many.body.presences.length, 100);
  assert.equal((await rest(server, 'GET', path(users), { user: 'reader' })).status, 400);
  assert.equal((await rest(server, 'GET', '/v1/presence', { user: 'reader' })).status, 400);
  assert.deepEqual(await client.query(), []);
});

const unknown = (user, reason) => ({
  user_id: user,
  status: 'unknown',
  in_call: false,
  last_seen: null,
  version: 0,
  reason,
});

test('by default only contacts see a user; others see unknown and the reason not_contacts', async () => {
  await connect(server, 'shy');
  const unrelated = await connect(server, 'unrelated');
  assert.deepEqual(await unrelated.subscribe('shy'), [unknown('shy', 'not_contacts')]);
  assert.deepEqual(await unrelated.query('shy'), [unknown('shy', 'not_contacts')]);
  const one = await rest(server, 'GET', '/v1/presence/shy', { user: 'unrelated' });
  assert.deepEqual(one.body, unknown('shy', 'not_contacts'));
  const me = await rest(server, 'GET', '/v1/me', { user: 'shy' });
  assert.equal(me.body.presence_visibility, 'contacts_only');
  assert.equal(me.body.last_seen_visibility, 'contacts_only');
});

test('a user visible to nobody is hidden from queries, subscriptions and changes', async () => {
  await setVisibility(server, 'ghost', 'nobody');
  const seeker = await connect(server, 'seeker');
  assert.deepEqual(await seeker.subscribe('ghost'), [unknown('ghost', 'privacy')]);
  const ghost = await connect(server, 'ghost');
  await ghost.close();
  await seeker.settle();
  assert.deepEqual(seeker.messages, []);
  assert.deepEqual(await seeker.query('ghost'), [unknown('ghost', 'privacy')]);
});

test('a change of the visibility setting takes effect for subscribers at once', async () => {
  const { watcher } = await watch('wolf', 'moody');
  const moody = await connect(server, 'moody');
  await watcher.nextChange('moody', 'online');

  await setVisibility(server, 'moody', 'nobody');
  const lost = await watcher.nextChange('moody', 'unknown');
  assert.equal(lost.version, 0);
  assert.equal(lost.last_seen, null);
  moody.send({ type: 'heartbeat', active: false });
  moody.send({ type: 'heartbeat', active: true });
  moody.send({ type: 'heartbeat', active: false });
  await moody.settle();
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);

  await setVisibility(server, 'moody', 'everyone');
  await watcher.nextChange('moody', 'away');
  await moody.close();
  assert.ok(isNow((await watcher.nextChange('moody', 'offline')).last_seen));

  await setVisibility(server, 'moody', 'contacts_only');
  await watcher.nextChange('moody', 'unknown');
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);
});

test('presence and last seen have separate visibility settings', async () => {
  await setVisibility(server, 'vague', 'everyone', 'nobody');
  const watcher = await connect(server, 'curious');
  await watcher.subscribe('vague');
  const vague = await connect(server, 'vague');
  await watcher.nextChange('vague', 'online');
  await vague.close();
  assert.equal((await watcher.nextChange('vague', 'offline')).last_seen, null);
  const [queried] = await watcher.query('vague');
  assert.deepEqual([queried.status, queried.last_seen], ['offline', null]);
  await setVisibility(server, 'vague', 'everyone', 'everyone');
  await eventually(async () => (await watcher.query('vague'))[0].last_seen, 'last seen is shown');
});

test('PATCH /v1/me changes only the given settings and refuses invalid values', async () => {
  const patch = (body) => rest(server, 'PATCH', '/v1/me', { user: 'setter', body });
  assert.equal((await patch({ presence_visibility: 'everyone' })).status, 200);
  const { body } = await patch({ last_seen_visibility: 'nobody' });
  assert.equal(body.presence_visibility, 'everyone');
  assert.equal(body.last_seen_visibility, 'nobody');
  for (const wrong of [{ presence_visibility: 'some' }, { last_seen_visibility: 1 }, [], 'x', 7]) {
    const answer = await patch(wrong);
    assert.equal(answer.status, 400, JSON.stringify(wrong));
    assert.equal(answer.body.error.code, 'INVALID_MESSAGE');
  }
  const { body: after } = await rest(server, 'GET', '/v1/me', { user: 'setter' });
  assert.equal(after.presence_visibility, 'everyone');
  assert.equal(after.last_seen_visibility, 'nobody');
});

test('REST returns users with unusual ids, singly and in a list', async () => {
  await showToEveryone(...ODD_USERS);
  for (const user of ODD_USERS) await connect(server, user);
  for (const user of ODD_USERS) {
    const path = `/v1/presence/${encodeURIComponent(user).replaceAll('.', '%2E')}`;
    const { status, body } = await rest(server, 'GET', path, { user: 'rester' });
    if (user === '..') continue; // fetch resolves %2E%2E as a parent folder
    assert.equal(status, 200, user);
    assert.deepEqual([body.user_id, body.status], [user, 'online']);
  }
  const list = ODD_USERS.map(encodeURIComponent).join(',');
  const { body } = await rest(server, 'GET', `/v1/presence?users=${list}`, { user: 'rester' });
  assert.deepEqual(
    body.presences.map(({ user_id: id, status }) => [id, status]),
    ODD_USERS.map((user) => [user, 'online']),
  );
});

test('a list of users may have escaped commas', async () => {
  await showToEveryone('escaped-a', 'escaped-b');
  const query = new URLSearchParams({ users: 'escaped-a,escaped-b' });
  assert.match(query.toString(), /%2C/);
  const { body } = await rest(server, 'GET', `/v1/presence?${query}`, { user: 'rester' });
  assert.deepEqual(
    body.presences.map(({ user_id: id }) => id),
    ['escaped-a', 'escaped-b'],
  );
});

test('REST refuses invalid ids', async () => {
  for (const path of [
    `/v1/presence/${'x'.repeat(129)}`,
    '/v1/presence/a%00b',
    '/v1/presence/a%0Ab',
    '/v1/presence?users=',
    '/v1/presence?users=a,,b',
    `/v1/presence?users=${'x'.repeat(129)}`,
  ]) {
    const { status } = await rest(server, 'GET', path, { user: 'rester' });
    assert.ok(status === 400 || status === 404, `${status} for ${path}`);
  }
});

test('a reconnect within the grace period is not visible; without one the user goes offline', async () => {
  const graceful = await startServer({ settings: { 'presence.offline_grace_seconds': 4 } });
  try {
    await setVisibility(graceful, 'tunnel', 'everyone');
    const watcher = await connect(graceful, 'watcher');
    await watcher.subscribe('tunnel');
    const before = await connect(graceful, 'tunnel');
    await watcher.nextChange('tunnel', 'online');
    before.terminate();
    await sleep(100);
    assert.equal((await watcher.query('tunnel'))[0].status, 'online');
    const reconnected = await connect(graceful, 'tunnel');
    await sleep(5000);
    await watcher.settle();
    assert.deepEqual(watcher.messages, []);
    const leftMs = Date.now();
    await reconnected.close();
    const { last_seen: lastSeen } = await watcher.nextChange('tunnel', 'offline');
    assert.ok(Date.now() - leftMs > 3000, 'offline is delayed');
    assert.ok(Math.abs(Date.parse(lastSeen) - leftMs) < 3000, 'last seen is when it left');
  } finally {
    await graceful.stop();
  }
});

test('versions grow and last seen is kept over restarts and a crash', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-presence-'));
  let current = await startServer({ dataDir });
  const versions = [];
  let lastSeen;
  try {
    await setVisibility(current, 'phoenix', 'everyone');
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM']) {
      const watcher = await connect(current, 'watcher');
      const [before] = await watcher.subscribe('phoenix');
      versions.push(before.version);
      const phoenix = await connect(current, 'phoenix');
      versions.push((await watcher.nextChange('phoenix', 'online')).version);
      await phoenix.close();
      const offline = await watcher.nextChange('phoenix', 'offline');
      versions.push(offline.version);
      lastSeen = offline.last_seen;
      if (signal === 'SIGKILL') await sleep(4000); // last-seen times are written in batches
      await current.stop(signal);
      current = await startServer({ dataDir });
      const { body } = await rest(current, 'GET', '/v1/presence/phoenix', { user: 'reader' });
      assert.deepEqual([body.status, body.last_seen], ['offline', lastSeen], signal);
      versions.push(body.version);
    }
    assert.deepEqual(
      versions,
      [...versions].sort((left, right) => left - right),
    );
  } finally {
    await current.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});
