/**
 * Authority ends with its reason: `POST /admin/v1/users/{user}/revoke` and a removed key end sessions of both dialects,
 * and what they refuse stays refused, also for parked Socket.IO sessions and after a restart.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { closeAll, connect, eventually, refusal, rest } from '../support/client.mjs';
import { startProxy } from '../support/proxy.mjs';
import { startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectError, connectSocketIo, openSocketIo } from '../support/socketio.mjs';
import { jwks, makeKey, makeToken, nowSeconds } from '../support/tokens.mjs';

const key = makeKey('ES256', 'main');
const directory = await mkdtemp(join(tmpdir(), 'rollcall-revoke-'));
after(() => rm(directory, { recursive: true, force: true }));
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

const issued = (user, claims = {}, by = key) => makeToken(by, user, { iat: nowSeconds(), ...claims });
const admin = () => issued('root', { scope: 'admin' });

async function serve(keys, options = {}) {
  const keysFile = join(directory, `keys-${Math.random()}`);
  await writeFile(keysFile, keys);
  const server = await startServer({ dev: false, args: ['--jwt-keys', keysFile, '--workers', '2'], ...options });
  return { ...server, keysFile };
}

const revoke = (server, user, token = admin()) =>
  rest(server, 'POST', `/admin/v1/users/${encodeURIComponent(user)}/revoke`, { token });

const statusOf = async (server, token) => {
  const url = new URL('v1/ws', server.url).href.replace(/^http/, 'ws');
  const { status } = await refusal(url, [], { headers: { Authorization: `Bearer ${token}` } });
  assert.equal((await rest(server, 'GET', '/v1/me', { token })).status, status);
  return status;
};

const nextSecond = () => {
  const second = nowSeconds();
  return eventually(() => nowSeconds() > second, 'the next second');
};

const reload = async (server, keys) => {
  await writeFile(server.keysFile, keys);
  const seen = server.log().split('reloaded').length;
  process.kill(server.pid, 'SIGHUP');
  await eventually(() => server.log().split('reloaded').length > seen, 'reloaded');
};

test('revoke ends all sessions of a user with 4001 and refuses older tokens; new ones and others are fine', async () => {
  const server = await serve(jwks(key));
  const [old, undated] = [issued('eve'), makeToken(key, 'eve')];
  const native = await Promise.all([old, old, undated].map((token) => connect(server, 'eve', { token })));
  const socketio = await connectSocketIo(server, 'eve', { token: old, reconnection: false });
  const other = await connect(server, 'bob', { token: issued('bob') });

  const { status, body } = await revoke(server, 'eve');
  assert.equal(status, 200);
  assert.equal(body.user_id, 'eve');
  for (const client of native) {
    assert.equal((await client.next('connection_closing')).reason, 'token_revoked');
    assert.equal((await client.ended()).code, 4001);
  }
  assert.equal((await socketio.next('connection_closing')).reason, 'token_revoked');
  await eventually(() => !socketio.socket.connected, 'the Socket.IO session is over');

  assert.equal(await statusOf(server, old), 401);
  assert.equal(await statusOf(server, undated), 401);
  const refused = await connectError(openSocketIo(server, { token: old, reconnection: false }));
  assert.match(refused.message, /revoked/);
  const refreshed = await other.ask({ type: 'refresh_token', token: issued('bob') });
  assert.equal(refreshed.type, 'ok');

  await nextSecond();
  const fresh = await connect(server, 'eve', { token: issued('eve') });
  assert.equal((await fresh.ask({ type: 'refresh_token', token: old })).code, 'UNAUTHENTICATED');
  assert.equal((await fresh.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  assert.equal(await server.stop(), 0);
});

test('revoke needs the scope admin and a user id', async () => {
  const server = await serve(jwks(key));
  assert.equal((await revoke(server, 'eve', issued('mallory'))).status, 403);
  assert.equal((await revoke(server, 'x'.repeat(129))).status, 400);
  const eve = await connect(server, 'eve', { token: issued('eve') });
  assert.equal((await eve.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await server.stop();
});

test('a revocation survives a restart', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-revoke-data-'));
  const old = issued('eve');
  for (const signal of ['SIGKILL', 'SIGTERM']) {
    const server = await serve(jwks(key), { dataDir });
    if (signal === 'SIGKILL') assert.equal((await revoke(server, 'eve')).status, 200);
    assert.equal(await statusOf(server, old), 401, `before ${signal}`);
    await server.stop(signal);
  }
  await rm(dataDir, { recursive: true, force: true });
});

test('a removed key ends the sessions of both dialects that rest on it, and no others', async () => {
  const removed = makeKey('EdDSA', 'removed');
  const server = await serve(jwks(key, removed));
  const native = await connect(server, 'ann', { token: issued('ann', {}, removed) });
  const socketio = await connectSocketIo(server, 'ann', { token: issued('ann', {}, removed), reconnection: false });
  const kept = await connect(server, 'ann', { token: issued('ann') });
  await reload(server, jwks(key));
  assert.equal((await native.next('connection_closing')).reason, 'key_removed');
  assert.equal((await native.ended()).code, 4001);
  assert.equal((await socketio.next('connection_closing')).reason, 'key_removed');
  await eventually(() => !socketio.socket.connected, 'the Socket.IO session is over');
  assert.equal((await kept.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await reload(server, jwks({ ...key, jwk: { ...key.jwk, kid: 'renamed' } }));
  assert.equal((await kept.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await server.stop();
});

for (const [what, end] of Object.entries({
  'the token was revoked': async (server) => assert.equal((await revoke(server, 'ann')).status, 200),
  'the key was removed': (server) => reload(server, jwks(makeKey('ES256', 'other'))),
}))
  test(`a parked Socket.IO session is not recovered when ${what}`, async () => {
    const server = await serve(jwks(key), { settings: { 'socketio.recovery_ms': 60000 } });
    const proxy = await startProxy(server.port);
    const client = await connectSocketIo({ ...server, url: proxy.url }, 'ann', {
      token: issued('ann'),
      transports: ['websocket'],
      reconnectionDelay: 3000,
      reconnectionDelayMax: 3000,
      randomizationFactor: 0,
    });
    const cut = client.disconnected();
    proxy.cut();
    await cut;
    await end(server);
    const { message } = await connectError(client);
    assert.match(message, /revoked|unknown key/);
    proxy.close();
    await server.stop();
  });
