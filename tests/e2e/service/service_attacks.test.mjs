/** No user acts as the service, keys and bodies reach no log, and no client chooses where hooks go. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { startApplication } from '../support/application.mjs';
import { closeAll, connect, eventually, refusal, rest } from '../support/client.mjs';
import { uniqueUsers } from '../support/contacts.mjs';
import { NO_BUDGETS, rollcall, startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectError, connectSocketIo, openSocketIo } from '../support/socketio.mjs';
import { startEndpoint, writeSecret } from '../support/webhook_endpoint.mjs';

let server, application, endpoint, key, user;

before(async () => {
  application = await startApplication();
  endpoint = await startEndpoint({ answer: () => 500 });
  server = await startServer({
    settings: {
      ...NO_BUDGETS,
      'log.level': 'debug',
      'hooks.connect_url': application.url,
      'hooks.event_url': application.url,
      'hooks.secret_file': application.secretFile,
      'hooks.circuit_breaker.failure_threshold': 1000,
      'webhooks.url': endpoint.url,
      'webhooks.secret_file': await writeSecret(),
    },
  });
  key = (await rollcall('key', 'create', 'shop', '--data-dir', server.dataDir)).stdout.trim();
  user = await server.token('mallory');
  await connect(server, 'victim');
});
after(async () => {
  await server.stop();
  await endpoint.stop();
  await application.stop();
});
afterEach(() => {
  closeAll();
  closeAllSocketIo();
  application.answer = () => ({ status: 204 });
});

/** Sends bytes as they are; returns the status. */
async function raw(target, lines, { method = 'GET', body = '' } = {}) {
  const socket = connectTcp(Number(new URL(server.url).port), '127.0.0.1');
  const length = body ? [`Content-Length: ${body.length}`] : [];
  socket.write([`${method} ${target} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close', ...length, ...lines, '', body].join('\r\n'));
  let text = '';
  socket.on('data', (piece) => (text += piece));
  await once(socket, 'close');
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
}

test('a user’s token opens no spelling of a service route', async () => {
  const spellings = [
    '/v1/service/online', '//v1/service/online', '/v1//service/online', '/v1/service//online', '/v1/service/online/',
    '/v1/./service/online', '/v1/me/../service/online', '/v1/service/presence/../online', '/v1/%73ervice/online',
    '/v1/service%2Fonline', '/v1%2fservice%2fonline', '/V1/SERVICE/ONLINE', '/v1/service/online?scope=service',
    '/v1/service/online;a=b', '/v1/service/online%00', '/v1/service/online#me', 'http://127.0.0.1/v1/service/online',
    '/v1/me?/v1/service/online', '/v1\\service\\online', '/openapi.json/../v1/service/online', '*',
  ];
  for (const path of spellings) {
    const status = await raw(path, [`Authorization: Bearer ${user}`]);
    const isMe = path.startsWith('/v1/me?');
    assert.ok(isMe ? status === 200 : [400, 403, 404, 405].includes(status), `${path}: ${status}`);
  }
});

test('headers and methods in disguise change nothing', async () => {
  const bearer = `Authorization: Bearer ${user}`;
  for (const line of [
    'X-Scope: service', 'Scope: service', 'X-Forwarded-User: backend', 'X-Original-URL: /v1/service/online', 'X-Rewrite-URL: /v1/service/online',
    'X-HTTP-Method-Override: DELETE', 'X-Api-Key: service', 'Cookie: access_token=service', 'Proxy-Authorization: Bearer service',
  ])
    assert.equal(await raw('/v1/service/online', [bearer, line]), 403, line);
  // Two answers to the question who asks are none, in whichever order.
  for (const lines of [[bearer, `Authorization: Bearer ${key}`], [`Authorization: Bearer ${key}`, bearer]])
    assert.ok([400, 401].includes(await raw('/v1/service/online', lines)), lines.join(' '));
  for (const value of [key, `Basic ${key}`, `Bearer ${key}, Bearer ${user}`, `Bearer ${key} x`, `Bearer  rk_`, 'Bearer rk_x', `Bearer ${key.slice(0, -1)}`,
    `Bearer ${key}A`, `Bearer ${key.toUpperCase()}`])
    assert.ok([400, 401].includes(await raw('/v1/service/online', [`Authorization: ${value}`])), value);
  assert.equal(await raw('/v1/service/online', [`Authorization: Bearer ${key}`]), 200);
});

test('scopes that only look like service are none', async () => {
  for (const scope of ['Service', 'SERVICE', 'services', 'service,admin', 'xservice', 'service:read', 'ser vice', 'service\u00a0', '"service"']) {
    const token = await server.token('mallory', { scope });
    assert.equal((await rest(server, 'GET', '/v1/service/online', { token })).status, 403, scope);
  }
});

test('a key is taken from the header alone, and is no user', async () => {
  for (const name of ['access_token', 'token', 'key', 'api_key'])
    assert.equal(await raw(`/v1/service/online?${name}=${key}`, []), 401, name);
  const address = `${server.url.replace('http', 'ws')}v1/ws`;
  assert.equal((await refusal(`${address}?access_token=${key}`)).status, 401);
  assert.equal((await refusal(address, ['rollcall.v1', `bearer.${key}`])).status, 401);
  assert.equal((await refusal(address, [], { headers: { authorization: `Bearer ${key}` } })).status, 401);
  await connectError(openSocketIo(server, { token: key, reconnection: false }));
  for (const [method, path] of [['GET', '/v1/me'], ['GET', '/v1/chats'], ['GET', '/v1/friends'], ['GET', '/admin/v1/gateways']])
    assert.ok([401, 403].includes((await rest(server, method, path, { token: key })).status), path);
});

test('no field of a user’s own request names another sender, or the system', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const chat = `chat-${alice}`;
  await rest(server, 'POST', '/v1/chats', { user: alice, body: { chat_id: chat, members: [bob] } });
  for (const [id, sender] of [['a', bob], ['b', null], ['c', '\u0001'], ['d', '']]) {
    const body = { client_message_id: id, body: 'x', sender_id: sender, user_id: bob };
    const { status } = await rest(server, 'POST', `/v1/chats/${chat}/messages`, { user: alice, body });
    assert.ok([201, 400].includes(status), String(status));
  }
  const alices = await connect(server, alice);
  await alices.ask({ type: 'send_message', chat_id: chat, client_message_id: 'e', body: 'x', sender_id: bob });
  const { body: page } = await rest(server, 'GET', `/v1/chats/${chat}/messages?after_sequence=0`, { user: bob });
  assert.ok(page.messages.length > 0);
  for (const { sender_id: sender } of page.messages) assert.equal(sender, alice);
  assert.equal((await rest(server, 'POST', '/v1/users/victim/deliver', { user: alice, body: {} })).status, 403);
  assert.equal((await rest(server, 'DELETE', `/v1/chats/${chat}/messages/1`, { user: alice })).status, 404);
  for (const type of ['delivery', 'message_deleted', 'deliver', 'service', 'import'])
    assert.equal((await alices.ask({ type, to: { everyone: true }, data: 1, chat_id: chat, sequence: 1 })).type, 'error', type);
});

test('the application’s answers give no user the scope service, and no client chooses where it is asked', async () => {
  const elsewhere = createServer((request, response) => response.end('{"allow":true}'));
  let connections = 0;
  elsewhere.on('connection', () => (connections += 1));
  after(() => elsewhere.close());
  elsewhere.listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  const bad = `http://127.0.0.1:${elsewhere.address().port}/`;
  application.answer = (question) => ({ body: question.name ? { url: bad } : { allow: true, scope: 'service admin', url: bad, connect_url: bad } });
  const headers = { Authorization: `Bearer ${await server.token('eve')}`, host: new URL(bad).host, 'x-forwarded-host': new URL(bad).host, forwarded: `host=${new URL(bad).host}` };
  const eve = await connect(server, 'eve', { device: bad, ws: { headers } });
  for (const data of [bad, { url: bad, hooks: { event_url: bad } }, { 'hooks.event_url': bad, webhooks: { url: bad } }])
    assert.equal((await eve.ask({ type: 'event', name: bad, data, url: bad, event_url: bad })).type, 'event_ack');
  const socket = await connectSocketIo(server, 'eve');
  await socket.ask('hooks.event_url', bad, { url: bad });
  await rest(server, 'PATCH', '/v1/me', { user: 'eve', body: { avatar_url: bad, display_name: bad } });
  assert.equal((await rest(server, 'GET', '/v1/service/online', { user: 'eve' })).status, 403);
  assert.equal(connections, 0);
});

test('neither keys, tokens, secrets nor bodies are in the log, at its most talkative', async () => {
  const secret = 'zZ-private-words-Zz';
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const chat = `chat-${alice}`;
  const service = (method, path, body) => rest(server, method, `/v1/service${path}`, { token: key, body });
  await service('POST', '/chats', { chat_id: chat, members: [alice, bob] });
  await service('POST', `/chats/${chat}/messages`, { client_message_id: secret, body: secret });
  await service('POST', `/chats/${chat}/messages`, { sender_id: alice, client_message_id: 'm', body: `${secret} again` });
  await service('POST', `/chats/${chat}/messages`, { sender_id: 'nobody', client_message_id: 'm', body: secret });
  await service('POST', '/deliver', { to: { users: [alice] }, event: 'e', data: { secret } });
  await service('POST', '/deliver', { to: 'wrong', data: { secret } });
  const lines = [`{"user":{"user_id":"${alice}","display_name":"${secret}"}}`, `{"${secret}":1}`, secret].join('\n');
  const answer = await fetch(new URL('/v1/service/import', server.url), { method: 'POST', headers: { Authorization: `Bearer ${key}` }, body: lines });
  assert.equal((await answer.json()).errors.length, 2);
  await service('GET', `/users/${alice}/export`);
  application.answer = () => ({ status: 500, body: secret });
  await refusal(`${server.url.replace('http', 'ws')}v1/ws?access_token=${await server.token(alice)}`);
  application.answer = (question) => (question.name ? { status: 500, body: secret } : { status: 204 });
  const alices = await connect(server, alice);
  await alices.ask({ type: 'event', name: 'ask', data: secret });
  await eventually(() => /webhook_failed/.test(server.log()), 'a webhook fails');
  await service('DELETE', `/users/${alice}`);
  await rest(server, 'GET', `/v1/service/online?access_token=${key}`);
  await rest(server, 'GET', '/v1/service/online', { token: `${key}wrong` });
  const log = server.log();
  assert.ok(log.length > 0);
  for (const word of [secret, key, key.slice(3), 'whsec', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'eyJ', 'rk_'])
    assert.ok(!log.includes(word), `${word}: ${log.split('\n').find((line) => line.includes(word))}`);
});
