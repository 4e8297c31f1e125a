/** The files of deploy/, unchanged, with a real redis-server, a real HAProxy and the program itself. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connect, eventually, rest, sleep } from '../support/client.mjs';
import { isReady, joinFleet, keepAlive, QUICK, startFleet } from '../support/fleet.mjs';
import { rawConnect } from '../support/raw.mjs';
import { startFaultProxy } from '../support/fault_proxy.mjs';
import { freePorts, startRedis } from '../support/redis.mjs';
import { rollcall } from '../support/server.mjs';

const deployed = (name) => fileURLToPath(new URL(`../../../deploy/${name}`, import.meta.url));

/** Redis keeps these for itself, and lowers `maxclients` where the system allows fewer descriptors. */
const REDIS_DESCRIPTORS_RESERVED = 32;

/** The hard limit of this process and those it starts. */
const descriptorsMax = () => Number(/^Max open files +\d+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))[1]);

test('redis.conf gives a real Redis the settings of the design', async (t) => {
  const redis = await startRedis({ file: deployed('redis.conf') });
  t.after(() => redis.stop());
  const setting = async (name) => (await redis.command('CONFIG', 'GET', name))[1];
  assert.equal(await setting('maxmemory'), String(2 * 1024 ** 3));
  assert.equal(await setting('maxmemory-policy'), 'volatile-ttl');
  assert.equal(await setting('save'), '');
  assert.equal(await setting('appendonly'), 'no');
  assert.equal(await setting('maxclients'), String(Math.min(10000, descriptorsMax() - REDIS_DESCRIPTORS_RESERVED)));
  assert.equal(await setting('timeout'), '0');
});

test('gateway.yaml and ledger.yaml are valid', async () => {
  const gateway = await rollcall('serve', '--config', deployed('fleet/gateway.yaml'), '--print-config');
  assert.equal(gateway.code, 0, gateway.stderr);
  assert.match(gateway.stdout, /remote:\/\/ledger\.internal:7300/);
  const fanout = await rollcall('fanout', '--config', deployed('fleet/gateway.yaml'), '--print-config');
  assert.equal(fanout.code, 0, fanout.stderr);
  const ledger = await rollcall('ledger', '--config', deployed('fleet/ledger.yaml'), '--print-config');
  assert.equal(ledger.code, 0, ledger.stderr);
});

/** Starts HAProxy with deploy/haproxy.cfg in front of two gateways. */
async function startHaproxy(t, servers) {
  const [port] = await freePorts(1);
  const [one, two] = servers.map(({ port: at }) => `127.0.0.1:${at}`);
  const [opsOne, opsTwo] = servers.map(({ operations }) => String(operations.port));
  const child = spawn('haproxy', ['-db', '-f', deployed('haproxy.cfg')], {
    env: {
      PATH: `${process.env.PATH}:/usr/sbin`,
      ROLLCALL_FRONT: `127.0.0.1:${port}`,
      ROLLCALL_GW_1: one,
      ROLLCALL_GW_2: two,
      ROLLCALL_OPS_1: opsOne,
      ROLLCALL_OPS_2: opsTwo,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    log += text;
  });
  t.after(async () => {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  });
  const front = { url: `http://127.0.0.1:${port}/`, port, log: () => log };
  const isHealthy = () => fetch(new URL('/healthz', front.url)).then(({ ok }) => ok, () => false);
  await eventually(isHealthy, 'HAProxy forwards requests');
  return front;
}

test('HAProxy passes WebSockets, and sends no new clients to a gateway without Redis', async (t) => {
  const redis = await startRedis();
  const proxy = await startFaultProxy(redis.port);
  const stateOf = (name) => (name === 'gw-002' ? `redis://127.0.0.1:${proxy.port}` : redis.url);
  const fleet = await startFleet({ redis, settings: QUICK, stateOf, operations: true });
  const clients = [];
  t.after(async () => {
    for (const client of clients) client.terminate();
    await fleet.stop();
    proxy.close();
    await redis.stop();
  });
  const [, two] = fleet.gateways;
  const front = await startHaproxy(t, fleet.gateways);

  const connectUser = async (n) => {
    const client = keepAlive(await connect(front, `user-${n}`), 1000);
    clients.push(client);
    return client;
  };
  for (let n = 0; n < 8; n += 1) await connectUser(n);
  const counts = new Map();
  for (const { established } of clients)
    counts.set(established.server_id, (counts.get(established.server_id) ?? 0) + 1);
  assert.deepEqual([...counts].sort(), [['gw-001', 4], ['gw-002', 4]], 'spread evenly');
  assert.equal((await rest(front, 'GET', '/v1/me', { user: 'user-0' })).status, 200);

  proxy.cut();
  await eventually(async () => !(await isReady(two.operations)), 'gw-002 is not ready');
  await sleep(3000); // longer than HAProxy's two checks
  for (let n = 8; n < 12; n += 1) assert.equal((await connectUser(n)).established.server_id, 'gw-001');
  for (const { socket } of clients) assert.equal(socket.readyState, 1, 'nobody lost a connection');

  proxy.restore();
  await eventually(() => isReady(two.operations), 'gw-002 is ready');
  await sleep(3000);
  const newcomers = await Promise.all([12, 13, 14, 15].map(connectUser));
  assert.ok(newcomers.some(({ established }) => established.server_id === 'gw-002'), 'gw-002 gets new clients again');
  const direct = await joinFleet(two, 'direct');
  clients.push(direct);
});

test('HAProxy publishes no operations, logs no tokens, and waits for no unfinished request', async (t) => {
  const redis = await startRedis();
  const fleet = await startFleet({ redis, settings: QUICK, operations: true });
  t.after(async () => {
    await fleet.stop();
    await redis.stop();
  });
  const front = await startHaproxy(t, fleet.gateways);
  const unfinished = rawConnect(front);
  unfinished.send('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');

  const [one] = fleet.gateways;
  const token = await one.token('root', { scope: 'admin' });
  for (const path of ['/metrics', '/readyz', '/admin/v1/gateways', '/admin/v1/drain'])
    assert.equal((await rest(front, 'GET', path, { token })).status, 404, path);
  assert.equal((await rest(one.operations, 'GET', '/admin/v1/gateways', { token })).status, 200);

  assert.equal((await rest(front, 'GET', `/v1/me?access_token=${token}`)).status, 200);
  await eventually(() => front.log().includes('GET /v1/me '), 'the request is logged');
  assert.doesNotMatch(front.log(), /access_token|eyJ/);
  assert.equal((await unfinished.response({ timeoutMs: 30000 })).status, 408);
});
