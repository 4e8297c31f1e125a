/** `rollcall check` on hand-made states: it reports each violation by the name of its invariant, and nothing else. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { makeCertificate } from '../support/certificate.mjs';
import { sleep } from '../support/client.mjs';
import { startProxy } from '../support/proxy.mjs';
import { freePorts, startCluster, startRedis } from '../support/redis.mjs';
import { rollcall } from '../support/server.mjs';

const WINDOW_MS = 60000;
const TIME = '2026-01-31T10:00:00.000Z';

function slotOf(text) {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc % 16384;
}

const tagOfNumber = (number) => [12, 8, 4, 0].map((shift) => String.fromCharCode(64 + ((number >> shift) & 15))).join('');
const TAGS = new Map(Array.from({ length: 16384 }, (_, number) => [slotOf(tagOfNumber(number)), tagOfNumber(number)]));

/** The hash tag of a user's shard on a cluster: four letters in the slot of the user's keys. */
const shard = (user) => `{${TAGS.get(slotOf(user))}}`;

/** The names of the keys on both kinds of Redis; on a cluster the user id is in braces. */
const KINDS = {
  standalone: {
    start: startRedis,
    user: (user) => user,
    connection: (user, id) => `connection:${id}`,
    async addToIndexes(redis, user, id) {
      await redis.command('ZADD', 'presence:v_heartbeat', Date.now() + WINDOW_MS, `${id}:${user}`);
      await redis.command('SADD', 'presence:online', user);
    },
    index: () => 'presence:v_heartbeat',
    online: () => 'presence:online',
    call: (id) => [`call:${id}`, 'calls:due'],
    keyCount: 13,
  },
  cluster: {
    start: startCluster,
    user: (user) => `{${user}}`,
    connection: (user, id) => `connection:{${user}}:${id}`,
    async addToIndexes(redis, user, id) {
      await redis.command('SET', `connection_user:${id}`, user, 'PX', WINDOW_MS);
      await redis.command('ZADD', `presence:v_heartbeat:${shard(user)}`, Date.now() + WINDOW_MS, `${id}:${user}`);
      await redis.command('SADD', `presence:online:${shard(user)}`, user);
    },
    index: (user) => `presence:v_heartbeat:${shard(user)}`,
    online: (user) => `presence:online:${shard(user)}`,
    call: (id) => [`call:{3}:${id}`, 'calls:due:{3}'],
    keyCount: 18,
  },
};

for (const [kind, { start, user: tag, connection, ...rest }] of Object.entries(KINDS))
  describe(`check on ${kind}`, () => {
    let redis;

    const addToIndexes = (user, id) => rest.addToIndexes(redis, user, id);
    const checkDefault = (...args) =>
      rollcall('check', '--state', redis.url, '--window', String(WINDOW_MS / 1000), ...args);
    const check = (...args) => checkDefault('--patience', '0.1', ...args);

    /** Writes a user as the store does, with one connection on each of these gateways. */
    async function register(user, ...gateways) {
      const name = tag(user);
      for (const [n, gateway] of gateways.entries()) {
        const id = `${user}-c${n}`;
        const key = connection(user, id);
        await redis.command(
          'HSET', key, 'user_id', user, 'device_id', 'd', 'server_id', gateway,
          'connected_at', TIME, 'last_heartbeat', TIME,
        );
        await redis.command('PEXPIRE', key, WINDOW_MS);
        await redis.command('SADD', `user_connections:${name}`, id);
        await redis.command('SADD', `user_servers:${name}`, gateway);
        await redis.command('SADD', `server_connections:${gateway}`, id);
        await redis.command('PEXPIRE', `server_connections:${gateway}`, WINDOW_MS);
        await addToIndexes(user, id);
      }
      await redis.command('PEXPIRE', `user_connections:${name}`, WINDOW_MS);
      await redis.command('PEXPIRE', `user_servers:${name}`, WINDOW_MS);
      await redis.command(
        'HSET', `user_presence:${name}`, 'status', 'online', 'device_count', gateways.length,
        'version', 1, 'updated_at', TIME,
      );
      await redis.command('PEXPIRE', `user_presence:${name}`, WINDOW_MS + 5000);
    }

    /** Expects exactly one violation, of this invariant, with these texts. */
    async function expectViolation(invariant, ...texts) {
      const { code, stdout, stderr } = await check();
      assert.equal(code, 1, stdout + stderr);
      const lines = stdout.trim().split('\n').slice(0, -1);
      assert.equal(lines.length, 1, stdout);
      assert.ok(lines[0].startsWith(`${invariant}: `), stdout);
      for (const text of texts) assert.ok(lines[0].includes(text), stdout);
    }

    before(async () => {
      redis = await start();
    });
    after(() => redis.stop());
    beforeEach(async () => {
      await (redis.flush?.() ?? redis.command('FLUSHALL'));
      await register('alice', 'gw-1', 'gw-2');
      await register('bob', 'gw-1');
    });

    test('a consistent state passes, and its keys are counted', async () => {
      await redis.command('SET', 'somebody:else', 1);
      const { code, stdout } = await check();
      assert.equal(code, 0, stdout);
      const counts = `${rest.keyCount} keys, 2 users, 3 connections, 1 other keys`;
      assert.equal(stdout, `${counts}: all invariants hold\n`);
    });

    test('a check writes nothing', async () => {
      const nodes = redis.nodes ? await redis.masters() : [redis];
      const writes = async () => {
        const infos = await Promise.all(nodes.map((node) => node.info('stats')));
        const dirty = await Promise.all(nodes.map((node) => node.info('persistence')));
        return [infos.map((info) => info.evicted_keys), dirty.map((info) => info.rdb_changes_since_last_save)];
      };
      const before = await writes();
      await check();
      assert.deepEqual(await writes(), before);
    });

    test('routing_ttl_bounded: a routing key that lives too long is reported', async () => {
      await redis.command('PERSIST', `user_servers:${tag('alice')}`);
      await expectViolation('routing_ttl_bounded', 'user_servers:', 'alice', 'never expires');
      await redis.command('PEXPIRE', `user_servers:${tag('alice')}`, WINDOW_MS * 2);
      await expectViolation('routing_ttl_bounded', 'user_servers:', 'alice', 'lives longer');
    });

    test('zombie_prevention: a connection without a record is reported', async () => {
      await redis.command('SADD', `user_connections:${tag('bob')}`, 'dead');
      await expectViolation('zombie_prevention', 'bob', 'dead');
    });

    test('routing_denormalization_consistent: a surplus and a missing gateway are reported', async () => {
      await redis.command('SADD', `user_servers:${tag('bob')}`, 'gw-9');
      await expectViolation('routing_denormalization_consistent', 'bob', 'gw-9');
      await redis.command('SREM', `user_servers:${tag('bob')}`, 'gw-9');
      await redis.command('SREM', `user_servers:${tag('alice')}`, 'gw-2');
      await expectViolation('routing_denormalization_consistent', 'alice', 'lacks gw-2');
    });

    test('presence_derives_from_connections: a wrong offline and a wrong online are reported', async () => {
      await redis.command('HSET', `user_presence:${tag('bob')}`, 'status', 'offline');
      await expectViolation('presence_derives_from_connections', 'bob', 'is offline, but connections live');
      await redis.command('HSET', `user_presence:${tag('carol')}`, 'status', 'online', 'device_count', 0);
      await redis.command('PEXPIRE', `user_presence:${tag('carol')}`, WINDOW_MS);
      await redis.command('HSET', `user_presence:${tag('bob')}`, 'status', 'away');
      await expectViolation('presence_derives_from_connections', 'carol', 'no connection lives');
    });

    test('conn_id_uniqueness: a connection id in two places is reported', async () => {
      if (redis.nodes) await redis.command('SET', 'connection_user:bob-c0', 'alice', 'PX', WINDOW_MS);
      else await redis.command('SADD', 'server_connections:gw-2', 'bob-c0');
      await expectViolation('conn_id_uniqueness', 'bob-c0');
    });

    test('a lease missing in the index and a user missing in the online set are reported', async () => {
      await redis.command('ZREM', rest.index('bob'), 'bob-c0:bob');
      await expectViolation('zombie_prevention', rest.index('bob'), 'bob-c0', 'nobody would notice its end');
      await addToIndexes('bob', 'bob-c0');
      await redis.command('SREM', rest.online('bob'), 'bob');
      await expectViolation('presence_derives_from_connections', rest.online('bob'), 'lacks', 'bob');
    });

    /** Writes a call of alice and bob as the store does. */
    async function storeCall(id, state = 'ringing') {
      const [record, index] = rest.call(id);
      const claim = 'C'.repeat(26);
      await redis.command(
        'HSET', record, 'id', id, 'claim', claim, 'state', state, 'caller', 'alice', 'callee', 'bob', 'started_at', TIME,
      );
      await redis.command('PEXPIRE', record, WINDOW_MS);
      await redis.command('ZADD', index, Date.now() + WINDOW_MS, id);
      for (const user of ['alice', 'bob'])
        await redis.command('SET', `user:${tag(user)}:call`, claim + id, 'PX', WINDOW_MS);
    }

    test('a consistent call passes, active or ended', async () => {
      await storeCall('call-1');
      assert.equal((await check()).code, 0);
      await storeCall('call-1', 'ended');
      await redis.command('ZREM', rest.call('call-1')[1], 'call-1');
      for (const user of ['alice', 'bob']) await redis.command('DEL', `user:${tag(user)}:call`);
      const { code, stdout } = await check();
      assert.equal(code, 0, stdout);
    });

    test('one_call_a_user: a user with two calls is reported', async () => {
      await storeCall('call-1', 'accepted');
      await redis.command('SET', `user:${tag('bob')}:call`, `${'D'.repeat(26)}call-2`, 'PX', WINDOW_MS);
      await expectViolation('one_call_a_user', 'user:', 'bob', 'call-1');
    });

    test('calls_end and zombie_prevention: a call without a deadline or past it is reported', async () => {
      await storeCall('call-1');
      const [, index] = rest.call('call-1');
      await redis.command('ZREM', index, 'call-1');
      await expectViolation('calls_end', index, 'call-1');
      await redis.command('ZADD', index, Date.now() - 20000, 'call-1');
      await expectViolation('zombie_prevention', index, 'call-1');
    });

    test('in_call_by_a_call: a call flag without a call is reported', async () => {
      await redis.command('HSET', `user_presence:${tag('bob')}`, 'in_call', 1);
      await expectViolation('in_call_by_a_call', 'bob');
    });

    test('a user in the online set without connections is reported', async () => {
      const set = redis.nodes ? 'presence:online:{7}' : 'presence:online';
      await redis.command('SADD', set, 'nobody}here');
      await expectViolation('presence_derives_from_connections', set, 'nobody}here');
    });

    test('a gateway that is not subscribed to its channel is reported', async () => {
      await redis.command('HSET', 'gateway:gw-1', 'instance', 'x');
      await redis.command('PEXPIRE', 'gateway:gw-1', WINDOW_MS);
      await expectViolation('multi_device_delivery', 'server:gw-1:deliver');
    });

    test('multi_device_aggregation and multi_device_delivery: a wrong count and a missing device are reported', async () => {
      await redis.command('HSET', `user_presence:${tag('alice')}`, 'device_count', 3);
      await expectViolation('multi_device_aggregation', 'alice');
      await redis.command('SREM', `user_connections:${tag('alice')}`, 'alice-c0');
      await redis.command('SREM', `user_servers:${tag('alice')}`, 'gw-1');
      await redis.command('HSET', `user_presence:${tag('alice')}`, 'device_count', 1);
      await expectViolation('multi_device_delivery', 'alice-c0');
    });

    test('multi_device_aggregation: leases and counts that do not fit the connections are reported', async () => {
      const leases = `user_leases:${tag('bob')}`;
      const counts = `user_lease_counts:${tag('bob')}`;
      await redis.command('ZADD', leases, Date.now() + WINDOW_MS, 'bob-c0 0 gw-1');
      await redis.command('PEXPIRE', leases, WINDOW_MS);
      await redis.command('HSET', counts, 'on:gw-1', 1);
      await redis.command('PEXPIRE', counts, WINDOW_MS);
      assert.equal((await check()).code, 0);
      await redis.command('HSET', counts, 'on:gw-1', 2);
      await expectViolation('multi_device_aggregation', 'on:gw-1');
      await redis.command('HSET', counts, 'on:gw-1', 1, 'idle', 1);
      await expectViolation('multi_device_aggregation', 'idle');
      await redis.command('HDEL', counts, 'idle');
      await redis.command('ZADD', leases, Date.now() + WINDOW_MS, 'gone 0 gw-1');
      await expectViolation('multi_device_aggregation', 'user_leases:');
    });

    test('presence_staleness_bounded: a presence record that lives too long is reported', async () => {
      await redis.command('PEXPIRE', `user_presence:${tag('bob')}`, WINDOW_MS + 20000);
      await expectViolation('presence_staleness_bounded', 'bob');
    });

    test('privacy_enforced: an invalid visibility is reported', async () => {
      await redis.command('SET', `presence_visibility:${tag('bob')}`, 'friends', 'PX', 300000);
      await expectViolation('privacy_enforced', 'bob');
    });

    test('an expired lease that is not reaped is reported', async () => {
      await redis.command('ZADD', 'presence:v_heartbeat', Date.now() - 20000, 'lost');
      await expectViolation('zombie_prevention', 'presence:v_heartbeat', 'lost');
    });

    test('well_formed: values of another type and invalid values are reported', async () => {
      await redis.command('SET', `user_connections:${tag('mallory')}`, 'x', 'PX', WINDOW_MS);
      await expectViolation('well_formed', 'mallory', 'is a string where a set belongs');
      await redis.command('DEL', `user_connections:${tag('mallory')}`);
      await redis.command('SET', `last_seen:${tag('bob')}`, 'yesterday\u001b[2J');
      await expectViolation('well_formed', 'last_seen:', 'bob');
      await redis.command('DEL', `last_seen:${tag('bob')}`);
      await storeCall('call-1', 'dreaming');
      await expectViolation('well_formed', 'call-1', 'is not a call');
      await storeCall('call-1');
      await redis.command('HSET', rest.call('call-1')[0], 'started_at', '1700000000000');
      await expectViolation('well_formed', 'call-1', 'started_at is not a time');
    });

    test('control characters in names are escaped', async () => {
      const odd = 'x\r\n\u001b[2J 😀 %s';
      await redis.command('SET', `user_servers:${tag(odd)}`, 1);
      const { code, stdout } = await check();
      assert.equal(code, 1);
      assert.ok(stdout.includes('x\\x0d\\x0a\\x1b[2J 😀 %s'), stdout);
    });

    test('a temporary inconsistency is no violation', async () => {
      await redis.command('SADD', `user_connections:${tag('bob')}`, 'leaving');
      const checking = checkDefault('--patience', '3');
      await sleep(1000);
      await redis.command('SREM', `user_connections:${tag('bob')}`, 'leaving');
      const { code, stdout } = await checking;
      assert.equal(code, 0, stdout);
    });

    test('too many suspicions to check again are not reported as consistent', async () => {
      const dead = Array.from({ length: 1100 }, (_, n) => `dead-${n}`);
      const nodes = redis.nodes ? await redis.masters() : [redis];
      await redis.command('SADD', `user_connections:${tag('bob')}`, ...dead);
      for (const node of nodes) await node.command('CONFIG', 'RESETSTAT');
      const countReads = async () => {
        const stats = await Promise.all(nodes.map((node) => node.info('commandstats')));
        return stats.reduce((sum, stat) => sum + Number(/calls=(\d+)/.exec(stat.cmdstat_eval_ro ?? '')?.[1] ?? 0), 0);
      };
      const checking = checkDefault('--patience', '5');
      while ((await countReads()) < rest.keyCount) await sleep(20);
      await redis.command('SREM', `user_connections:${tag('bob')}`, ...dead);
      const { code, stdout, stderr } = await checking;
      assert.equal(code, 2, stdout);
      assert.match(stderr, /100 suspicions, beyond the first 1000, were not checked again/);
    });

    test('without --window the gateways’ window is used, or 15 s', async () => {
      const withDefault = await rollcall('check', '--state', redis.url, '--patience', '0.1');
      assert.equal(withDefault.code, 1);
      assert.match(withDefault.stdout, /routing_ttl_bounded: .* lives longer than 15000 ms/);
      await redis.command('ZADD', 'presence:gateways', Date.now() + WINDOW_MS, 'gw-1');
      await redis.command('HSET', 'gateway:gw-1', 'instance', 'x', 'window_ms', WINDOW_MS);
      await redis.command('PEXPIRE', 'gateway:gw-1', WINDOW_MS);
      const subscription = await redis.subscribe('server:gw-1:deliver');
      const { code, stdout } = await rollcall('check', '--state', redis.url, '--patience', '0.1');
      subscription.close();
      assert.equal(code, 0, stdout);
    });

    test('--limit prints that many violations and counts the rest', async () => {
      for (let n = 0; n < 30; n += 1) await redis.command('SADD', `user_connections:${tag('bob')}`, `dead-${n}`);
      const { code, stdout, stderr } = await check('--limit', '5');
      assert.equal(code, 1, stdout + stderr);
      assert.equal(stdout.trim().split('\n').length, 7, stdout);
      assert.match(stdout, /and 25 more/);
      assert.match(stdout, /30 violations/);
    });

    test('a URL for the other kind of Redis is reported', async () => {
      const port = redis.port ?? redis.nodes[0].port;
      const other = redis.nodes ? `redis://127.0.0.1:${port}` : `redis-cluster://127.0.0.1:${port}`;
      const { code, stderr } = await rollcall('check', '--state', other);
      assert.equal(code, 2);
      assert.match(stderr, redis.nodes ? /one of a cluster; use redis-cluster/ : /does not run as a cluster/);
    });
  });

test('a failed check exits with 2 and reports the reason without the password', async () => {
  const [port] = await freePorts(1);
  const unreachable = await rollcall('check', '--state', `redis://u:s3cret@127.0.0.1:${port}`);
  assert.equal(unreachable.code, 2);
  assert.match(unreachable.stderr, new RegExp(`127.0.0.1:${port}: `));
  assert.doesNotMatch(unreachable.stderr, /s3cret/);
  const locked = await startRedis();
  try {
    await locked.command('CONFIG', 'SET', 'requirepass', 'right');
    const { code, stderr } = await rollcall('check', '--state', `redis://:wrong@127.0.0.1:${locked.port}`);
    assert.equal(code, 2);
    assert.match(stderr, /refused the user name or password/);
    assert.equal((await rollcall('check', '--state', `redis://:right@127.0.0.1:${locked.port}`)).code, 0);
  } finally {
    await locked.stop();
  }
  for (const args of [[], ['--state', 'memory'], ['--state', 'http://x'], ['--state', 'redis://h:1', '--window', '-1']])
    assert.equal((await rollcall('check', ...args)).code, 2);
});

test('a check over TLS survives a reset connection, or exits with 2', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-check-'));
  const [certificate, key] = [join(directory, 'certificate.pem'), join(directory, 'key.pem')];
  const [port] = await freePorts(1);
  await makeCertificate(directory, 'redis');
  const redis = await startRedis({
    args: [
      '--tls-port', port, '--tls-auth-clients', 'no',
      '--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', certificate,
    ],
  });
  const proxy = await startProxy(port);
  try {
    for (let n = 0; n < 1000; n += 1) await redis.command('SET', `last_seen:user-${n}`, TIME);
    const url = new URL(proxy.url);
    const checking = rollcall('check', '--state', `rediss://${url.host}`, '--ca-file', certificate, '--rate', '400');
    while ((await redis.info('commandstats')).cmdstat_eval_ro === undefined) await sleep(20);
    proxy.cut();
    const { code, stdout, stderr } = await checking;
    assert.ok(code === 0 || code === 2, `ended with ${code}: ${stdout}${stderr}`); // 2 if replies were pending
  } finally {
    proxy.close();
    await redis.stop();
    await rm(directory, { recursive: true, force: true });
  }
});
