/** Drain: every client is notified and closed in turn, and the process exits with 0. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import {
  closeAll,
  connect,
  deliver,
  devToken,
  eventually,
  openSocket,
  rest,
  setVisibility,
  within,
} from '../support/client.mjs';
import { EngineSession, EngineSocket } from '../support/engine.mjs';
import { destroyAll, rawConnect, request } from '../support/raw.mjs';
import { startServer } from '../support/server.mjs';

const DRAIN_SECONDS = 3;
/** Delay that a busy machine may add to any time. */
const SLACK_MS = 15000;

const servers = [];

afterEach(async () => {
  closeAll();
  destroyAll();
  await Promise.all(servers.splice(0).map((server) => server.stop('SIGKILL')));
});

async function serve(drainSeconds = DRAIN_SECONDS, args = ['--workers', '2']) {
  const settings = { 'gateway.shutdown.drain_timeout_seconds': drainSeconds, 'limits.connections_per_user': 0 };
  const server = await startServer({ args, settings });
  servers.push(server);
  return server;
}

async function connectMany(server, count) {
  const token = await devToken(server, 'crowd');
  return Promise.all(Array.from({ length: count }, () => connect(server, 'crowd', { token })));
}

const exit = (server, ms) =>
  within(ms, new Promise((resolve) => server.child.once('exit', resolve)), 'exit');

const waitUntilRefused = (server) =>
  eventually(
    () =>
      rawConnect(server).connected.then(
        () => false,
        () => true,
      ),
    'new connections are refused',
  );

/** For every connection: its `connection_closing`, its close code, and the time of both. */
function closings(clients) {
  const startedMs = Date.now();
  return Promise.all(
    clients.map(async (client) => {
      const closing = await client.next('connection_closing');
      const notifiedMs = Date.now() - startedMs;
      const { code } = await client.ended((DRAIN_SECONDS + 1) * 1000 + SLACK_MS);
      return { closing, notifiedMs, code, closedMs: Date.now() - startedMs };
    }),
  );
}

function checkSpread(all) {
  for (const { closing, code } of all) {
    assert.equal(closing.reason, 'draining');
    assert.equal(closing.reconnect_allowed, true);
    assert.ok(closing.reconnect_after_ms >= 0);
    assert.equal(code, 1001);
  }
  const delays = all.map(({ closing }) => closing.reconnect_after_ms);
  assert.ok(new Set(delays).size > all.length / 4, 'reconnects are spread');
  assert.ok(Math.max(...delays) - Math.min(...delays) > 1000, 'over more than a second');
  const times = all.map(({ closedMs }) => closedMs);
  assert.ok(Math.max(...times) - Math.min(...times) > 1000, 'closings are spread');
  const lastNotifiedMs = Math.max(...all.map(({ notifiedMs }) => notifiedMs));
  assert.ok(lastNotifiedMs < Math.max(...times), 'all are notified before the last is closed');
}

test('SIGTERM closes two hundred connections in turn, and the process exits with 0 in time', async () => {
  const server = await serve();
  const clients = await connectMany(server, 200);
  const all = closings(clients);
  const startedMs = Date.now();
  const exited = exit(server, DRAIN_SECONDS * 1000 + SLACK_MS);
  process.kill(server.pid, 'SIGTERM');
  await waitUntilRefused(server);
  checkSpread(await all);
  assert.equal(await exited, 0);
  assert.ok(Date.now() - startedMs < DRAIN_SECONDS * 1000 + SLACK_MS);
});

test('a client that waits for its close is still served, and sees the others leave', async () => {
  const server = await serve();
  await setVisibility(server, 'crowd', 'everyone');
  const token = await server.token('watcher');
  const watchers = await Promise.all(
    Array.from({ length: 20 }, () => connect(server, 'watcher', { token })),
  );
  for (const watcher of watchers) await watcher.subscribe('crowd');
  const [only] = await connectMany(server, 1);
  for (const watcher of watchers) await watcher.nextChange('crowd', 'online');
  process.kill(server.pid, 'SIGTERM');
  for (const watcher of watchers) await watcher.next('connection_closing');
  const open = () => watchers.filter(({ socket }) => socket.readyState === 1);
  await eventually(() => open().length < 20, 'the first watcher is closed');
  const remaining = open().at(-1);
  assert.equal((await remaining.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  assert.equal((await only.ended()).code, 1001);
  assert.equal(await exit(server, DRAIN_SECONDS * 1000 + SLACK_MS), 0);
});

test('/readyz reports the drain on an open connection; new connections are refused', async () => {
  const server = await serve(DRAIN_SECONDS, ['--workers', '1']);
  const [balancer, admin] = [rawConnect(server), rawConnect(server)];
  balancer.send(request('GET', '/readyz'));
  assert.equal((await balancer.response()).status, 200);
  admin.send(request('GET', '/healthz'));
  assert.equal((await admin.response()).status, 200);
  const clients = await connectMany(server, 10);
  const exited = exit(server, DRAIN_SECONDS * 1000 + SLACK_MS);
  process.kill(server.pid, 'SIGTERM');
  for (const client of clients) await client.next('connection_closing');
  await waitUntilRefused(server);
  balancer.send(request('GET', '/readyz'));
  const { status, headers, body } = await balancer.response();
  assert.equal(status, 503);
  assert.equal(headers.connection, 'close');
  assert.match(body, /draining/);
  admin.send(request('GET', '/healthz'));
  assert.equal((await admin.response()).status, 200, 'healthy until the end');
  assert.equal(await exited, 0);
});

test('an administrator’s drain works like SIGTERM', async () => {
  const server = await serve();
  const clients = await connectMany(server, 40);
  const all = closings(clients);
  const exited = exit(server, DRAIN_SECONDS * 1000 + SLACK_MS);
  const token = await server.token('root', { scope: 'admin' });
  const { status } = await rest(server, 'POST', '/admin/v1/drain', { token });
  assert.equal(status, 202);
  await waitUntilRefused(server);
  checkSpread(await all);
  assert.equal(await exited, 0);
});

test('a drain that is ordered again stays one drain, and one signal does not cut it short', async () => {
  const server = await serve();
  const clients = await connectMany(server, 40);
  const all = closings(clients);
  const exited = exit(server, DRAIN_SECONDS * 1000 + SLACK_MS);
  const token = await server.token('root', { scope: 'admin' });
  const sockets = [rawConnect(server), rawConnect(server)];
  await Promise.all(sockets.map(({ connected }) => connected));
  for (const socket of sockets) {
    socket.send(request('POST', '/admin/v1/drain', [`Authorization: Bearer ${token}`]));
    assert.equal((await socket.response()).status, 202);
  }
  process.kill(server.pid, 'SIGTERM');
  checkSpread(await all);
  assert.equal(await exited, 0);
});

test('a drain without sessions ends at once, even with idle keep-alive connections', async () => {
  const server = await serve(30);
  const idle = rawConnect(server);
  idle.send(request('GET', '/healthz'));
  assert.equal((await idle.response()).status, 200);
  const startedMs = Date.now();
  assert.equal(await server.stop(), 0);
  assert.ok(Date.now() - startedMs < SLACK_MS);
});

test('a client that does not answer the close frame does not delay the drain', async () => {
  const server = await serve(1);
  const stubborn = await connect(server, 'stubborn');
  stubborn.socket.pause();
  const token = await server.token('operator', { scope: 'deliver' });
  const unread = 'x'.repeat(60000);
  for (let n = 0; n < 10; n += 1) await deliver(server, token, 'stubborn', unread);
  const startedMs = Date.now();
  assert.equal(await server.stop(), 0);
  assert.ok(Date.now() - startedMs < 3000 + SLACK_MS);
});

test('an unfinished upgrade does not delay the drain', async () => {
  const server = await serve(1);
  const { sid } = await EngineSession.start(server);
  const socket = new EngineSocket(server, { sid });
  await socket.opened;
  socket.socket.pause();
  assert.equal(await server.stop(), 0);
  socket.terminate();
});

test('a half-sent request does not delay the drain', async () => {
  const server = await serve(1);
  rawConnect(server).send('GET /healthz HTT');
  await rest(server, 'GET', '/healthz');
  const startedMs = Date.now();
  assert.equal(await server.stop(), 0);
  assert.ok(Date.now() - startedMs < 1000 + SLACK_MS);
});

test('a second signal ends the process at once', async () => {
  for (const signals of [
    ['SIGTERM', 'SIGTERM'],
    ['SIGINT', 'SIGINT'],
  ]) {
    const server = await serve(60);
    const clients = await connectMany(server, 10);
    const exited = exit(server, SLACK_MS);
    process.kill(server.pid, signals[0]);
    for (const client of clients) await client.next('connection_closing');
    assert.equal(server.child.exitCode, null);
    process.kill(server.pid, signals[1]);
    await exited;
  }
});

test('a drain answers or closes connections during their handshake', async () => {
  const server = await serve(1);
  const token = await server.token('late');
  const url = `${server.url.replace('http', 'ws')}v1/ws`;
  const headers = { Authorization: `Bearer ${token}` };
  const attempts = Array.from({ length: 50 }, () => openSocket(url, [], { headers }));
  assert.equal(await server.stop(), 0);
  await Promise.all(attempts.map((attempt) => attempt.ended()));
});
