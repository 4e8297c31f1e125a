/** Several workers, and several processes on one port, behave as one server. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import {
  closeAll,
  connect,
  deliver,
  eventually,
  metric,
  rest,
  setVisibility,
} from '../support/client.mjs';
import { startServer } from '../support/server.mjs';
import { jwks, makeKey, makeToken } from '../support/tokens.mjs';

const WORKERS = ['gw-001-0', 'gw-001-1', 'gw-001-2'];
/** The kernel chooses the worker; this many connections reach each of a few. */
const TRIES_MAX = 200;

let server;
let admin;
let deliverer;

before(async () => {
  server = await startServer({ args: ['--node-id', 'gw-001', '--workers', '3'] });
  admin = await server.token('root', { scope: 'admin' });
  deliverer = await server.token('backend', { scope: 'deliver' });
});
after(async () => assert.equal(await server.stop(), 0));
afterEach(closeAll);

/** Opens one connection of the user on each of these gateways; surplus connections are closed. */
async function connectToEach(at, user, gateways, options) {
  const found = new Map();
  for (let tries = 0; tries < TRIES_MAX && found.size < gateways.length; tries += 1) {
    const client = await connect(at, user, options);
    const { server_id: gateway } = client.established;
    assert.ok(gateways.includes(gateway), gateway);
    if (found.has(gateway)) client.terminate();
    else found.set(gateway, client);
  }
  assert.equal(found.size, gateways.length, 'a connection on each gateway');
  return gateways.map((gateway) => found.get(gateway));
}

test('each worker is a gateway of its own, and the admin API lists them all', async () => {
  const token = await server.token('all');
  const clients = await connectToEach(server, 'all', WORKERS, { token });
  const list = async () => (await rest(server, 'GET', '/admin/v1/gateways', { token: admin })).body;
  await eventually(
    async () => (await list()).gateways.every(({ connections }) => connections === 1),
    'one connection on each gateway',
  );
  const { gateways } = await list();
  assert.deepEqual(gateways.map(({ server_id: id }) => id).sort(), WORKERS);
  const { body } = await rest(server, 'GET', '/admin/v1/connections?user=all', { token: admin });
  assert.deepEqual(body.connections.map(({ server_id: id }) => id).sort(), WORKERS);
  assert.equal(clients.length, 3);
});

test('presence changes reach subscribers on all workers', async () => {
  await setVisibility(server, 'mover', 'everyone');
  const token = await server.token('watch');
  const watchers = await connectToEach(server, 'watch', WORKERS, { token });
  for (const watcher of watchers) await watcher.subscribe('mover');
  const moverToken = await server.token('mover');
  for (let round = 0; round < 5; round += 1) {
    const mover = await connect(server, 'mover', { token: moverToken });
    for (const watcher of watchers) await watcher.nextChange('mover', 'online');
    mover.send({ type: 'heartbeat', active: false });
    for (const watcher of watchers) await watcher.nextChange('mover', 'away');
    await mover.close();
    const versions = [];
    for (const watcher of watchers)
      versions.push((await watcher.nextChange('mover', 'offline')).version);
    assert.equal(new Set(versions).size, 1);
  }
  for (const watcher of watchers) {
    await watcher.settle();
    assert.deepEqual(watcher.messages, [], 'each change comes once');
  }
});

test('devices on different workers count as one user', async () => {
  await setVisibility(server, 'spread', 'everyone');
  const watcher = await connect(server, 'spread-watcher');
  await watcher.subscribe('spread');
  const token = await server.token('spread');
  const devices = [await connect(server, 'spread', { token })];
  await watcher.nextChange('spread', 'online');
  devices.push(...(await connectToEach(server, 'spread', WORKERS, { token })));
  for (const device of devices.slice(0, -1)) {
    device.send({ type: 'heartbeat', active: false });
    await device.settle();
  }
  await watcher.settle();
  assert.deepEqual(watcher.messages, []);
  devices.at(-1).send({ type: 'heartbeat', active: false });
  await watcher.nextChange('spread', 'away');
  for (const device of devices) device.terminate();
  await watcher.nextChange('spread', 'offline');
});

test('a delivery reaches the devices on all workers, in order', async () => {
  const token = await server.token('fan');
  const devices = await connectToEach(server, 'fan', WORKERS, { token });
  for (let n = 0; n < 30; n += 1)
    assert.equal(await deliver(server, deliverer, 'fan', { n, text: 'x'.repeat(1000) }), 3);
  for (const device of devices)
    for (let n = 0; n < 30; n += 1) assert.equal((await device.next('delivery')).data.n, n);
});

test('an administrator closes a connection, whichever worker has it', async () => {
  const token = await server.token('kick');
  const clients = await connectToEach(server, 'kick', WORKERS, { token });
  for (const client of clients) {
    const path = `/admin/v1/connections/${client.established.conn_id}`;
    assert.equal((await rest(server, 'DELETE', path, { token: admin })).status, 204);
    assert.equal((await client.next('connection_closing')).reason, 'admin');
    assert.equal((await client.ended()).code, 4005);
  }
});

test('a change of settings takes effect on every worker', async () => {
  await setVisibility(server, 'hider', 'everyone');
  await connect(server, 'hider');
  const token = await server.token('seek');
  const seekers = await connectToEach(server, 'seek', WORKERS, { token });
  for (const seeker of seekers) await seeker.subscribe('hider');
  await setVisibility(server, 'hider', 'nobody');
  for (const seeker of seekers) await seeker.nextChange('hider', 'unknown');
  await setVisibility(server, 'hider', 'everyone');
  for (const seeker of seekers) await seeker.nextChange('hider', 'online');
});

test('metrics are summed over all workers', async () => {
  await eventually(
    async () => (await metric(server, 'gateway_connections_active')) === 0,
    'no active connections',
  );
  const token = await server.token('count');
  await connectToEach(server, 'count', WORKERS, { token });
  await eventually(
    async () => (await metric(server, 'gateway_connections_active')) === 3,
    'three active connections',
  );
});

test('after a storm of connects, changes and disconnects everybody is offline', async () => {
  const users = Array.from({ length: 8 }, (_, n) => `storm-${n}`);
  const tokens = await Promise.all(users.map((user) => server.token(user)));
  await Promise.all(users.map((user) => setVisibility(server, user, 'everyone')));
  const watcher = await connect(server, 'storm-watcher');
  await watcher.subscribe(...users);
  await Promise.all(
    users.map(async (user, n) => {
      for (let round = 0; round < 8; round += 1) {
        const client = await connect(server, user, { token: tokens[n] });
        client.send({ type: 'subscribe_presence', user_ids: users });
        client.send({ type: 'heartbeat', active: round % 2 === 0 });
        await client.settle();
        if (round % 2) await client.close();
        else client.terminate();
      }
    }),
  );
  await eventually(
    async () => (await watcher.query(...users)).every(({ status }) => status === 'offline'),
    'everybody is offline',
  );
  await watcher.settle();
  const last = new Map();
  for (const { user_id: user, version, status } of watcher.messages) {
    assert.ok(version > (last.get(user)?.version ?? 0), `${user}: versions grow`);
    last.set(user, { version, status });
  }
  for (const user of users) assert.equal(last.get(user).status, 'offline', user);
});

test('two processes share a port, and one keeps serving when the other stops', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-workers-'));
  const keysFile = join(directory, 'keys.json');
  const key = makeKey('ES256', 'shared');
  const token = makeToken(key, 'roamer');
  await writeFile(keysFile, jwks(key));
  const serve = (node, port) =>
    startServer({
      dev: false,
      port,
      settings: { 'gateway.share_port': true },
      args: ['--jwt-keys', keysFile, '--node-id', node, '--workers', '1'],
    });
  const one = await serve('gw-a', 0);
  const two = await serve('gw-b', one.port);
  try {
    const clients = await connectToEach(one, 'roamer', ['gw-a', 'gw-b'], { token });
    assert.equal(await one.stop(), 0);
    assert.equal((await clients[0].ended()).code, 1001);
    assert.equal((await clients[1].ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
    const next = await connect(two, 'roamer', { token });
    assert.equal(next.established.server_id, 'gw-b');
  } finally {
    closeAll();
    await one.stop();
    await two.stop();
    await rm(directory, { recursive: true, force: true });
  }
});
