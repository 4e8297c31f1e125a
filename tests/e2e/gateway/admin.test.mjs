/** The operator's interface: gateways, connections, explanations, deliveries, metrics, log. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, deliver, eventually, metric, nested, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

let server;
let admin;
let deliverer;

before(async () => {
  server = await startServer({
    args: ['--node-id', 'gw-001', '--workers', '1'],
    settings: { 'limits.connections_per_user': 0 },
  });
  admin = await server.token('root', { scope: 'admin' });
  deliverer = await server.token('backend', { scope: 'other deliver more' });
});
after(() => server.stop());
afterEach(closeAll);

const asAdmin = (method, path) => rest(server, method, `/admin/v1/${path}`, { token: admin });

test('every admin route needs its scope: 401 without a token, 403 without the scope', async () => {
  const user = await server.token('nosy');
  const similar = await server.token('nosy', { scope: 'administrator adm admin-ish delivery' });
  const routes = [
    ['GET', '/admin/v1/gateways'],
    ['GET', '/admin/v1/connections?user=nosy'],
    ['DELETE', '/admin/v1/connections/01ARZ3NDEKTSV4RRFFQ69G5FAV'],
    ['POST', '/admin/v1/drain'],
    ['GET', '/admin/v1/explain/nosy'],
    ['POST', '/admin/v1/users/nosy/revoke'],
    ['POST', '/v1/users/nosy/deliver'],
  ];
  for (const [method, path] of routes) {
    assert.equal((await rest(server, method, path)).status, 401, path);
    for (const token of [user, similar]) {
      const { status, body } = await rest(server, method, path, { token });
      assert.equal(status, 403, path);
      assert.equal(body.error.code, 'FORBIDDEN');
    }
  }
  const crossed = await rest(server, 'GET', '/admin/v1/gateways', { token: deliverer });
  assert.equal(crossed.status, 403);
});

test('the list of gateways shows the connections of each', async () => {
  await connect(server, 'one');
  await connect(server, 'two');
  const list = async () => (await asAdmin('GET', 'gateways')).body.gateways;
  const AT_ONCE_MS = 300; // well under the interval of periodic work
  await eventually(async () => (await list())[0].connections === 2, 'two connections are listed', AT_ONCE_MS);
  const [gateway, ...others] = await list();
  assert.deepEqual(others, []);
  assert.equal(gateway.server_id, 'gw-001');
});

test('the list of a user’s connections shows device, gateway and times', async () => {
  const phone = await connect(server, 'mia', { device: 'phone' });
  const other = await connect(server, 'mia');
  const { body } = await asAdmin('GET', 'connections?user=mia');
  assert.equal(body.connections.length, 2);
  const listedPhone = body.connections.find(({ conn_id: id }) => id === phone.established.conn_id);
  assert.equal(listedPhone.user_id, 'mia');
  assert.equal(listedPhone.device_id, 'phone');
  assert.equal(listedPhone.server_id, 'gw-001');
  assert.match(listedPhone.connected_at, RFC3339);
  assert.match(listedPhone.last_heartbeat, RFC3339);
  const listedOther = body.connections.find(({ conn_id: id }) => id === other.established.conn_id);
  assert.ok(listedOther.device_id.length > 0);
  assert.equal(body.truncated, false);
  assert.deepEqual((await asAdmin('GET', 'connections?user=nobody')).body, {
    connections: [],
    truncated: false,
  });
  assert.equal((await asAdmin('GET', 'connections')).status, 400);
  await phone.close();
  await eventually(
    async () => (await asAdmin('GET', 'connections?user=mia')).body.connections.length === 1,
    'the closed connection is not listed',
  );
});

test('the list of connections is limited, and marked when it is truncated', async () => {
  const LISTED_MAX = 256;
  const token = await server.token('crowd');
  const clients = await Promise.all(
    Array.from({ length: LISTED_MAX + 1 }, () => connect(server, 'crowd', { token })),
  );
  const { body } = await asAdmin('GET', 'connections?user=crowd');
  assert.equal(body.connections.length, LISTED_MAX);
  assert.equal(body.truncated, true);
  await Promise.all(clients.map((client) => client.close()));
});

test('an unusual device id is accepted, an invalid one refused', async () => {
  await connect(server, 'dev', { device: 'Zoë’s phone / 😀' });
  const { body } = await asAdmin('GET', 'connections?user=dev');
  assert.equal(body.connections[0].device_id, 'Zoë’s phone / 😀');
  for (const device of ['', 'x'.repeat(129), 'a\nb']) {
    const { status } = await rest(
      server,
      'GET',
      `/v1/ws?device_id=${encodeURIComponent(device)}&access_token=${admin}`,
    );
    assert.ok(status === 400 || status === 426, `${status} for ${device}`);
  }
});

test('an administrator closes a connection with 4005 and a reason; others stay', async () => {
  const [one, two] = [await connect(server, 'kicked'), await connect(server, 'kicked')];
  const { status } = await asAdmin('DELETE', `connections/${one.established.conn_id}`);
  assert.ok(status === 204 || status === 200 || status === 202, String(status));
  const closing = await one.next('connection_closing');
  assert.equal(closing.reason, 'admin');
  assert.equal(typeof closing.reconnect_allowed, 'boolean');
  assert.equal((await one.ended()).code, 4005);
  assert.equal((await two.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  for (const id of [one.established.conn_id, '01ARZ3NDEKTSV4RRFFQ69G5FAV', 'nonsense']) {
    const again = await asAdmin('DELETE', `connections/${id}`);
    assert.equal(again.status, 404, id);
    assert.equal(again.body.error.code, 'NOT_FOUND');
  }
});

test('explain shows why a user has its status', async () => {
  const eva = await connect(server, 'eva', { device: 'desk' });
  await eva.ask({ type: 'heartbeat', active: false });
  const { status, body } = await asAdmin('GET', 'explain/eva');
  assert.equal(status, 200);
  assert.equal(body.user_id, 'eva');
  assert.equal(body.leases.length, 1);
  assert.equal(body.leases[0].conn_id, eva.established.conn_id);
  assert.equal(body.leases[0].device_id, 'desk');
  assert.equal(body.presence.status, 'away');
  assert.match(body.merge, /idle/);
  assert.deepEqual(body.settings, {
    presence_visibility: 'contacts_only',
    last_seen_visibility: 'contacts_only',
    group_adds: 'everyone',
    read_receipts: true,
  });
  const statuses = body.last_transitions.map(({ status: to }) => to);
  assert.deepEqual(statuses.sort(), ['away', 'online']);
  for (const { at, cause, version } of body.last_transitions) {
    assert.match(at, RFC3339);
    assert.ok(cause.length > 0 && version > 0);
  }
  const nobody = await asAdmin('GET', `explain/${encodeURIComponent('who / ever')}`);
  assert.equal(nobody.body.presence.status, 'offline');
  assert.deepEqual(nobody.body.leases, []);
});

test('any JSON is delivered to all of a user’s devices, and to nobody else', async () => {
  const devices = [await connect(server, 'inge'), await connect(server, 'inge')];
  const bystander = await connect(server, 'other');
  const values = [{ a: [1, 2.5, null, '😀"\\'], deep: { er: true } }, [], 'text', 7, null, false];
  values.push(nested(30));
  for (const value of values) {
    assert.equal(await deliver(server, deliverer, 'inge', value), 2);
    for (const device of devices)
      assert.deepEqual(await device.next('delivery'), { type: 'delivery', data: value });
  }
  assert.equal(await deliver(server, deliverer, 'nobody', {}), 0);
  const deeper = { token: deliverer, body: nested(31) };
  assert.equal((await rest(server, 'POST', '/v1/users/inge/deliver', deeper)).status, 400);
  await bystander.settle();
  assert.deepEqual(bystander.messages, []);
});

test('deliveries arrive in order, however many and however large', async () => {
  const reader = await connect(server, 'reader');
  const text = 'y'.repeat(50000);
  for (let n = 0; n < 60; n += 1) await deliver(server, deliverer, 'reader', { n, text });
  for (let n = 0; n < 60; n += 1) assert.equal((await reader.next('delivery')).data.n, n);
});

test('a delivery that is not JSON is refused', async () => {
  for (const body of ['', '{', '{} {}', '{"a":}', '\u0000']) {
    const response = await fetch(`${server.url}v1/users/inge/deliver`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${deliverer}` },
      body,
    });
    assert.equal(response.status, 400, body);
    assert.equal((await response.json()).error.code, 'INVALID_MESSAGE');
  }
});

test('metrics are in the text format of Prometheus', async () => {
  const response = await fetch(`${server.url}metrics`);
  assert.match(response.headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  for (const line of text.trimEnd().split('\n'))
    assert.match(line, /^(# (HELP|TYPE) \S+ .+|[a-z_0-9]+(\{.*\})? \S+)$/);
});

test('metrics count connections and heartbeats', async () => {
  const active = () => metric(server, 'gateway_connections_active');
  const opened = await metric(server, 'gateway_connections_opened');
  await eventually(async () => (await active()) === 0, 'no active connections');
  const client = await connect(server, 'counted');
  const beats = await metric(server, 'heartbeat_received');
  await client.ask({ type: 'heartbeat' });
  assert.equal(await metric(server, 'heartbeat_received'), beats + 1);
  assert.equal(await active(), 1);
  assert.equal(await metric(server, 'gateway_connections_opened'), opened + 1);
  await client.close();
  await eventually(async () => (await active()) === 0, 'no active connections again');
});

test('health and readiness are served separately', async () => {
  for (const path of ['/healthz', '/readyz']) {
    const { status, body } = await rest(server, 'GET', path);
    assert.equal(status, 200);
    assert.equal(typeof body.status, 'string');
  }
});

test('the log contains events, but never a token or a body', async () => {
  await rest(server, 'GET', '/v1/me', { token: `${deliverer}x` });
  await connect(server, 'logged');
  await deliver(server, deliverer, 'logged', { secret: 'swordfish' });
  const log = server.log();
  assert.match(log, /event=serving/);
  assert.doesNotMatch(log, /swordfish|eyJ/);
});
