/**
 * The keys of the design in Redis: name, type, time to live, fields and members after each kind of event, on a
 * standalone Redis and on a cluster, in the realtime profile.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, eventually, metric, refusal, rest, setVisibility, sleep, SOON_MS } from '../support/client.mjs';
import { BACKENDS, joinFleet, REALTIME, REALTIME_WINDOW_MS, startFleet } from '../support/fleet.mjs';
import { makeCertificate } from '../support/certificate.mjs';
import { befriend } from '../support/contacts.mjs';
import { freePorts, startRedis } from '../support/redis.mjs';
import { rollcall } from '../support/server.mjs';

const RECORD_MS = 20000;
const FRESH_MS = 300000;
const DAY_MS = 86400000;
const TYPING_MS = 5000;
const HEARTBEAT_MS = 5000;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** On a cluster an id is encoded if its brace would end the hash tag. */
const ENCODED = {
  standalone: (id) => id,
  cluster: (id) => (/\}|%25|%7D/.test(id) ? id.replaceAll('%', '%25').replaceAll('}', '%7D') : id),
};

for (const [kind, { start, key: keyOf, connection: connectionOf }] of Object.entries(BACKENDS))
  describe(`keys on ${kind}`, { concurrency: true }, () => {
    let redis;
    let fleet;
    let one;
    let two;

    const name = ENCODED[kind];
    const key = (prefix, user) => keyOf(prefix, name(user));
    const connection = (user, id) => connectionOf(name(user), id);
    const friendsKey = (user) => key('user', user) + ':friends';
    const connectUser = (server, user, options) => joinFleet(server, user, { heartbeatMs: HEARTBEAT_MS, ...options });
    const type = (of) => redis.command('TYPE', of);
    const members = async (of) => (await redis.command('SMEMBERS', of)).sort();
    const ttl = (of) => redis.command('PTTL', of);
    async function hash(of) {
      const flat = await redis.command('HGETALL', of);
      return Object.fromEntries(flat.flatMap((value, at) => (at % 2 ? [] : [[value, flat[at + 1]]])));
    }

    /** Reads a set or index of all users: one key on a single server, several shards on a cluster. */
    async function everywhere(prefix, read) {
      const names = kind === 'cluster' ? (await redis.keys(`${prefix}:{*`)) : [prefix];
      return (await Promise.all(names.map(read))).flat();
    }
    const usersIn = (prefix) => everywhere(prefix, (of) => redis.command('SMEMBERS', of));
    async function leaseScore(id, user) {
      const scores = await everywhere('presence:v_heartbeat', (of) => redis.command('ZSCORE', of, `${id}:${user}`));
      return Number(scores.find((score) => score !== null));
    }

    /** Checks the type of a key, and that nearly all of its time to live is left. */
    async function assertKey(of, expected, limitMs, leastMs = limitMs / 3) {
      assert.equal(await type(of), expected, of);
      const left = await ttl(of);
      assert.ok(left > leastMs && left <= limitMs, `${of} lives ${left} of ${limitMs} ms`);
    }

    before(async () => {
      redis = await start();
      fleet = await startFleet({ redis, settings: REALTIME });
      [one, two] = fleet.gateways;
    });
    after(async () => {
      closeAll();
      await fleet?.stop();
      await redis?.stop();
    });

    test('connection keys are right with one device, with two, and after the user left', async () => {
      const user = 'come_A';
      const first = await connectUser(one, user, { device: 'phone' });
      const id = first.established.conn_id;
      await assertKey(connection(user, id), 'hash', REALTIME_WINDOW_MS);
      const { connected_at: connected, last_heartbeat: lastHeartbeat, idle: _, ...record } = await hash(connection(user, id));
      assert.deepEqual(record, { user_id: user, device_id: 'phone', server_id: 'gw-001' });
      for (const time of [connected, lastHeartbeat]) {
        assert.match(time, TIME);
        assert.ok(Math.abs(Date.parse(time) - Date.now()) < 5000, time);
      }
      for (const [of, expected] of [
        [key('user_connections', user), [id]],
        [key('user_servers', user), ['gw-001']],
      ]) {
        await assertKey(of, 'set', REALTIME_WINDOW_MS);
        assert.deepEqual(await members(of), expected);
      }
      const isOnGateway = async () => (await members('server_connections:gw-001')).includes(id);
      await eventually(isOnGateway, 'the gateway’s set has the connection');
      await assertKey('server_connections:gw-001', 'set', REALTIME_WINDOW_MS, 0);
      await assertKey(key('user_presence', user), 'hash', RECORD_MS);
      const { version, updated_at: updated, ...presence } = await hash(key('user_presence', user));
      assert.deepEqual(presence, { status: 'online', device_count: '1' });
      assert.match(updated, TIME);
      assert.ok(Number(version) > 0);
      const score = await leaseScore(id, user);
      assert.ok(Math.abs(score - Date.now() - (await ttl(connection(user, id)))) < 1000, `expiry in ms: ${score}`);
      await eventually(async () => (await usersIn('presence:online')).includes(user), 'the user is in the online set');

      const second = await connectUser(two, user);
      const ids = [id, second.established.conn_id].sort();
      assert.deepEqual(await members(key('user_connections', user)), ids);
      assert.deepEqual(await members(key('user_servers', user)), ['gw-001', 'gw-002']);
      assert.equal((await hash(key('user_presence', user))).device_count, '2');

      await first.close();
      await eventually(async () => (await type(connection(user, id))) === 'none', 'the record is removed');
      assert.deepEqual(await members(key('user_connections', user)), [second.established.conn_id]);
      assert.deepEqual(await members(key('user_servers', user)), ['gw-002']);
      await eventually(async () => !(await isOnGateway()), 'the gateway’s set does not have the connection');
      assert.ok(Number.isNaN(await leaseScore(id, user)) || kind === 'cluster');
      const { status, device_count: devices, last_seen: seen } = await hash(key('user_presence', user));
      assert.deepEqual({ status, devices, seen }, { status: 'online', devices: '1', seen: undefined });
      assert.equal(await type(key('last_seen', user)), 'none');

      await second.close();
      await eventually(async () => (await hash(key('user_presence', user))).status === 'offline', 'the record is offline');
      await assertKey(key('user_presence', user), 'hash', RECORD_MS);
      const offline = await hash(key('user_presence', user));
      assert.match(offline.last_seen, TIME);
      assert.equal(offline.device_count, '0');
      assert.equal(await redis.command('GET', key('last_seen', user)), offline.last_seen);
      assert.equal(await ttl(key('last_seen', user)), -1);
      for (const prefix of ['user_connections', 'user_servers']) assert.equal(await type(key(prefix, user)), 'none');
      await eventually(async () => !(await usersIn('presence:online')).includes(user), 'the user is not in the online set');
      await eventually(
        async () => !(await everywhere('presence:v_heartbeat', (of) => redis.command('ZRANGE', of, 0, -1)))
          .some((member) => member.endsWith(`:${user}`)),
        'the user is not in the index',
      );
    });

    test('heartbeats extend every key of a connection', async () => {
      const user = 'keep_A';
      const { established } = await connectUser(two, user);
      const record = connection(user, established.conn_id);
      const at = async () => (await hash(record)).last_heartbeat;
      const [begun, score] = [await at(), await leaseScore(established.conn_id, user)];
      await eventually(async () => (await at()) > begun, 'last_heartbeat is renewed', REALTIME_WINDOW_MS);
      await eventually(
        async () => (await leaseScore(established.conn_id, user)) > score,
        'the index is renewed',
        REALTIME_WINDOW_MS,
      );
      await sleep(REALTIME_WINDOW_MS);
      for (const of of [record, key('user_connections', user), key('user_servers', user), 'server_connections:gw-002'])
        await assertKey(of, of === record ? 'hash' : 'set', REALTIME_WINDOW_MS, 0);
      await assertKey(key('user_presence', user), 'hash', RECORD_MS, RECORD_MS - REALTIME_WINDOW_MS);
    });

    test('presence record shows away, and online again', async () => {
      const user = 'away_A';
      const client = await connectUser(one, user);
      client.send({ type: 'heartbeat', active: false });
      await eventually(async () => (await hash(key('user_presence', user))).status === 'away', 'the record is away');
      assert.equal((await hash(key('user_presence', user))).last_seen, undefined);
      assert.ok((await usersIn('presence:online')).includes(user), 'an away user is still in the online set');
      client.send({ type: 'heartbeat', active: true });
      await eventually(async () => (await hash(key('user_presence', user))).status === 'online', 'the record is online again');
      for (const prefix of ['user_connections', 'user_servers'])
        assert.ok((await ttl(key(prefix, user))) > 0, `${prefix} has a lifetime`);
      const ordered = ['user_leases', 'user_lease_counts'];
      for (const prefix of ordered) assert.equal(await ttl(key(prefix, user)), -2, `one device needs no ${prefix}`);
      await connectUser(two, user);
      for (const prefix of ordered) assert.ok((await ttl(key(prefix, user))) > 0, `${prefix} has a lifetime`);
    });

    test('cached friends and settings have the lifetimes of the design', async () => {
      await befriend(one, 'graph_A', 'graph_B');
      const friend = await connectUser(two, 'graph_B');
      await connectUser(one, 'graph_A');
      await friend.nextChange('graph_A', 'online');
      await assertKey(friendsKey('graph_A'), 'set', DAY_MS);
      assert.deepEqual(await members(friendsKey('graph_A')), ['graph_B']);
      await assertKey(key('presence_visibility', 'graph_A'), 'string', FRESH_MS);
      const shown = () => redis.command('GET', key('presence_visibility', 'graph_A'));
      assert.equal(await shown(), 'contacts_only');
      await setVisibility(one, 'graph_A', 'nobody');
      await eventually(async () => (await friend.query('graph_A'))[0].status === 'unknown', 'the user is hidden');
      await eventually(async () => [null, 'nobody'].includes(await shown()), 'the cached setting is not outdated');
    });

    test('call keys are right while ringing, in the call, and afterwards', async () => {
      await befriend(one, 'call_A', 'call_B');
      const caller = await connectUser(one, 'call_A');
      const callee = await connectUser(two, 'call_B');
      await caller.ask({ type: 'call_request', to: 'call_B', call_id: 'the-call' });
      await callee.next('call_incoming');
      const [record] = await redis.keys('call:*the-call');
      if (kind === 'standalone') assert.equal(record, 'call:the-call');
      assert.equal(await type(record), 'hash');
      assert.ok((await ttl(record)) > 0, 'a call record expires');
      const times = async () => Object.entries(await hash(record)).filter(([field]) => field.endsWith('_at'));
      for (const [field, time] of await times()) assert.match(time, TIME, field);
      assert.deepEqual((await times()).map(([field]) => field).sort(), ['caller_due_at', 'due_at', 'started_at']);
      assert.ok(!(await usersIn('presence:incall')).includes('call_A'), 'not in a call while it rings');
      await callee.ask({ type: 'call_accept', call_id: 'the-call' });
      for (const user of ['call_A', 'call_B']) {
        await eventually(async () => (await usersIn('presence:incall')).includes(user), `${user} is in a call`);
        assert.ok((await usersIn('presence:online')).includes(user), 'a user in a call is online');
        const { status, in_call: inCall } = await hash(key('user_presence', user));
        assert.deepEqual({ status, inCall }, { status: 'online', inCall: '1' });
      }
      await caller.ask({ type: 'call_end', call_id: 'the-call' });
      for (const [field, time] of await times()) assert.match(time, TIME, field);
      const { started_at: started, answered_at: answered, ended_at: ended } = await hash(record);
      assert.deepEqual([started, answered, ended].sort(), [started, answered, ended], 'times are in order');
      for (const user of ['call_A', 'call_B'])
        await eventually(async () => !(await usersIn('presence:incall')).includes(user), `${user} is out of the call`);
    });

    test('typing hash has a field only for a user who types', async () => {
      await makeChat(one, 'typed', 'type_A', 'type_B');
      for (const user of ['type_A', 'type_B']) await setVisibility(one, user, 'everyone');
      const typist = await connectUser(one, 'type_A');
      const reader = await connectUser(two, 'type_B');
      await reader.ask({ type: 'open_chat', chat_id: 'typed' });
      const typing = 'typing:r:typed';
      typist.send({ type: 'typing_start', chat_id: 'typed' });
      await reader.next(({ type: of, typing: now }) => of === 'typing_changed' && now);
      await assertKey(typing, 'hash', TYPING_MS, 0);
      assert.deepEqual(await redis.command('HKEYS', typing), ['type_A']);
      typist.send({ type: 'typing_stop', chat_id: 'typed' });
      await reader.next(({ type: of, typing: now }) => of === 'typing_changed' && !now);
      assert.equal(await type(typing), 'none');
      await sleep(1000); // the rate limit is one update per second
      typist.send({ type: 'typing_start', chat_id: 'typed' });
      await reader.next(({ type: of, typing: now }) => of === 'typing_changed' && now);
      await reader.next(({ type: of, typing: now }) => of === 'typing_changed' && !now);
      await eventually(async () => (await type(typing)) === 'none', 'typing expires');
    });

    test('channels carry their own events, and are subscribed to only while needed', async () => {
      await makeChat(one, 'heard', 'talk_A', 'talk_B');
      for (const user of ['talk_A', 'talk_B']) await setVisibility(one, user, 'everyone');
      const names = ['presence:talk_A', 'chat:heard:presence', 'chat:heard:typing', 'server:gw-002:deliver'];
      const watcher = await connectUser(two, 'talk_B');
      const count = async (channel) => {
        const node = redis.nodes ? await redis.masterOf(channel) : redis;
        const [, listeners] = await node.command('PUBSUB', redis.nodes ? 'SHARDNUMSUB' : 'NUMSUB', channel);
        return listeners;
      };
      for (const channel of names.slice(0, 3)) assert.equal(await count(channel), 0, channel);
      await watcher.subscribe('talk_A');
      await watcher.ask({ type: 'open_chat', chat_id: 'heard' });
      for (const channel of names) await eventually(async () => (await count(channel)) === 1, `${channel} has a subscriber`);

      const channels = await Promise.all(names.map((channel) => redis.subscribe(channel)));
      const talker = await connectUser(one, 'talk_A');
      await talker.ask({ type: 'open_chat', chat_id: 'heard' });
      talker.send({ type: 'typing_start', chat_id: 'heard' });
      talker.send({ type: 'send_message', chat_id: 'heard', client_message_id: '1', body: 'over the bus' });
      await watcher.next('message');
      for (const [at, text] of ['"online"', 'talk_A', 'talk_A', 'over the bus'].entries()) {
        const isPublished = () => channels[at].messages.some((message) => message.includes(text));
        await eventually(isPublished, `a message with ${text} on ${names[at]}`);
        channels[at].close();
      }
      await talker.close();
      await watcher.ask({ type: 'unsubscribe_presence', user_ids: ['talk_A'] });
      await watcher.ask({ type: 'close_chat', chat_id: 'heard' });
      for (const channel of names.slice(0, 3))
        await eventually(async () => (await count(channel)) === 0, `${channel} has no subscriber`);
    });

    test('ids with any character have keys of their own and touch no others', async () => {
      const users = ['k a', 'k:a', 'k', '{k}', 'k}a', '}k{', '%7Dk', '%25k', '😀k', 'k'.padEnd(128, 'x'), 'k*?[a]', 'k\\r\\nDEL k'];
      const devices = ['d', 'd e', 'd:e', '{d}', '😀', 'd\\r\\n', '"d"', 'd'.repeat(128)];
      const guards = ['user_servers:k:a:b', 'user_servers:{k', 'connection:k', 'user_presence:*', 'k', '{k}:x'];
      for (const guard of guards) await redis.command('SET', guard, 'untouched');
      const clients = [];
      for (const [at, user] of users.entries()) {
        const device = devices[at % devices.length];
        const client = await connectUser(at % 2 ? one : two, user, { device });
        clients.push(client);
        const record = await hash(connection(user, client.established.conn_id));
        assert.deepEqual([record.user_id, record.device_id], [user, device]);
        assert.deepEqual(await members(key('user_connections', user)), [client.established.conn_id]);
        assert.deepEqual(await members(key('user_servers', user)), [at % 2 ? 'gw-001' : 'gw-002']);
      }
      const names = new Set(users.map((user) => key('user_servers', user)));
      assert.equal(names.size, users.length, 'no two users share a key');
      for (const client of clients) await client.close();
      for (const user of users)
        await eventually(async () => (await type(key('user_connections', user))) === 'none', `${user} has no connections`);
      for (const guard of guards) {
        assert.equal(await redis.command('GET', guard), 'untouched', guard);
        await redis.command('DEL', guard);
      }
    });

    test('metrics show the state of Redis', async () => {
      const listener = await connectUser(one, 'count_A');
      await connectUser(one, 'count_A');
      await listener.subscribe('count_B');
      const at = (of) => metric(one, of);
      await eventually(async () => (await at('redis_pubsub_channels')) >= 3, 'all channels are counted', 2 * SOON_MS);
      await eventually(async () => (await at('redis_connected_clients')) >= 4, 'two connections of each gateway are counted');
      await eventually(
        async () => (await at('routing_keys_count')) > (await at('gateway_connections_active')),
        'routing entries of connections and users are counted',
      );
      for (const of of ['redis_available', 'gateway_redis_available', 'state_available']) assert.equal(await at(of), 1, of);
      assert.ok((await at('redis_keyspace_hits')) > 0);
    });

    test('ids with control characters never reach Redis', async () => {
      const token = await one.token('plain');
      for (const device of ['a\r\nDEL b', '\0', 'a\u007f', 'a\nb']) {
        const url = new URL(`v1/ws?device_id=${encodeURIComponent(device)}`, one.url).href.replace(/^http/, 'ws');
        const { status } = await refusal(url, [], { headers: { Authorization: `Bearer ${token}` } });
        assert.equal(status, 400, JSON.stringify(device));
      }
      for (const chat of ['a\r\nb', '\0']) {
        const body = { chat_id: chat, members: ['plain'] };
        assert.equal((await rest(one, 'POST', '/v1/chats', { token, body })).status, 400, JSON.stringify(chat));
      }
      const odd = (await redis.keys('*')).filter((of) => /[\0-\x1f\x7f]/.test(of));
      assert.deepEqual(odd, []);
    });
  });

test('Redis with TLS that asks for certificates, a user and a database number serves a fleet', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-redis-tls-'));
  await makeCertificate(directory, 'redis');
  const [certificate, secret] = ['certificate.pem', 'key.pem'].map((name) => join(directory, name));
  const [port] = await freePorts(1);
  const tls = ['--tls-port', port, '--tls-auth-clients', 'yes', '--tls-ca-cert-file', certificate];
  const redis = await startRedis({ args: [...tls, '--tls-cert-file', certificate, '--tls-key-file', secret].map(String) });
  await redis.command('ACL', 'SETUSER', 'app', 'on', '>pass-word', '~*', '&*', '+@all');
  await redis.command('ACL', 'SETUSER', 'default', '-@write', '-@scripting');
  const state = `rediss://app:pass-word@127.0.0.1:${port}/3`;
  const own = { 'state.certificate_file': certificate, 'state.key_file': secret };
  const settings = { ...REALTIME, 'state.ca_file': certificate, ...own };
  const fleet = await startFleet({ redis: { url: state }, gateways: ['gw-tls'], settings });
  t.after(async () => {
    closeAll();
    await fleet.stop();
    await redis.stop();
    await rm(directory, { recursive: true, force: true });
  });
  const [server] = fleet.gateways;
  const { established } = await connect(server, 'alice');
  assert.deepEqual(await redis.keys('*'), [], 'nothing in another database');
  await redis.command('SELECT', 3);
  assert.deepEqual(await redis.command('SMEMBERS', 'user_connections:alice'), [established.conn_id]);
  assert.doesNotMatch(server.log(), /pass-word/);
  const { code, stdout } = await rollcall(
    'check', '--state', state, '--ca-file', certificate, '--certificate', certificate, '--key', secret);
  assert.equal(code, 0, stdout);
  const refused = await rollcall('check', '--state', state, '--ca-file', certificate);
  assert.equal(refused.code, 2, 'without a certificate Redis refuses');
});
