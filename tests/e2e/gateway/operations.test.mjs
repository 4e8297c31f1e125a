/** Operations have a port of their own with `ops.listen`; development tokens are for this machine only. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { closeAll, connect, eventually, rest } from '../support/client.mjs';
import { destroyAll, rawConnect, request } from '../support/raw.mjs';
import { freePorts, startRedis } from '../support/redis.mjs';
import { startServer } from '../support/server.mjs';

const OPERATIONS = ['/metrics', '/readyz', '/admin/v1/gateways', '/admin/v1/explain/alice', '/', '/app.js'];

const servers = [];

afterEach(async () => {
  closeAll();
  destroyAll();
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

async function serve(options) {
  const server = await startServer(options);
  servers.push(server);
  return server;
}

async function serveWithOperations(options = {}) {
  const [port] = await freePorts(1);
  const server = await serve({
    ...options,
    args: ['--workers', '2'],
    settings: { 'ops.listen': `127.0.0.1:${port}`, ...options.settings },
  });
  return { server, operations: { url: `http://127.0.0.1:${port}/`, port } };
}

const statusesOf = (server, paths, method, token) =>
  Promise.all(paths.map(async (path) => (await rest(server, method, path, { token })).status));

test('with ops.listen operations are 404 on the public port, and served on their own', async () => {
  const { server, operations } = await serveWithOperations();
  const token = await server.token('root', { scope: 'admin' });
  for (const method of ['GET', 'POST', 'DELETE'])
    assert.deepEqual(await statusesOf(server, OPERATIONS, method, token), OPERATIONS.map(() => 404), method);
  assert.deepEqual(await statusesOf(operations, OPERATIONS, 'GET', token), OPERATIONS.map(() => 200));
  for (const at of [server, operations]) {
    assert.equal((await rest(at, 'GET', '/healthz')).status, 200);
    assert.equal((await rest(at, 'GET', '/openapi.json')).status, 200);
    assert.equal((await rest(at, 'GET', '/asyncapi.json')).status, 200);
  }
  assert.equal((await rest(server, 'GET', '/v1/me', { user: 'alice' })).status, 200);
});

test('without ops.listen operations are on the public port', async () => {
  const server = await serve();
  const token = await server.token('root', { scope: 'admin' });
  assert.deepEqual(await statusesOf(server, OPERATIONS, 'GET', token), OPERATIONS.map(() => 200));
});

test('no page may show operations or the console in a frame', async () => {
  const server = await serve();
  const token = await server.token('root', { scope: 'admin' });
  for (const path of ['/', '/admin/v1/gateways', '/metrics', '/admin/v1/connections'])
    assert.match(
      (await rest(server, 'GET', path, { token })).headers.get('content-security-policy'),
      /frame-ancestors 'none'/,
      path,
    );
});

test('operators see the drain until its end, on new connections too', async () => {
  const { server, operations } = await serveWithOperations({ settings: { 'gateway.shutdown.drain_timeout_seconds': 30 } });
  const clients = await Promise.all(Array.from({ length: 4 }, (_, i) => connect(server, `user${i}`)));
  const token = await server.token('root', { scope: 'admin' });
  assert.equal((await rest(operations, 'POST', '/admin/v1/drain', { token })).status, 202);
  await clients[3].next('connection_closing');
  const { status, body } = await rest(operations, 'GET', '/readyz');
  assert.equal(status, 503);
  assert.equal(body.error.message, 'draining');
  closeAll();
  assert.equal(await server.stop('SIGCONT'), 0);
});

test('the list of gateways counts what is connected now', async () => {
  const server = await serve({ args: ['--workers', '3'] });
  const token = await server.token('root', { scope: 'admin' });
  const count = async () => {
    const { body } = await rest(server, 'GET', '/admin/v1/gateways', { token });
    return body.gateways.reduce((sum, { connections }) => sum + connections, 0);
  };
  const clients = [];
  for (let n = 1; n <= 12; n += 1) {
    clients.push(await connect(server, `user${n}`));
    assert.equal(await count(), n);
  }
  await Promise.all(clients.map((client) => client.close()));
  await eventually(async () => (await count()) === 0, 'nobody is connected');
});

/** Asks for a token with these headers; returns status and headers of the answer. */
async function askForToken(server, headers) {
  const socket = rawConnect(server);
  const body = '{"user":"alice"}';
  socket.send(request('POST', '/dev/token', [`Content-Length: ${body.length}`, ...headers], body));
  return socket.response();
}

test('development tokens are for pages and programs of this machine only', async () => {
  const server = await serve();
  for (const headers of [
    ['Host: localhost'],
    [`Host: 127.0.0.1:${server.port}`],
    [`Host: [::1]:${server.port}`],
    [`Host: localhost:${server.port}`, `Origin: http://localhost:${server.port}`],
    ['Host: localhost', 'Origin: http://127.0.0.1:5173'],
    ['Host: localhost', 'Origin: https://[::1]:5173'],
    ['Host: localhost', 'Content-Type: application/x-www-form-urlencoded'],
  ])
    assert.equal((await askForToken(server, headers)).status, 200, headers.join());
  for (const headers of [
    ['Host: evil.example'],
    [`Host: evil.example:${server.port}`],
    ['Host: localhost.evil.example'],
    ['Host: 127.0.0.1.evil.example'],
    ['Host: localhost', 'Origin: https://evil.example'],
    ['Host: localhost', 'Origin: http://localhost.evil.example'],
    ['Host: localhost', 'Origin: null'],
    ['Host: localhost', 'Origin: http://localhost@evil.example'],
    ['Host: localhost', 'Origin: https://evil.example', 'Content-Type: text/plain'],
  ]) {
    const answer = await askForToken(server, headers);
    assert.equal(answer.status, 403, headers.join());
    assert.match(answer.body.toString(), /tokens are for pages of this machine/);
  }
});

test('a development server lets pages of this machine read its answers, and no others', async () => {
  const server = await serve();
  const allowed = async (origin) =>
    (await fetch(`${server.url}healthz`, { headers: { Origin: origin } })).headers.get('access-control-allow-origin');
  assert.equal(await allowed('http://localhost:5173'), 'http://localhost:5173');
  assert.equal(await allowed('https://evil.example'), null);
});

test('a list of peers that names oneself warns of nothing', async () => {
  const redis = await startRedis();
  try {
    const [port] = await freePorts(1);
    const peers = ['--peer-listen', `127.0.0.1:${port}`, '--peers', `127.0.0.1:${port}`];
    const server = await serve({
      args: ['--workers', '2', '--state', redis.url, ...peers],
      settings: { 'peer.secret': 'a secret of thirty-two bytes, say' },
    });
    await eventually(() => server.log().includes('event=peer_link_open'), 'it has dialled itself');
    assert.equal(await server.stop(), 0);
    assert.doesNotMatch(server.log(), /level=(warn|error)/);
  } finally {
    await redis.stop();
  }
});
