/**
 * Presence never lies for good: whatever fails, everybody who was told something is told the truth when the fault is over,
 * with versions that only grow, on one Redis and on a cluster.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually, setVisibility, sleep } from '../support/client.mjs';
import { befriend } from '../support/contacts.mjs';
import { assertInvariants, BACKENDS, isReady, joinFleet, QUICK, QUICK_WINDOW_MS, startFleet } from '../support/fleet.mjs';

const NOTICED_MS = 30000;

/** Kills and starts every server of a Redis, which then has no data. */
const killAll = (redis) => (redis.each ? redis.each('kill') : redis.kill());
const startAll = (redis) => (redis.each ? redis.each('start') : redis.start());

async function setUp(t, backend) {
  const redis = await backend.start();
  const fleet = await startFleet({ redis, settings: QUICK });
  const clients = [];
  const join = async (server, user) => {
    clients.push(await joinFleet(server, user));
    return clients.at(-1);
  };
  t.after(async () => {
    for (const client of clients) client.terminate();
    await fleet.stop();
    await redis.stop();
  });
  return { redis, fleet, join, servers: fleet.gateways };
}

const waitUntilReady = async (servers, ready) => {
  for (const server of servers)
    await eventually(async () => (await isReady(server)) === ready, `ready is ${ready}`, NOTICED_MS);
};

/** What a client was told about a user, in messages of any kind, with versions. */
const toldOf = (client, user) =>
  client.record
    .flatMap((message) => (message.type === 'presence_snapshot' ? message.presences ?? message.users : [message]))
    .filter((told) => told?.user_id === user && told.version !== undefined);

function assertVersionsGrow(client, user) {
  const versions = toldOf(client, user).map(({ version }) => version);
  for (let i = 1; i < versions.length; i += 1)
    assert.ok(versions[i] >= versions[i - 1], `versions of ${user} go back: ${versions}`);
}

for (const [name, backend] of Object.entries(BACKENDS))
  describe(`the truth after a fault of Redis (${name})`, { concurrency: 2 }, () => {
    test('who left while Redis was down is offline after it came back empty', async (t) => {
      const { redis, servers, join } = await setUp(t, backend);
      const [one, two] = servers;
      for (const user of ['bob', 'stays']) await setVisibility(one, user, 'everyone');
      await befriend(one, 'alice', 'carol');
      const alice = await join(one, 'alice');
      const bob = await join(two, 'bob');
      const carol = await join(two, 'carol');
      await join(two, 'stays');
      await alice.subscribe('bob', 'stays');
      await eventually(() => toldOf(alice, 'carol').some(({ status }) => status === 'online'), 'carol is online');
      const [before] = await alice.query('bob');

      await killAll(redis);
      await waitUntilReady(servers, false);
      const leftAt = Date.now();
      bob.terminate();
      carol.terminate();
      await sleep(1000);
      await startAll(redis);
      await waitUntilReady(servers, true);

      for (const user of ['bob', 'carol']) {
        await eventually(() => toldOf(alice, user).at(-1).status === 'offline', `${user} is offline`);
        const [told] = toldOf(alice, user).slice(-1);
        const seen = Date.parse(told.last_seen);
        assert.ok(Math.abs(seen - leftAt) < 900, `last seen ${seen - leftAt} ms after leaving`);
        const [queried] = await alice.query(user);
        assert.equal(queried.status, 'offline');
        assert.equal(queried.version, told.version);
        assert.equal(queried.last_seen, told.last_seen);
        assertVersionsGrow(alice, user);
      }
      assert.ok(toldOf(alice, 'bob').at(-1).version > before.version, 'the version has grown');
      const [present] = await alice.query('stays');
      assert.equal(present.status, 'online');
      assert.deepEqual(
        alice.changes().filter(({ status }) => status === 'online').map(({ user_id: user }) => user),
        ['carol'],
        'nobody comes online who was not away',
      );
      for (const user of ['bob', 'carol']) {
        const versions = toldOf(alice, user).filter(({ status }) => status === 'offline').map(({ version }) => version);
        assert.ok(new Set(versions).size <= 2, `offline once, and once more if the time is corrected: ${versions}`);
      }
      await assertInvariants(redis, QUICK_WINDOW_MS);
    });

    test('who left while Redis was paused longer than a lease is offline with the time they left', async (t) => {
      const { redis, servers, join } = await setUp(t, backend);
      const [one, two] = servers;
      for (const user of ['bob', 'stays']) await setVisibility(one, user, 'everyone');
      const alice = await join(one, 'alice');
      const bob = await join(two, 'bob');
      await join(two, 'stays');
      await alice.subscribe('bob', 'stays');

      await redis.pause();
      await waitUntilReady(servers, false);
      const leftAt = Date.now();
      bob.terminate();
      await sleep(2 * QUICK_WINDOW_MS + 5000);
      await redis.resume();
      await waitUntilReady(servers, true);

      // A reaper may be first, which knows only bob's last sign of life; bob's gateway then corrects the time.
      const seenMs = () => Date.parse(toldOf(alice, 'bob').at(-1).last_seen) - leftAt;
      await eventually(
        () => toldOf(alice, 'bob').at(-1).status === 'offline' && Math.abs(seenMs()) < 900,
        'bob is offline since they left',
      );
      await sleep(QUICK_WINDOW_MS + 1000);
      assert.ok(Math.abs(seenMs()) < 900, `last seen ${seenMs()} ms after leaving`);
      const changes = alice.changes().map(({ user_id: user, status }) => `${user} ${status}`);
      assert.deepEqual([...new Set(changes)], ['bob offline']);
      assert.ok(changes.length <= 2, `told ${changes.length} times`);
      const [bobNow, stays] = await alice.query('bob', 'stays');
      assert.equal(stays.status, 'online');
      assert.equal(bobNow.version, toldOf(alice, 'bob').at(-1).version);
      assertVersionsGrow(alice, 'bob');
      assertVersionsGrow(alice, 'stays');
    });

    test('a device whose lease was lost is told to sync when it has its route again', async (t) => {
      const { redis, servers, join } = await setUp(t, backend);
      const alice = await join(servers[0], 'alice');
      const bob = await join(servers[1], 'bob');
      const keys = ['user_connections', 'user_servers', 'user_presence', 'user_leases', 'user_lease_counts'];
      for (const prefix of keys) await redis.command('DEL', backend.key(prefix, 'alice'));
      const told = (client) => client.record.filter(({ type }) => type === 'sync_required').length;
      await eventually(() => told(alice) > 0, 'alice is told to sync');
      assert.equal(alice.record.find(({ type }) => type === 'sync_required').reason, 'lease_lost');
      assert.deepEqual(await redis.command('SMEMBERS', backend.key('user_servers', 'alice')), ['gw-001']);
      assert.equal(told(bob), 0, 'nobody else is');
    });

    test('after an outage every device is told to sync', async (t) => {
      const { redis, servers, join } = await setUp(t, backend);
      const clients = [await join(servers[0], 'alice'), await join(servers[1], 'bob')];
      await killAll(redis);
      await waitUntilReady(servers, false);
      await startAll(redis);
      for (const client of clients)
        await eventually(() => client.record.some(({ type }) => type === 'sync_required'), 'told to sync');
    });
  });
