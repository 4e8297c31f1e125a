/**
 * The design's acceptance criteria, each under its own name, on a standalone Redis and on a cluster, in the
 * realtime profile: heartbeats every 5 s, leases of 15 s. The tests run concurrently, each with its own users.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { closeAll, deliver, eventually, rest, setVisibility, sleep } from '../support/client.mjs';
import {
  assertInvariants,
  BACKENDS,
  isReady,
  joinFleet,
  REALTIME,
  REALTIME_WINDOW_MS,
  sendUntilAcked,
  startFleet,
} from '../support/fleet.mjs';

const CONCURRENT = { concurrency: true };
const HEARTBEAT_MS = 5000;
/** What a busy machine may add to a time limit. */
const BUSY_MACHINE_MS = 5000;

for (const [kind, { start, key, connection }] of Object.entries(BACKENDS))
  describe(`acceptance criteria on ${kind}`, CONCURRENT, () => {
    let redis;
    let fleet;
    let one;
    let two;
    let deliverer;

    const members = async (prefix, user) => (await redis.command('SMEMBERS', key(prefix, user))).sort();
    const presence = async (user, field) => redis.command('HGET', key('user_presence', user), field);
    const exists = async (name) => (await redis.command('EXISTS', name)) === 1;
    const connectUser = (server, user, options) => joinFleet(server, user, { heartbeatMs: HEARTBEAT_MS, ...options });

    /** Connects an observer who may see the user and is subscribed to its presence. */
    async function observe(user, server = one) {
      await setVisibility(server, user, 'everyone');
      const observer = await connectUser(server, `observer of ${user}`);
      await observer.subscribe(user);
      return observer;
    }

    before(async () => {
      redis = await start();
      fleet = await startFleet({ redis, settings: REALTIME });
      [one, two] = fleet.gateways;
      deliverer = await one.token('backend', { scope: 'deliver' });
    });
    after(async () => {
      closeAll();
      await fleet?.stop();
      await redis?.stop();
    });

    test('Server crash causes entries to expire within EXPIRY_WINDOW', async () => {
      const doomed = await fleet.start('gw-doomed');
      const observer = await observe('crash_A');
      const client = await connectUser(doomed, 'crash_A');
      const record = connection('crash_A', client.established.conn_id);
      await observer.nextChange('crash_A', 'online');
      assert.ok(await exists(record));
      const crashed = Date.now();
      const sleepUntil = (ms) => sleep(crashed + ms - Date.now());
      await fleet.crash(doomed);
      await sleepUntil(14000);
      assert.ok(await exists(record), 'the record exists after 14 s');
      await sleepUntil(16000);
      assert.ok(!(await exists(record)), 'the record has expired after 16 s');
      assert.ok(!(await members('user_servers', 'crash_A')).includes('gw-doomed'));
      assert.deepEqual(await members('user_connections', 'crash_A'), []);
      const offline = await observer.nextChange('crash_A', 'offline');
      const seen = Date.parse(offline.last_seen);
      assert.ok(Math.abs(seen - crashed) < 2000, `last seen ${seen - crashed} ms from the crash`);
      assert.equal(observer.changes().length, 2, 'online and offline, once each');
    });

    test('Reconnect updates mapping idempotently', async () => {
      const doomed = await fleet.start('gw-doomed-too');
      const { established } = await connectUser(doomed, 'again_A');
      await fleet.crash(doomed);
      await eventually(
        async () => !(await exists(connection('again_A', established.conn_id))),
        'the entry expires',
        REALTIME_WINDOW_MS + BUSY_MACHINE_MS,
      );
      const again = await connectUser(two, 'again_A');
      const id = again.established.conn_id;
      assert.deepEqual(await members('user_servers', 'again_A'), ['gw-002']);
      assert.deepEqual(await members('user_connections', 'again_A'), [id]);
      assert.equal(await redis.command('HGET', connection('again_A', id), 'server_id'), 'gw-002');
    });

    test('Multi-device routing delivers to all servers', async () => {
      const devices = [await connectUser(one, 'multi_A'), await connectUser(two, 'multi_A')];
      assert.deepEqual(await members('user_servers', 'multi_A'), ['gw-001', 'gw-002']);
      const channels = await Promise.all(
        ['gw-001', 'gw-002'].map((gateway) => redis.subscribe(`server:${gateway}:deliver`)),
      );
      await deliver(one, deliverer, 'multi_A', { hello: 'multi_A-here' });
      for (const device of devices) assert.equal((await device.next('delivery')).data.hello, 'multi_A-here');
      for (const channel of channels) {
        await eventually(
          () => channel.messages.some((message) => message.includes('multi_A-here')),
          'both channels carry the delivery',
        );
        channel.close();
      }
    });

    test('Stale routing entry (message to dead server)', async () => {
      const doomed = await fleet.start('gw-doomed-three');
      const sender = await connectUser(one, 'stale_B');
      await makeChat(one, 'stale-chat', 'stale_B', 'stale_A');
      await connectUser(doomed, 'stale_A');
      await fleet.crash(doomed);
      assert.deepEqual(await members('user_servers', 'stale_A'), ['gw-doomed-three']);
      const { sequence } = await sendUntilAcked(sender, 'stale-chat', 'to the dead');
      assert.equal(sequence, 1, 'the message is acknowledged');
      const again = await connectUser(two, 'stale_A');
      const { messages } = await again.ask({ type: 'sync_request', chat_id: 'stale-chat', after_sequence: 0 });
      assert.deepEqual(messages.map(({ body }) => body), ['to the dead']);
      await eventually(
        async () => (await members('user_servers', 'stale_A')).join() === 'gw-002',
        'the stale entry is removed',
        REALTIME_WINDOW_MS + BUSY_MACHINE_MS,
      );
    });

    test('First connection transitions to ONLINE', async () => {
      const observer = await observe('first_A', two);
      await connectUser(one, 'first_A');
      assert.equal((await observer.nextChange('first_A')).status, 'online');
      assert.equal(await presence('first_A', 'status'), 'online');
      assert.equal(await presence('first_A', 'last_seen'), null);
    });

    test('Last connection transitions to OFFLINE', async () => {
      const observer = await observe('last_A', two);
      const client = await connectUser(one, 'last_A');
      await observer.nextChange('last_A', 'online');
      const left = Date.now();
      await client.close();
      const event = await observer.nextChange('last_A', 'offline');
      assert.equal(await presence('last_A', 'status'), 'offline');
      const seen = await presence('last_A', 'last_seen');
      assert.equal(event.last_seen, seen);
      assert.equal(await redis.command('GET', key('last_seen', 'last_A')), seen);
      assert.ok(Math.abs(Date.parse(seen) - left) < 2000);
    });

    test('Multi-device keeps user ONLINE', async () => {
      const observer = await observe('both_A', two);
      const devices = [await connectUser(one, 'both_A'), await connectUser(two, 'both_A')];
      await observer.nextChange('both_A', 'online');
      await devices[0].close();
      await eventually(async () => (await presence('both_A', 'device_count')) === '1', 'one device is left');
      assert.equal(await presence('both_A', 'status'), 'online');
      await observer.settle();
      assert.equal(observer.changes().length, 1, 'only the change to online');
    });

    test('Presence staleness bounded by EXPIRY_WINDOW', async () => {
      await setVisibility(one, 'stale_P', 'everyone');
      const client = await connectUser(one, 'stale_P');
      const observer = await connectUser(two, 'observer of stale_P');
      assert.equal((await observer.query('stale_P'))[0].status, 'online');
      await client.close();
      await eventually(
        async () => (await observer.query('stale_P'))[0].status === 'offline',
        'the user is offline',
      );
      await sleep(14000);
      assert.equal((await observer.query('stale_P'))[0].status, 'offline');
    });

    test('Split brain prevented by conn_id uniqueness', async () => {
      const first = await connectUser(one, 'split_A');
      first.terminate();
      const second = await connectUser(two, 'split_A');
      const [old, id] = [first, second].map((client) => client.established.conn_id);
      assert.notEqual(id, old);
      assert.equal(await redis.command('HGET', connection('split_A', id), 'server_id'), 'gw-002');
      await eventually(
        async () => (await members('user_connections', 'split_A')).join() === id,
        'the old connection is removed',
        REALTIME_WINDOW_MS + BUSY_MACHINE_MS,
      );
      assert.deepEqual(await members('user_servers', 'split_A'), ['gw-002']);
    });

    test('every routing key of a live system lives at most a window, and the invariants hold', async () => {
      await Promise.all([connectUser(one, 'alive_A'), connectUser(two, 'alive_A'), connectUser(two, 'alive_B')]);
      for (let n = 0; n < 3; n += 1) {
        await sleep(2500);
        for (const name of await redis.keys('*alive_A*')) {
          if (!/^(connection|user_connections|user_servers):/.test(name)) continue;
          const left = await redis.command('PTTL', name);
          assert.ok(left > 0 && left <= REALTIME_WINDOW_MS, `${name} lives ${left} ms`);
        }
        await assertInvariants(redis, REALTIME_WINDOW_MS);
      }
    });

    test('the admin API lists devices and gateways of the whole fleet', async () => {
      await connectUser(one, 'admin_A');
      await connectUser(two, 'admin_A');
      const token = await one.token('root', { scope: 'admin' });
      const { body } = await rest(two, 'GET', '/admin/v1/connections?user=admin_A', { token });
      assert.deepEqual(body.connections.map(({ server_id: id }) => id).sort(), ['gw-001', 'gw-002']);
      const { body: all } = await rest(one, 'GET', '/admin/v1/gateways', { token });
      const names = all.gateways.map(({ server_id: id }) => id);
      assert.ok(names.includes('gw-001') && names.includes('gw-002'), names.join());
      assert.ok(await isReady(one));
    });
  });
