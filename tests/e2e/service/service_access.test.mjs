/** Who may use /v1/service: scope `service` and no other. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

let server;
let backend;

before(async () => {
  server = await startServer();
  backend = await server.token('backend', { scope: 'other service more' });
});
after(() => server.stop());
afterEach(closeAll);

const presenceOf = (users, token = backend) =>
  rest(server, 'GET', `/v1/service/presence?users=${users}`, { token });

/** The route table, so that a new route is covered at once. */
async function serviceRoutes() {
  const source = await readFile(
    new URL('../../../src/api/service/service_routes.c', import.meta.url),
    'utf8',
  );
  const rows = [...source.matchAll(/\{HTTP1_(\w+),\s*"([^"]+)",\s*REST_(\w+),/g)];
  return rows.map(([, method, path, access]) => ({
    method,
    path: path.replace(/\{\w+\}/g, '1'),
    access,
  }));
}

test('every route of the service API needs scope service and no other scope will do', async () => {
  const routes = await serviceRoutes();
  const user = await server.token('nosy');
  const others = await server.token('nosy', { scope: 'admin deliver services serv ice' });
  assert.ok(routes.length > 0, 'the table is found');
  for (const { method, path, access } of routes) {
    assert.equal(access, 'SERVICE', path);
    assert.equal((await rest(server, method, path)).status, 401, path);
    for (const token of [user, others]) {
      const { status, body } = await rest(server, method, path, { token });
      assert.equal(status, 403, path);
      assert.equal(body.error.code, 'FORBIDDEN');
    }
  }
});

test('scope service opens neither the admin interface nor delivery by user', async () => {
  for (const [method, path] of [
    ['GET', '/admin/v1/gateways'],
    ['POST', '/v1/users/nosy/deliver'],
  ])
    assert.equal((await rest(server, method, path, { token: backend })).status, 403, path);
});

test('the application sees presence that users hide', async () => {
  const hidden = await server.token('hidden');
  await connect(server, 'hidden');
  await rest(server, 'PATCH', '/v1/me', { token: hidden, body: { presence_visibility: 'nobody' } });
  const asUser = await rest(server, 'GET', '/v1/presence/hidden', { token: await server.token('nosy') });
  assert.equal(asUser.body.status, 'unknown');
  const { status, body } = await presenceOf('hidden,nobody-knows');
  assert.equal(status, 200);
  assert.deepEqual(
    body.presences.map(({ user_id: user, status: shown, reason }) => [user, shown, reason]),
    [
      ['hidden', 'online', undefined],
      ['nobody-knows', 'offline', undefined],
    ],
  );
  assert.ok(body.presences[0].version > 0);
});

test('a bad list of users is refused', async () => {
  const many = Array.from({ length: 101 }, (_, index) => `u${index}`).join(',');
  for (const users of ['', 'a,,b', 'x'.repeat(129), 'a%07b', many])
    assert.equal((await presenceOf(users)).status, 400, users.slice(0, 20));
});
