/** `rollcall check` on states made by hand: it finds each thing that is wrong, by name, and nothing else. */
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

/** Where a user is on a cluster: one of the sixteen shards, by FNV-1a. */
function shard(user) {
  let hash = 2166136261;
  for (const byte of Buffer.from(user)) hash = Math.imul(hash ^ byte, 16777619);
  return `{${(hash >>> 0) % 16}}`;
}

/** The same keys on both kinds: on a cluster the user stands in braces. */
const KINDS = {
  standalone: {
    start: startRedis,
    user: (user) => user,
    connection: (user, id) => `connection:${id}`,
    async enter(redis, user, id) {
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
    async enter(redis, user, id) {
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
  describe(kind, () => {
    let redis;

    const enter = (user, id) => rest.enter(redis, user, id);
    const patiently = (...args) =>
      rollcall('check', '--state', redis.url, '--window', String(WINDOW_MS / 1000), ...args);
    const check = (...args) => patiently('--patience', '0.1', ...args);

    /** A user as the store leaves it, with one connection on each of these gateways. */
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
        await enter(user, id);
      }
      await redis.command('PEXPIRE', `user_connections:${name}`, WINDOW_MS);
      await redis.command('PEXPIRE', `user_servers:${name}`, WINDOW_MS);
      await redis.command(
        'HSET', `user_presence:${name}`, 'status', 'online', 'device_count', gateways.length,
        'version', 1, 'updated_at', TIME,
      );
      await redis.command('PEXPIRE', `user_presence:${name}`, WINDOW_MS + 5000);
    }

    /** Exactly one violation, of this invariant, that names these texts. */
    async function finds(invariant, ...texts) {
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

    test('a state in order passes, and is counted', async () => {
      await redis.command('SET', 'somebody:else', 1);
      const { code, stdout } = await check();
      assert.equal(code, 0, stdout);
      const counts = `${rest.keyCount} keys, 2 users, 3 connections, 1 other keys`;
      assert.equal(stdout, `${counts}: all invariants hold\n`);
    });

    test('nothing is written', async () => {
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

    test('routing_ttl_bounded', async () => {
      await redis.command('PERSIST', `user_servers:${tag('alice')}`);
      await finds('routing_ttl_bounded', 'user_servers:', 'alice', 'never expires');
      await redis.command('PEXPIRE', `user_servers:${tag('alice')}`, WINDOW_MS * 2);
      await finds('routing_ttl_bounded', 'user_servers:', 'alice', 'lives longer');
    });

    test('zombie_prevention', async () => {
      await redis.command('SADD', `user_connections:${tag('bob')}`, 'dead');
      await finds('zombie_prevention', 'bob', 'dead');
    });

    test('routing_denormalization_consistent, both ways', async () => {
      await redis.command('SADD', `user_servers:${tag('bob')}`, 'gw-9');
      await finds('routing_denormalization_consistent', 'bob', 'gw-9');
      await redis.command('SREM', `user_servers:${tag('bob')}`, 'gw-9');
      await redis.command('SREM', `user_servers:${tag('alice')}`, 'gw-2');
      await finds('routing_denormalization_consistent', 'alice', 'lacks gw-2');
    });

    test('presence_derives_from_connections, both ways', async () => {
      await redis.command('HSET', `user_presence:${tag('bob')}`, 'status', 'offline');
      await finds('presence_derives_from_connections', 'bob', 'is offline, but connections live');
      await redis.command('HSET', `user_presence:${tag('carol')}`, 'status', 'online', 'device_count', 0);
      await redis.command('PEXPIRE', `user_presence:${tag('carol')}`, WINDOW_MS);
      await redis.command('HSET', `user_presence:${tag('bob')}`, 'status', 'away');
      await finds('presence_derives_from_connections', 'carol', 'no connection lives');
    });

    test('conn_id_uniqueness', async () => {
      if (redis.nodes) await redis.command('SET', 'connection_user:bob-c0', 'alice', 'PX', WINDOW_MS);
      else await redis.command('SADD', 'server_connections:gw-2', 'bob-c0');
      await finds('conn_id_uniqueness', 'bob-c0');
    });

    test('a lease that is not in the index, and one who is not among the online', async () => {
      await redis.command('ZREM', rest.index('bob'), 'bob-c0:bob');
      await finds('zombie_prevention', rest.index('bob'), 'bob-c0', 'nobody would notice its end');
      await enter('bob', 'bob-c0');
      await redis.command('SREM', rest.online('bob'), 'bob');
      await finds('presence_derives_from_connections', rest.online('bob'), 'lacks', 'bob');
    });

    /** A call of alice and bob as the store leaves it. */
    async function ring(id, state = 'ringing') {
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

    test('a call in order passes, and so does one that has ended', async () => {
      await ring('call-1');
      assert.equal((await check()).code, 0);
      await ring('call-1', 'ended');
      await redis.command('ZREM', rest.call('call-1')[1], 'call-1');
      for (const user of ['alice', 'bob']) await redis.command('DEL', `user:${tag(user)}:call`);
      const { code, stdout } = await check();
      assert.equal(code, 0, stdout);
    });

    test('one_call_a_user', async () => {
      await ring('call-1', 'accepted');
      await redis.command('SET', `user:${tag('bob')}:call`, `${'D'.repeat(26)}call-2`, 'PX', WINDOW_MS);
      await finds('one_call_a_user', 'user:', 'bob', 'call-1');
    });

    test('calls_end, and calls that nobody reaps', async () => {
      await ring('call-1');
      const [, index] = rest.call('call-1');
      await redis.command('ZREM', index, 'call-1');
      await finds('calls_end', index, 'call-1');
      await redis.command('ZADD', index, Date.now() - 20000, 'call-1');
      await finds('zombie_prevention', index, 'call-1');
    });

    test('in_call_by_a_call', async () => {
      await redis.command('HSET', `user_presence:${tag('bob')}`, 'in_call', 1);
      await finds('in_call_by_a_call', 'bob');
    });

    test('a set of the online that says otherwise', async () => {
      const set = redis.nodes ? 'presence:online:{7}' : 'presence:online';
      await redis.command('SADD', set, 'nobody}here');
      await finds('presence_derives_from_connections', set, 'nobody}here');
    });

    test('a gateway that does not listen', async () => {
      await redis.command('HSET', 'gateway:gw-1', 'instance', 'x');
      await redis.command('PEXPIRE', 'gateway:gw-1', WINDOW_MS);
      await finds('multi_device_delivery', 'server:gw-1:deliver');
    });

    test('multi_device_aggregation and multi_device_delivery', async () => {
      await redis.command('HSET', `user_presence:${tag('alice')}`, 'device_count', 3);
      await finds('multi_device_aggregation', 'alice');
      await redis.command('SREM', `user_connections:${tag('alice')}`, 'alice-c0');
      await redis.command('SREM', `user_servers:${tag('alice')}`, 'gw-1');
      await redis.command('HSET', `user_presence:${tag('alice')}`, 'device_count', 1);
      await finds('multi_device_delivery', 'alice-c0');
    });

    test('presence_staleness_bounded', async () => {
      await redis.command('PEXPIRE', `user_presence:${tag('bob')}`, WINDOW_MS + 20000);
      await finds('presence_staleness_bounded', 'bob');
    });

    test('privacy_enforced', async () => {
      await redis.command('SET', `presence_visibility:${tag('bob')}`, 'friends', 'PX', 300000);
      await finds('privacy_enforced', 'bob');
    });

    test('leases that are not reaped', async () => {
      await redis.command('ZADD', 'presence:v_heartbeat', Date.now() - 20000, 'lost');
      await finds('zombie_prevention', 'presence:v_heartbeat', 'lost');
    });

    test('values of another type, and garbage', async () => {
      await redis.command('SET', `user_connections:${tag('mallory')}`, 'x', 'PX', WINDOW_MS);
      await finds('well_formed', 'mallory', 'is a string where a set belongs');
      await redis.command('DEL', `user_connections:${tag('mallory')}`);
      await redis.command('SET', `last_seen:${tag('bob')}`, 'yesterday\u001b[2J');
      await finds('well_formed', 'last_seen:', 'bob');
      await redis.command('DEL', `last_seen:${tag('bob')}`);
      await ring('call-1', 'dreaming');
      await finds('well_formed', 'call-1', 'is not a call');
      await ring('call-1');
      await redis.command('HSET', rest.call('call-1')[0], 'started_at', '1700000000000');
      await finds('well_formed', 'call-1', 'started_at is not a time');
    });

    test('names cannot steer the terminal', async () => {
      const odd = 'x\r\n\u001b[2J 😀 %s';
      await redis.command('SET', `user_servers:${tag(odd)}`, 1);
      const { code, stdout } = await check();
      assert.equal(code, 1);
      assert.ok(stdout.includes('x\\x0d\\x0a\\x1b[2J 😀 %s'), stdout);
    });

    test('a passing inconsistency is no violation', async () => {
      await redis.command('SADD', `user_connections:${tag('bob')}`, 'leaving');
      const checking = patiently('--patience', '3');
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
      const looks = async () => {
        const stats = await Promise.all(nodes.map((node) => node.info('commandstats')));
        return stats.reduce((sum, stat) => sum + Number(/calls=(\d+)/.exec(stat.cmdstat_eval_ro ?? '')?.[1] ?? 0), 0);
      };
      const checking = patiently('--patience', '5');
      while ((await looks()) < rest.keyCount) await sleep(20);
      await redis.command('SREM', `user_connections:${tag('bob')}`, ...dead);
      const { code, stdout, stderr } = await checking;
      assert.equal(code, 2, stdout);
      assert.match(stderr, /100 suspicions, beyond the first 1000, were not checked again/);
    });

    test('without --window the window of the gateways is used', async () => {
      const unsaid = await rollcall('check', '--state', redis.url, '--patience', '0.1');
      assert.equal(unsaid.code, 1);
      assert.match(unsaid.stdout, /routing_ttl_bounded: .* lives longer than 15000 ms/);
      await redis.command('ZADD', 'presence:gateways', Date.now() + WINDOW_MS, 'gw-1');
      await redis.command('HSET', 'gateway:gw-1', 'instance', 'x', 'window_ms', WINDOW_MS);
      await redis.command('PEXPIRE', 'gateway:gw-1', WINDOW_MS);
      const channel = await redis.subscribe('server:gw-1:deliver');
      const { code, stdout } = await rollcall('check', '--state', redis.url, '--patience', '0.1');
      channel.close();
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

    test('the wrong kind of URL says so', async () => {
      const port = redis.port ?? redis.nodes[0].port;
      const other = redis.nodes ? `redis://127.0.0.1:${port}` : `redis-cluster://127.0.0.1:${port}`;
      const { code, stderr } = await rollcall('check', '--state', other);
      assert.equal(code, 2);
      assert.match(stderr, redis.nodes ? /one of a cluster; use redis-cluster/ : /does not run as a cluster/);
    });
  });

test('a failed check ends with 2 and says why, without the password', async () => {
  const [port] = await freePorts(1);
  const gone = await rollcall('check', '--state', `redis://u:s3cret@127.0.0.1:${port}`);
  assert.equal(gone.code, 2);
  assert.match(gone.stderr, new RegExp(`127.0.0.1:${port}: `));
  assert.doesNotMatch(gone.stderr, /s3cret/);
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

test('a TLS server that is gone for a moment does not end the check', async () => {
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
    assert.ok(code === 0 || code === 2, `ended with ${code}: ${stdout}${stderr}`); // 2: while it waited for answers
  } finally {
    proxy.close();
    await redis.stop();
    await rm(directory, { recursive: true, force: true });
  }
});
