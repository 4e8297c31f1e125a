/**
 * docs/openapi.json describes the HTTP interface: it is well formed, lists exactly the server's routes,
 * and the running server answers as described.
 *
 * A new route needs a path in docs/openapi.json and a row in PROBES below.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { closeAll, connect, eventually, refusal } from '../support/client.mjs';
import { follow, problems, resolve, typeOf } from '../support/schema.mjs';
import { startServer } from '../support/server.mjs';

const METHODS = ['get', 'put', 'post', 'patch', 'delete'];
/** Described, but not in the route table: embedded files. */
const ASSETS = ['get /openapi.json', 'get /asyncapi.json'];
/** In the route table only to be refused with Engine.IO's errors. */
const REFUSED = ['PUT /socket.io/', 'PATCH /socket.io/', 'DELETE /socket.io/'];
const BODY_BYTES_MAX = 1024;
const LIST_BYTES_MAX = 4096;

const read = (path) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');

let document;
let server;
let bob;
const tokens = {};

before(async () => {
  server = await startServer({
    settings: {
      'gateway.http.max_body_bytes': BODY_BYTES_MAX,
      'gateway.http.max_list_body_bytes': LIST_BYTES_MAX,
      'debug.echo': true,
    },
  });
  document = await (await fetch(`${server.url}openapi.json`)).json();
  tokens.alice = await server.token('alice');
  tokens.bob = await server.token('bob');
  tokens.root = await server.token('root', { scope: 'admin deliver' });
  tokens.backend = await server.token('backend', { scope: 'service' });
  bob = await connect(server, 'bob', { device: 'phone-1' });
});
after(async () => {
  closeAll();
  await server.stop();
});

/** All operations; the name is like `get /v1/me`. */
function operations() {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in item).map((method) => ({
      name: `${method} ${path}`,
      path,
      ...item[method],
    })),
  );
}

/** Yields every object and array within, with its path. */
function* walk(at, path = '#') {
  if (at === null || typeof at !== 'object') return;
  yield [path, at];
  for (const [key, value] of Object.entries(at)) yield* walk(value, `${path}/${key}`);
}

function assertMatches(schema, value, what) {
  assert.deepEqual([...problems(document, schema, value)], [], what);
}

test('the server serves docs/openapi.json', async () => {
  assert.deepEqual(document, JSON.parse(await read('docs/openapi.json')));
  assert.equal(document.openapi, '3.1.0');
});

test('the described version is the version of the build', async () => {
  const [, version] = /version: '([^']+)'/.exec(await read('meson.build'));
  assert.equal(document.info.version, version);
});

test('every reference resolves, and every definition is used', () => {
  const used = new Set();
  for (const [path, { $ref }] of walk(document)) {
    if (typeof $ref !== 'string') continue;
    assert.match($ref, /^#\/components\//, path);
    assert.ok(resolve(document, { $ref }), `${path}: ${$ref} does not exist`);
    used.add($ref);
  }
  const { securitySchemes, ...components } = document.components;
  assert.deepEqual(Object.keys(securitySchemes), ['bearer', 'access_token']);
  for (const [kind, members] of Object.entries(components))
    for (const name of Object.keys(members))
      assert.ok(used.has(`#/components/${kind}/${name}`), `${kind}/${name} is not used`);
});

test('every operation has a summary, a tag, security and described responses', () => {
  const tags = document.tags.map(({ name }) => name);
  const ids = operations().map(({ operationId }) => operationId);
  assert.deepEqual(ids, [...new Set(ids)], 'every operationId is unique');
  for (const operation of operations()) {
    const { name, summary, responses, security = document.security } = operation;
    assert.equal(typeof summary, 'string', `${name} has a summary`);
    assert.equal(operation.tags?.length, 1, `${name} has one tag`);
    assert.ok(tags.includes(operation.tags[0]), `${name}: its tag is declared`);
    for (const scheme of security.flatMap(Object.keys))
      assert.ok(scheme in document.components.securitySchemes, `${name}: ${scheme}`);
    for (const [status, response] of Object.entries(responses)) {
      assert.match(status, /^[1-5]\d\d$/, name);
      assert.ok(follow(document, response).description, `${name} ${status} is described`);
    }
    if (security.length > 0) assert.ok('401' in responses, `${name} may get 401`);
  }
});

test('the declared path parameters are those in the path', () => {
  for (const { name, path, parameters = [] } of operations()) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
    const declared = parameters.map((parameter) => follow(document, parameter));
    for (const parameter of declared) {
      assert.ok(parameter.schema, `${name}: ${parameter.name} has a schema`);
      if (parameter.in === 'path') assert.equal(parameter.required, true);
    }
    const names = declared.filter((one) => one.in === 'path').map((parameter) => parameter.name);
    assert.deepEqual(names, inPath, name);
  }
});

test('every example matches its schema', () => {
  let count = 0;
  for (const [path, { schema, example }] of walk(document)) {
    if (schema === undefined || example === undefined || typeOf(schema) !== 'object') continue;
    assertMatches(schema, example, path);
    count += 1;
  }
  assert.ok(count > 20);
});

test('the described routes and their access are those of the server', async () => {
  const source = await read('src/api/api_routes.c');
  const table = source.slice(source.indexOf('ROUTES[] = {'), source.indexOf('ROUTE_COUNT'));
  const service = await read('src/api/service/service_routes.c');
  const transport = await read('src/socketio/socketio_resource.c');
  const every = [...(table + service + transport).matchAll(/\{HTTP1_(\w+),\s*"([^"]+)",\s*REST_(\w+),/g)];
  const rows = every.filter(([, method, path]) => !REFUSED.includes(`${method} ${path}`));
  const routes = rows.map(([, method, path]) => `${method.toLowerCase()} ${path}`);
  assert.ok(routes.length > 10, 'the table is found');
  const described = operations().map(({ name }) => name);
  assert.deepEqual(described.filter((name) => !ASSETS.includes(name)).sort(), routes.sort());

  for (const [, method, path, access] of rows) {
    const { security = document.security } = document.paths[path][method.toLowerCase()];
    const scopes = security.flatMap((one) => Object.values(one).flat());
    const scope = { ADMIN: 'admin', DELIVER: 'deliver', SERVICE: 'service' }[access];
    if (access === 'OPEN' && path !== '/v1/ws') assert.deepEqual(security, [], path);
    else assert.equal(security.length, 2, path);
    assert.deepEqual([...new Set(scopes)], scope ? [scope] : [], path);
  }
});

test('the described error codes are those of the server', async () => {
  const source = await read('src/protocol/message.c');
  const codes = [...source.matchAll(/\[ERROR_\w+\] = "(\w+)"/g)].map(([, code]) => code);
  assert.ok(codes.length > 10, 'the table is found');
  assert.deepEqual(document.components.schemas.ErrorCode.enum, codes);
});

/** Requests to send: operation, path, user of the token, body, expected status. */
const PROBES = [
  ['get /healthz', 'healthz', null, undefined, 200],
  ['get /readyz', 'readyz', null, undefined, 200],
  ['get /metrics', 'metrics', null, undefined, 200],
  ['get /openapi.json', 'openapi.json', null, undefined, 200],
  ['get /asyncapi.json', 'asyncapi.json', null, undefined, 200],
  ['post /dev/token', 'dev/token', null, { user: 'alice' }, 200],
  ['post /dev/token', 'dev/token', null, { user: '' }, 400],
  ['get /v1/ws', 'v1/ws', 'alice', undefined, 426],
  ['get /v1/echo', 'v1/echo', null, undefined, 426],
  ['get /socket.io/', 'socket.io/?EIO=4&transport=polling', null, undefined, 200],
  ['get /socket.io/', 'socket.io/?EIO=3&transport=polling', null, undefined, 400],
  ['post /socket.io/', 'socket.io/?EIO=4&transport=polling&sid=nobody', null, '40', 400],
  ['get /v1/presence/{user}', 'v1/presence/alice', 'alice', undefined, 200],
  ['get /v1/presence/{user}', 'v1/presence/bob', 'alice', undefined, 200],
  ['get /v1/presence/{user}', 'v1/presence/a%07b', 'alice', undefined, 400],
  ['get /v1/presence/{user}', 'v1/presence/bob', null, undefined, 401],
  ['get /v1/presence', 'v1/presence?users=alice,bob,carol', 'alice', undefined, 200],
  ['get /v1/presence', 'v1/presence', 'alice', undefined, 400],
  ['get /v1/presence', 'v1/presence?users=bob', null, undefined, 401],
  ['post /v1/service/deliver', 'v1/service/deliver', 'backend', { to: { users: ['bob'] }, event: 'e', data: 1 }, 200],
  ['post /v1/service/deliver', 'v1/service/deliver', 'backend', { to: { everyone: true }, data: null }, 200],
  ['post /v1/service/deliver', 'v1/service/deliver', 'backend', { to: { chat: 'none' }, data: null }, 404],
  ['post /v1/service/deliver', 'v1/service/deliver', 'backend', { to: {}, data: 1 }, 400],
  ['post /v1/service/deliver', 'v1/service/deliver', 'backend', { data: 'x'.repeat(LIST_BYTES_MAX) }, 413],
  ['post /v1/service/deliver', 'v1/service/deliver', null, {}, 401],
  ['post /v1/service/deliver', 'v1/service/deliver', 'alice', {}, 403],
  ['post /v1/service/chats', 'v1/service/chats', 'backend', { chat_id: 'served', members: ['alice', 'bob'] }, 201],
  ['post /v1/service/chats', 'v1/service/chats', 'backend', { chat_id: 'served', members: ['alice', 'bob'] }, 200],
  ['post /v1/service/chats', 'v1/service/chats', 'backend', { chat_id: 'served', members: ['dave'] }, 409],
  ['post /v1/service/chats', 'v1/service/chats', 'backend', {}, 400],
  ['put /v1/service/chats/{chat}/members/{user}', 'v1/service/chats/served/members/erin', 'backend', undefined, 204],
  ['put /v1/service/chats/{chat}/members/{user}', 'v1/service/chats/none/members/erin', 'backend', undefined, 404],
  ['delete /v1/service/chats/{chat}/members/{user}', 'v1/service/chats/served/members/erin', 'backend', undefined, 204],
  ['post /v1/service/chats/{chat}/messages', 'v1/service/chats/served/messages', 'backend', { client_message_id: 's', body: 'b' }, 201],
  ['post /v1/service/chats/{chat}/messages', 'v1/service/chats/none/messages', 'backend', { client_message_id: 's', body: 'b' }, 404],
  ['get /v1/chats/{chat}/messages', 'v1/chats/served/messages', 'alice', undefined, 200],
  ['delete /v1/service/chats/{chat}/messages/{sequence}', 'v1/service/chats/served/messages/1', 'backend', undefined, 204],
  ['delete /v1/service/chats/{chat}/messages/{sequence}', 'v1/service/chats/served/messages/9', 'backend', undefined, 404],
  ['get /v1/service/online', 'v1/service/online?limit=1', 'backend', undefined, 200],
  ['get /v1/service/online', 'v1/service/online?limit=0', 'backend', undefined, 400],
  ['get /v1/service/online', 'v1/service/online', null, undefined, 401],
  ['get /v1/service/presence', 'v1/service/presence?users=alice,bob', 'backend', undefined, 200],
  ['get /v1/service/presence', 'v1/service/presence', 'backend', undefined, 400],
  ['get /v1/service/presence', 'v1/service/presence?users=bob', null, undefined, 401],
  ['get /v1/service/presence', 'v1/service/presence?users=bob', 'alice', undefined, 403],
  ['put /v1/service/contacts/{user}/{other}', 'v1/service/contacts/eve/fred', 'backend', undefined, 204],
  ['put /v1/service/contacts/{user}/{other}', 'v1/service/contacts/eve/eve', 'backend', undefined, 400],
  ['put /v1/service/contacts/{user}/{other}', 'v1/service/contacts/eve/fred', null, undefined, 401],
  ['put /v1/service/contacts/{user}/{other}', 'v1/service/contacts/eve/fred', 'alice', undefined, 403],
  ['delete /v1/service/contacts/{user}/{other}', 'v1/service/contacts/eve/fred', 'backend', undefined, 204],
  ['delete /v1/service/contacts/{user}/{other}', 'v1/service/contacts/eve/eve', 'backend', undefined, 400],
  ['put /v1/service/users/{user}/contacts', 'v1/service/users/eve/contacts', 'backend', { contacts: ['fred'] }, 200],
  ['put /v1/service/users/{user}/contacts', 'v1/service/users/eve/contacts', 'backend', { contacts: 1 }, 400],
  ['post /v1/service/import', 'v1/service/import', 'backend', { contact: ['eve', 'fred'] }, 200],
  ['post /v1/service/import', 'v1/service/import', 'backend', { wrong: 1 }, 200],
  ['post /v1/service/import', 'v1/service/import', 'alice', undefined, 403],
  ['get /v1/service/users/{user}/export', 'v1/service/users/eve/export', 'backend', undefined, 200],
  ['get /v1/service/users/{user}/export', 'v1/service/users/eve/export', 'alice', undefined, 403],
  ['delete /v1/service/users/{user}', 'v1/service/users/fred', 'backend', undefined, 204],
  ['delete /v1/service/users/{user}', 'v1/service/users/fred', 'alice', undefined, 403],
  ['get /v1/me', 'v1/me', 'alice', undefined, 200],
  ['get /v1/me', 'v1/me', null, undefined, 401],
  ['patch /v1/me', 'v1/me', 'alice', { presence_visibility: 'everyone' }, 200],
  ['patch /v1/me', 'v1/me', 'alice', { presence_visibility: 'friends' }, 400],
  ['patch /v1/me', 'v1/me', 'alice', { long: 'x'.repeat(BODY_BYTES_MAX) }, 413],
  ['patch /v1/me', 'v1/me', null, {}, 401],
  ['get /v1/friends', 'v1/friends?status=online&limit=5', 'alice', undefined, 200],
  ['get /v1/friends', 'v1/friends?status=busy', 'alice', undefined, 400],
  ['get /v1/friends', 'v1/friends', null, undefined, 401],
  ['post /v1/contact-requests', 'v1/contact-requests', 'alice', { to: 'bob' }, 201],
  ['post /v1/contact-requests', 'v1/contact-requests', 'alice', { to: 'bob' }, 200],
  ['post /v1/contact-requests', 'v1/contact-requests', 'alice', { to: 'alice' }, 400],
  ['get /v1/contact-requests', 'v1/contact-requests', 'alice', undefined, 200],
  ['get /v1/contact-requests', 'v1/contact-requests?limit=0', 'alice', undefined, 400],
  ['post /v1/contact-requests/{id}/accept', 'v1/contact-requests/x/accept', 'alice', undefined, 404],
  ['post /v1/contact-requests/{id}/decline', 'v1/contact-requests/x/decline', 'alice', undefined, 404],
  ['delete /v1/contact-requests/{id}', 'v1/contact-requests/x', 'alice', undefined, 404],
  ['delete /v1/contact-requests/{id}', `v1/contact-requests/${'x'.repeat(200)}`, 'alice', undefined, 400],
  ['delete /v1/contacts/{user}', 'v1/contacts/carol', 'alice', undefined, 204],
  ['delete /v1/contacts/{user}', 'v1/contacts/alice', 'alice', undefined, 400],
  ['put /v1/blocks/{user}', 'v1/blocks/eve', 'alice', undefined, 204],
  ['put /v1/blocks/{user}', 'v1/blocks/alice', 'alice', undefined, 400],
  ['put /v1/blocks/{user}', `v1/blocks/${'x'.repeat(600)}`, 'alice', undefined, 404],
  ['put /v1/blocks/{user}', `v1/blocks/${'x'.repeat(9000)}`, 'alice', undefined, 414],
  ['post /v1/contact-requests', 'v1/contact-requests', 'alice', { to: 'eve' }, 403],
  ['get /v1/blocks', 'v1/blocks', 'alice', undefined, 200],
  ['delete /v1/blocks/{user}', 'v1/blocks/eve', 'alice', undefined, 204],
  ['get /v1/calls', 'v1/calls?limit=5', 'alice', undefined, 200],
  ['get /v1/calls', 'v1/calls?limit=0', 'alice', undefined, 400],
  ['get /v1/calls', 'v1/calls', null, undefined, 401],
  ['get /v1/ice', 'v1/ice', 'alice', undefined, 200],
  ['get /v1/ice', 'v1/ice', null, undefined, 401],
  ['post /v1/chats', 'v1/chats', 'alice', { chat_id: 'probed', members: ['bob'] }, 201],
  ['post /v1/chats', 'v1/chats', 'alice', { chat_id: 'probed', members: ['bob'] }, 200],
  ['post /v1/chats', 'v1/chats', 'bob', { chat_id: 'probed', members: ['carol'] }, 409],
  ['post /v1/chats', 'v1/chats', 'alice', { chat_id: 'probed' }, 400],
  ['post /v1/chats', 'v1/chats', 'alice', { direct_with: 'bob', chat_id: 'probed' }, 400],
  ['post /v1/chats', 'v1/chats', 'alice', { chat_id: null, 'a key\n': 1, members: ['bob'] }, 201],
  ['post /v1/chats', 'v1/chats', 'alice', { members: ['x'.repeat(LIST_BYTES_MAX)] }, 413],
  ['post /v1/chats', 'v1/chats', 'alice', { direct_with: 'bob' }, 201],
  ['post /v1/chats', 'v1/chats', 'bob', { direct_with: 'alice' }, 200],
  ['post /v1/chats', 'v1/chats', 'alice', { direct_with: 'alice' }, 400],
  ['get /v1/chats', 'v1/chats', 'alice', undefined, 200],
  ['get /v1/chats', 'v1/chats?limit=0', 'alice', undefined, 400],
  ['get /v1/chats', 'v1/chats', null, undefined, 401],
  ['get /v1/chats/{chat}', 'v1/chats/probed', 'alice', undefined, 200],
  ['get /v1/chats/{chat}', 'v1/chats/probed', 'root', undefined, 404],
  ['get /v1/chats/{chat}', 'v1/chats/nowhere', 'alice', undefined, 404],
  ['post /v1/chats/{chat}/messages', 'v1/chats/probed/messages', 'alice', { client_message_id: 'm1', body: 'hello' }, 201],
  ['post /v1/chats/{chat}/messages', 'v1/chats/probed/messages', 'alice', { client_message_id: 'm2' }, 400],
  ['post /v1/chats/{chat}/messages', 'v1/chats/probed/messages', 'root', { client_message_id: 'm1', body: 'x' }, 404],
  ['post /v1/chats/{chat}/messages', 'v1/chats/nowhere/messages', 'alice', { client_message_id: 'm1', body: 'x' }, 404],
  ['post /v1/chats/{chat}/messages', 'v1/chats/probed/messages', null, { client_message_id: 'm1', body: 'x' }, 401],
  ['get /v1/chats/{chat}/messages', 'v1/chats/probed/messages?after_sequence=0&limit=5', 'alice', undefined, 200],
  ['get /v1/chats/{chat}/messages', 'v1/chats/probed/messages?after_sequence=-1', 'alice', undefined, 400],
  ['get /v1/chats/{chat}/messages', 'v1/chats/probed/messages?after_sequence=1&before_sequence=9', 'alice', undefined, 400],
  ['get /v1/chats/{chat}/messages', 'v1/chats/probed/messages', 'root', undefined, 404],
  ['get /v1/chats/{chat}/messages', 'v1/chats/nowhere/messages', 'alice', undefined, 404],
  ['get /v1/chats/{chat}/messages', 'v1/chats/probed/messages', null, undefined, 401],
  ['put /v1/chats/{chat}/members/{user}', 'v1/chats/probed/members/c', 'alice', undefined, 204],
  ['put /v1/chats/{chat}/members/{user}', 'v1/chats/probed/members/c', 'root', undefined, 404],
  ['patch /v1/chats/{chat}', 'v1/chats/probed', 'alice', { members_can_add: false }, 200],
  ['patch /v1/chats/{chat}', 'v1/chats/probed', 'alice', { members_can_add: 1 }, 400],
  ['patch /v1/chats/{chat}', 'v1/chats/probed', 'bob', { members_can_add: true }, 403],
  ['patch /v1/chats/{chat}', 'v1/chats/probed', 'root', { members_can_add: true }, 404],
  ['patch /v1/chats/{chat}', 'v1/chats/probed', null, {}, 401],
  ['put /v1/chats/{chat}/members/{user}', 'v1/chats/probed/members/d', 'bob', undefined, 403],
  ['post /v1/chats/{chat}/read', 'v1/chats/probed/read', 'bob', { sequence: 1 }, 200],
  ['post /v1/chats/{chat}/read', 'v1/chats/probed/read', 'bob', { sequence: -1 }, 400],
  ['post /v1/chats/{chat}/read', 'v1/chats/probed/read', 'root', { sequence: 1 }, 404],
  ['post /v1/chats/{chat}/read', 'v1/chats/probed/read', null, { sequence: 1 }, 401],
  ['put /v1/chats/{chat}/admins/{user}', 'v1/chats/probed/admins/bob', 'bob', undefined, 403],
  ['put /v1/chats/{chat}/admins/{user}', 'v1/chats/probed/admins/bob', 'alice', undefined, 204],
  ['put /v1/chats/{chat}/admins/{user}', 'v1/chats/probed/admins/bob', 'root', undefined, 404],
  ['delete /v1/chats/{chat}/admins/{user}', 'v1/chats/probed/admins/bob', 'alice', undefined, 204],
  ['delete /v1/chats/{chat}/admins/{user}', 'v1/chats/probed/admins/alice', 'alice', undefined, 403],
  ['delete /v1/chats/{chat}/admins/{user}', 'v1/chats/probed/admins/bob', 'root', undefined, 404],
  ['put /v1/chats/{chat}/members/{user}', 'v1/chats/nowhere/members/c', 'alice', undefined, 404],
  ['delete /v1/chats/{chat}/members/{user}', 'v1/chats/probed/members/c', 'alice', undefined, 204],
  ['delete /v1/chats/{chat}/members/{user}', 'v1/chats/probed/members/c', 'root', undefined, 404],
  ['post /v1/users/{user}/deliver', 'v1/users/bob/deliver', 'root', { any: ['thing'] }, 202],
  ['post /v1/users/{user}/deliver', 'v1/users/nobody/deliver', 'root', 7, 202],
  ['post /v1/users/{user}/deliver', 'v1/users/bob/deliver', 'root', undefined, 400],
  ['post /v1/users/{user}/deliver', 'v1/users/bob/deliver', 'alice', {}, 403],
  ['get /admin/v1/gateways', 'admin/v1/gateways', 'root', undefined, 200],
  ['get /admin/v1/gateways', 'admin/v1/gateways', 'alice', undefined, 403],
  ['get /admin/v1/connections', 'admin/v1/connections?user=bob', 'root', undefined, 200],
  ['get /admin/v1/connections', 'admin/v1/connections', 'root', undefined, 400],
  ['get /admin/v1/explain/{user}', 'admin/v1/explain/bob', 'root', undefined, 200],
  ['get /admin/v1/explain/{user}', 'admin/v1/explain/nobody', 'root', undefined, 200],
  ['post /admin/v1/users/{user}/revoke', 'admin/v1/users/nobody/revoke', 'root', undefined, 200],
  ['post /admin/v1/users/{user}/revoke', 'admin/v1/users/nobody/revoke', 'alice', undefined, 403],
  ['delete /admin/v1/connections/{conn_id}', 'admin/v1/connections/x', 'root', undefined, 404],
  ['delete /admin/v1/connections/{conn_id}', 'admin/v1/connections/x', 'alice', undefined, 403],
  ['post /admin/v1/drain', 'admin/v1/drain', 'alice', undefined, 403],
];

/** Sends a request and checks the answer against the description; returns the answer's text. */
async function probe([name, path, user, body, status]) {
  const [method, template] = name.split(' ');
  const response = await fetch(new URL(path, server.url), {
    method: method.toUpperCase(),
    headers: user === null ? {} : { Authorization: `Bearer ${tokens[user]}` },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  const what = `${name} as ${user}: ${response.status} ${text}`;
  assert.equal(response.status, status, what);
  const described = follow(document, document.paths[template][method].responses[status]);
  assert.ok(described, `${what} is not described`);
  for (const [header, { schema }] of Object.entries(described.headers ?? {}))
    assertMatches(follow(document, schema), response.headers.get(header), `${what}: ${header}`);
  const [contentType] = (response.headers.get('content-type') ?? '').split(';');
  assert.deepEqual(Object.keys(described.content ?? {}), contentType ? [contentType] : [], what);
  if (contentType === 'application/json')
    assertMatches(described.content[contentType].schema, JSON.parse(text), what);
  return text;
}

for (const row of PROBES) {
  const [name, path, user, , status] = row;
  test(`${name} answers as described: ${path.slice(0, 80)} as ${user ?? 'nobody'}, ${status}`, () => probe(row));
}

test('every operation has a probe', () => {
  const probed = new Set(PROBES.map(([name]) => name));
  assert.deepEqual(
    operations().filter(({ name }) => !probed.has(name)).map(({ name }) => name),
    [],
  );
});

test('the server accepts the examples of request bodies', async () => {
  for (const [name, path, user] of [
    ['patch /v1/me', 'v1/me', 'alice'],
    ['post /v1/users/{user}/deliver', 'v1/users/bob/deliver', 'root'],
    ['post /dev/token', 'dev/token', null],
  ]) {
    const [method, template] = name.split(' ');
    const { requestBody, responses } = document.paths[template][method];
    const success = Number(Object.keys(responses).find((status) => status.startsWith('2')));
    await probe([name, path, user, requestBody.content['application/json'].example, success]);
  }
});

test('upgrades are refused as described', async () => {
  const { responses } = document.paths['/v1/ws'].get;
  const url = `${server.url.replace('http', 'ws')}v1/ws`;
  for (const [status, target] of [
    [401, url],
    [401, `${url}?access_token=x.y.z`],
    [400, `${url}?access_token=${tokens.alice}&device_id=`],
  ]) {
    const { status: answered, error, headers } = await refusal(target);
    assert.equal(answered, status, target);
    const described = follow(document, responses[status]);
    assertMatches(described.content['application/json'].schema, { error }, target);
    for (const header of Object.keys(described.headers ?? {}))
      assert.ok(headers[header.toLowerCase()], `${target}: ${header}`);
  }
});

test('a connected user is listed, explained and closed as described', async () => {
  const { conn_id: id } = bob.established;
  const probeJson = async (path) => JSON.parse(await probe(PROBES.find((row) => row[1] === path)));
  const { connections } = await probeJson('admin/v1/connections?user=bob');
  assert.equal(connections.length, 1);
  assert.equal(connections[0].conn_id, id);
  const explained = await probeJson('admin/v1/explain/bob');
  assert.deepEqual(explained.leases, connections);
  assert.equal(explained.presence.status, 'online');
  assert.ok(explained.last_transitions.length > 0);
  const name = 'delete /admin/v1/connections/{conn_id}';
  await probe([name, `admin/v1/connections/${id}`, 'root', undefined, 204]);
  assert.equal((await bob.ended()).code, 4005);
});

test('a drain is started as described', async () => {
  await probe(['post /admin/v1/drain', 'admin/v1/drain', 'root', undefined, 202]);
  await eventually(() => server.child.exitCode !== null, 'the process exits');
  assert.equal(server.child.exitCode, 0);
});
