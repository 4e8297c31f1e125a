/**
 * All kinds of Redis outages, with two gateways, a ledger and links between them: connected clients stay and get
 * every message once, new clients get 503, and afterwards everything is as before, without spurious presence
 * changes.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { connect, eventually, metric, setVisibility, sleep } from '../support/client.mjs';
import {
  assertInvariants,
  BACKENDS,
  isHealthy,
  isReady,
  joinFleet,
  QUICK,
  QUICK_WINDOW_MS,
  refusedConnect,
  sendUntilAcked,
  startFleet,
} from '../support/fleet.mjs';
import { startFaultProxy } from '../support/fault_proxy.mjs';
import { freePorts, startRedis } from '../support/redis.mjs';
import { ROLLCALL_BIN } from '../support/server.mjs';

const NOTICED_MS = 30000; // time limit for noticing an outage or its end
const OUTAGE_MS = QUICK_WINDOW_MS + 1000;

/** Faults and how they end. Each gateway reaches Redis through a proxy of its own. */
const FAULTS = {
  'killed, and back empty': {
    inject: ({ redis }) => redis.kill(),
    repair: ({ redis }) => redis.start(),
  },
  paused: {
    inject: ({ redis }) => redis.pause(),
    repair: ({ redis }) => redis.resume(),
  },
  'too slow to be of use': {
    inject: ({ proxies }) => proxies.forEach((proxy) => proxy.slow(4000)),
    repair: ({ proxies }) => proxies.forEach((proxy) => proxy.restore()),
  },
  'cut off': {
    inject: ({ proxies }) => proxies.forEach((proxy) => proxy.cut()),
    repair: ({ proxies }) => proxies.forEach((proxy) => proxy.restore()),
  },
  'cut off without a reset': {
    inject: ({ proxies }) => proxies.forEach((proxy) => proxy.stall()),
    repair: ({ proxies }) => proxies.forEach((proxy) => proxy.restore()),
  },
  'out of memory': {
    async inject({ redis }) {
      await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
      await redis.command('CONFIG', 'SET', 'maxmemory', 1);
    },
    repair: ({ redis }) => redis.command('CONFIG', 'SET', 'maxmemory', 0),
  },
  'a read-only replica': {
    async inject({ redis }) {
      const [unusedPort] = await freePorts(1);
      await redis.command('REPLICAOF', '127.0.0.1', unusedPort);
    },
    repair: ({ redis }) => redis.command('REPLICAOF', 'NO', 'ONE'),
  },
  'behind another password': {
    async inject({ redis }) {
      await redis.command('CONFIG', 'SET', 'requirepass', 'changed');
      for (const type of ['normal', 'pubsub']) await redis.command('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    },
    repair: ({ redis }) => redis.command('CONFIG', 'SET', 'requirepass', ''),
  },
};

/** Starts two gateways, each with its proxy, and connects alice to one and bob to both; they subscribe to each other. */
async function setUp(t, start = startRedis) {
  const redis = await start();
  const proxies = redis.port ? [await startFaultProxy(redis.port), await startFaultProxy(redis.port)] : [];
  const names = ['gw-001', 'gw-002'];
  const stateOf = proxies.length
    ? (name) => `redis://127.0.0.1:${proxies[names.indexOf(name)].port}`
    : undefined;
  const fleet = await startFleet({ redis, gateways: names, settings: QUICK, stateOf });
  const [one, two] = fleet.gateways;
  const clients = [];
  t.after(async () => {
    for (const client of clients) client.terminate();
    await fleet.stop();
    for (const proxy of proxies) proxy.close();
    await redis.stop();
  });
  for (const user of ['alice', 'bob']) await setVisibility(one, user, 'everyone');
  const alice = await joinFleet(one, 'alice');
  const bobs = [await joinFleet(one, 'bob'), await joinFleet(two, 'bob')];
  clients.push(alice, ...bobs);
  await alice.subscribe('bob');
  for (const bob of bobs) await bob.subscribe('alice');
  await makeChat(one, 'talk', 'alice', 'bob');
  await sendUntilAcked(alice, 'talk', 'before');
  for (const bob of bobs) await bob.next('message');
  const token = await one.token('newcomer');
  return { redis, proxies, fleet, servers: [one, two], alice, bobs, clients, token };
}

const bodies = ({ alice, bobs }) => [alice, ...bobs].map((client) => client.bodies());
const changeCounts = ({ clients }) => clients.map((client) => client.changes().length);

/** Without Redis, gateways are healthy but not ready, refuse new clients, and broadcast messages. */
async function assertServedWithoutRedis(world) {
  const { servers, token, alice, bobs } = world;
  for (const server of servers) {
    await eventually(async () => !(await isReady(server)), 'the outage is noticed', NOTICED_MS);
    assert.ok(await isHealthy(server), 'still healthy');
    for (const name of ['redis_available', 'state_available'])
      await eventually(async () => (await metric(server, name)) === 0, `${name} is 0`, NOTICED_MS);
    const { status, retryAfter } = await refusedConnect(server, token);
    assert.equal(status, 503);
    assert.ok(Number(retryAfter) > 0, `Retry-After: ${retryAfter}`);
  }
  const [presence] = await alice.query('bob');
  assert.equal(presence.stale, true);
  await sendUntilAcked(alice, 'talk', 'during, from alice');
  await sendUntilAcked(bobs[1], 'talk', 'during, from bob');
  await eventually(
    () => alice.bodies().length === 1 && bobs[0].bodies().length === 3 && bobs[1].bodies().length === 2,
    'messages arrive by broadcast',
  );
}

/** Messages still arrive after every lease in Redis has expired. */
async function assertStillServed({ alice, bobs }) {
  await sendUntilAcked(alice, 'talk', 'later, from alice');
  await sendUntilAcked(bobs[1], 'talk', 'later, from bob');
  await eventually(
    () => bobs.every((bob) => bob.bodies().includes('later, from alice')) && alice.bodies().includes('later, from bob'),
    'messages still arrive',
  );
  const [presence] = await alice.query('bob');
  assert.equal(presence.stale, true);
  assert.notEqual(presence.status, 'offline', 'a user who cannot be looked up is not offline');
}

/** After the outage, gateways are ready, users are registered, and messages are routed again. */
async function assertRegisteredAgain(world, key) {
  const { servers, redis, bobs, alice, clients } = world;
  const repairedMs = Date.now();
  for (const server of servers) await eventually(() => isReady(server), 'the gateway is ready again', NOTICED_MS);
  const routes = (user) => redis.command('SMEMBERS', key('user_servers', user)).catch(() => []);
  await eventually(
    async () =>
      (await routes('bob')).sort().join() === 'gw-001,gw-002' && (await routes('alice')).join() === 'gw-001',
    'everybody is registered again',
  );
  const took = Date.now() - repairedMs;
  assert.ok(took < NOTICED_MS, `registered after ${took} ms`);
  const newcomer = await connect(servers[1], 'newcomer');
  clients.push(newcomer);
  newcomer.changes = () => [];
  await sendUntilAcked(alice, 'talk', 'after');
  for (const bob of bobs) await eventually(() => bob.bodies().includes('after'), 'the message arrives');
  const [presence] = await alice.query('bob');
  assert.equal(presence.status, 'online');
  assert.notEqual(presence.stale, true);
}

/** No client was disconnected or got a presence change, and every message came once to every device. */
async function assertUndisturbed(world) {
  await sleep(QUICK_WINDOW_MS + 1000); // a spurious event would come now
  assert.deepEqual(changeCounts(world), world.clients.map(() => 0), JSON.stringify(world.clients.map((c) => c.changes())));
  for (const { socket } of world.clients) assert.equal(socket.readyState, 1, 'still connected');
  for (const received of bodies(world))
    assert.equal(new Set(received).size, received.length, `each message comes once: ${received}`);
  await assertInvariants(world.redis, QUICK_WINDOW_MS);
}

describe('Redis unavailable degrades to broadcast routing; Redis recovery rebuilds state', { concurrency: 3 }, () => {
  for (const [name, { inject, repair }] of Object.entries(FAULTS))
    test(`${name}: clients stay and all state is rebuilt`, async (t) => {
      const world = await setUp(t);
      await inject(world);
      await assertServedWithoutRedis(world);
      await sleep(OUTAGE_MS);
      await assertStillServed(world);
      await repair(world);
      await assertRegisteredAgain(world, BACKENDS.standalone.key);
      await assertUndisturbed(world);
    });

  for (const [name, inject, repair] of [
    ['paused', 'pause', 'resume'],
    ['killed, and back empty', 'kill', 'start'],
  ])
    test(`a whole cluster ${name}: clients stay and all state is rebuilt`, async (t) => {
      const world = await setUp(t, BACKENDS.cluster.start);
      await world.redis.each(inject);
      await assertServedWithoutRedis(world);
      await sleep(OUTAGE_MS);
      await assertStillServed(world);
      await world.redis.each(repair);
      await assertRegisteredAgain(world, BACKENDS.cluster.key);
      await assertUndisturbed(world);
    });
});

describe('Redis loses its data', { concurrency: 2 }, () => {
  for (const [kind, { start, key }] of Object.entries(BACKENDS))
    test(`FLUSHALL under load loses no message and disturbs no client, on ${kind}`, async (t) => {
      const world = await setUp(t, start);
      const { redis, alice, bobs } = world;
      let sent = 0;
      for (let round = 0; round < 3; round += 1) {
        for (let n = 0; n < 5; n += 1) {
          await sendUntilAcked(alice, 'talk', `load ${(sent += 1)}`);
          if (n === 2) await (redis.flush?.() ?? redis.command('FLUSHALL'));
        }
        await sleep(1000);
      }
      await assertRegisteredAgain(world, key);
      await assertUndisturbed(world);
      const expected = sent + 2; // before and after
      for (const bob of bobs) {
        const { messages } = await bob.ask({ type: 'sync_request', chat_id: 'talk', after_sequence: 0 });
        assert.equal(messages.length, expected, 'nothing acknowledged is lost');
      }
    });

  for (const [kind, { start, key }] of Object.entries(BACKENDS))
    test(`a second device right after FLUSHALL causes no presence change, on ${kind}`, async (t) => {
      const redis = await start();
      const fleet = await startFleet({ redis, gateways: ['gw-001'], settings: QUICK });
      const [one] = fleet.gateways;
      const clients = [];
      const connectUser = async (user) => {
        clients.push(await joinFleet(one, user));
        return clients.at(-1);
      };
      t.after(async () => {
        for (const client of clients) client.terminate();
        await fleet.stop();
        await redis.stop();
      });
      for (const user of ['alice', 'bob']) await setVisibility(one, user, 'everyone');
      await makeChat(one, 'talk', 'alice', 'bob');
      const bob = await connectUser('bob');
      await bob.ask({ type: 'open_chat', chat_id: 'talk' });
      await connectUser('alice');
      await bob.nextChange('alice', 'online');
      const devices = () => redis.command('HGET', key('user_presence', 'alice'), 'device_count').catch(() => null);
      for (let round = 2; round < 6; round += 1) {
        await (redis.flush?.() ?? redis.command('FLUSHALL'));
        await connectUser('alice');
        await eventually(async () => (await devices()) === String(round), 'all devices are registered again');
      }
      await bob.settle();
      assert.deepEqual(bob.changes().map(({ status }) => status), ['online']);
    });

  test('a quick restart without data disturbs no client', async (t) => {
    const world = await setUp(t);
    await world.redis.kill();
    await world.redis.start();
    await assertRegisteredAgain(world, BACKENDS.standalone.key);
    await assertUndisturbed(world);
  });

  test('a user whose lease is being registered again is not reported offline', async (t) => {
    const { redis, servers, alice } = await setUp(t);
    await alice.ask({ type: 'open_chat', chat_id: 'talk' });
    const [before] = await alice.query('bob');
    await redis.kill();
    for (const server of servers) await eventually(async () => !(await isReady(server)), 'the outage is noticed', NOTICED_MS);
    alice.messages.length = 0;
    await redis.start();
    const seen = [before];
    await eventually(async () => {
      seen.push(...(await alice.query('bob')));
      return !seen.at(-1).stale && seen.at(-1).version > before.version;
    }, 'bob is registered again');
    const { presences } = await alice.next('chat_snapshot');
    seen.push(presences.find(({ user_id: user }) => user === 'bob'));
    for (const [index, { status, version }] of seen.entries()) {
      assert.equal(status, 'online');
      assert.ok(index === 0 || version >= seen[index - 1].version, `version ${version} after ${seen[index - 1]?.version}`);
    }
  });
});

describe('Redis is unreachable for one gateway', { concurrency: 3 }, () => {
  test('a gateway cut off for less than a lease disturbs no client', async (t) => {
    const world = await setUp(t);
    world.proxies[1].cut();
    await sendUntilAcked(world.alice, 'talk', 'to the gateway cut off');
    await sendUntilAcked(world.bobs[1], 'talk', 'from the gateway cut off');
    await eventually(() => world.bobs[1].bodies().includes('to the gateway cut off'), 'the message arrives by a link');
    await eventually(() => world.alice.bodies().includes('from the gateway cut off'), 'the message arrives by broadcast');
    world.proxies[1].restore();
    await assertRegisteredAgain(world, BACKENDS.standalone.key);
    await assertUndisturbed(world);
  });

  test('a gateway cut off for longer than a lease is not ready, and recovers', async (t) => {
    const world = await setUp(t);
    const [one, two] = world.servers;
    world.proxies[1].cut();
    await eventually(async () => !(await isReady(two)), 'the outage is noticed', NOTICED_MS);
    await sleep(OUTAGE_MS);
    assert.ok(await isReady(one));
    await eventually(
      async () => (await metric(one, 'gateway_instances_healthy')) === 1,
      'the first gateway knows that the store has lost the other',
    );
    await sendUntilAcked(world.bobs[1], 'talk', 'from the gateway cut off');
    await eventually(() => world.alice.bodies().includes('from the gateway cut off'), 'the message arrives by broadcast');
    await sendUntilAcked(world.alice, 'talk', 'to the gateway cut off');
    await eventually(() => world.bobs[1].bodies().includes('to the gateway cut off'), 'the message arrives by a link');
    world.proxies[1].restore();
    await assertRegisteredAgain(world, BACKENDS.standalone.key);
    await assertUndisturbed(world); // bob's other device and alice were on the first gateway
  });
});

describe('a gateway started without Redis', { concurrency: 3 }, () => {
  test('is healthy but not ready, and becomes ready when Redis starts', async (t) => {
    const [port] = await freePorts(1);
    const fleet = await startFleet({ redis: { url: `redis://127.0.0.1:${port}` }, gateways: [], settings: QUICK });
    let redis;
    t.after(async () => {
      await fleet.stop();
      await redis?.stop();
    });
    const server = await fleet.start('gw-001', { ready: false });
    assert.ok(await isHealthy(server));
    assert.ok(!(await isReady(server)));
    assert.equal((await refusedConnect(server, await server.token('early'))).status, 503);
    redis = await startRedis({ port });
    await eventually(() => isReady(server), 'the gateway is ready');
    const client = await connect(server, 'late');
    assert.equal(client.established.server_id, 'gw-001');
    client.terminate();
  });

  test('exits with 0 on SIGTERM before Redis was reached', async (t) => {
    const [port] = await freePorts(1);
    const directory = await mkdtemp(join(tmpdir(), 'rollcall-e2e-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const child = spawn(ROLLCALL_BIN, [
      ...['serve', '--dev', '--listen', '127.0.0.1:0', '--data-dir', directory],
      ...['--state', `redis://127.0.0.1:${port}`],
    ]);
    const exited = once(child, 'exit');
    let log = '';
    child.stderr.on('data', (text) => {
      log += text;
    });
    await eventually(() => log.includes('problem=unreachable'), 'an attempt to reach Redis is logged');
    child.kill('SIGTERM');
    assert.deepEqual(await exited, [0, null], log);
  });

  test('waits for the record of its dead predecessor to expire, then claims the id', async (t) => {
    const redis = await startRedis();
    const proxy = await startFaultProxy(redis.port);
    const fleet = await startFleet({ redis, gateways: [], settings: QUICK });
    t.after(async () => {
      await fleet.stop();
      proxy.close();
      await redis.stop();
    });
    proxy.cut();
    const state = `redis://127.0.0.1:${proxy.port}`;
    const successor = await fleet.start('gw-001', { ready: false, state });
    const record = { instance: 'dead', connections: 1, started_at: '2026-01-31T10:00:00.000Z', draining: 0 };
    await redis.command('HSET', 'gateway:gw-001', ...Object.entries(record).flat());
    await redis.command('PEXPIRE', 'gateway:gw-001', QUICK_WINDOW_MS);
    proxy.restore();
    await eventually(() => isReady(successor), 'the gateway is ready');
    assert.notEqual(await redis.command('HGET', 'gateway:gw-001', 'instance'), 'dead');
    const client = await connect(successor, 'late');
    client.terminate();
  });

  const PASSWORD = 'open-sesame';
  for (const [what, makeUrl, logged] of [
    ['a wrong password', ({ port }) => `redis://:wrong@127.0.0.1:${port}`, /password/],
    ['a wrong cluster flag', ({ port }) => `redis-cluster://127.0.0.1:${port}`, /cluster/],
  ])
    test(`logs ${what} without the password`, async (t) => {
      const redis = await startRedis({ args: ['--requirepass', PASSWORD] });
      const state = what.includes('flag')
        ? makeUrl(redis).replace('://', `://:${PASSWORD}@`)
        : makeUrl(redis);
      const fleet = await startFleet({ redis, gateways: [], settings: QUICK });
      t.after(async () => {
        await fleet.stop();
        await redis.stop();
      });
      const server = await fleet.start('gw-001', { ready: false, state });
      await eventually(() => logged.test(server.log()), 'the log names the problem');
      for (const secret of ['wrong@', PASSWORD]) assert.ok(!server.log().includes(secret), server.log());
      assert.ok(!(await isReady(server)));
    });
});
