/** Authentication: tokens, keys, rotation, expiry, allowed origins. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import {
  closeAll,
  connect,
  devToken,
  eventually,
  openSocket,
  refusal,
  rest,
  SOON_MS,
} from '../support/client.mjs';
import { destroyAll, HANDSHAKE, rawConnect, request } from '../support/raw.mjs';
import { rollcall, startServer } from '../support/server.mjs';
import {
  jwks,
  makeConfusedToken,
  makeKey,
  makeToken,
  makeUnsignedToken,
  nowSeconds,
} from '../support/tokens.mjs';

let directory;
let keyFiles = 0;
let server; // in dev mode
let keyed; // with the keys below
const key = {
  RS256: makeKey('RS256'),
  ES256: makeKey('ES256', 'es'),
  EdDSA: makeKey('EdDSA', 'ed'),
};

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-auth-'));
  server = await startServer();
  keyed = await serveKeys(jwks(key.RS256, key.ES256, key.EdDSA));
});
after(async () => {
  await server.stop();
  await keyed.stop();
  await rm(directory, { recursive: true, force: true });
});
afterEach(() => {
  closeAll();
  destroyAll();
});

/** Starts a server that reads its keys from a file with this text; `keysFile` is its path. */
async function serveKeys(text, settings = {}) {
  keyFiles += 1;
  const keysFile = join(directory, `keys-${keyFiles}`);
  await writeFile(keysFile, text);
  const started = await startServer({ dev: false, args: ['--jwt-keys', keysFile], settings });
  return { ...started, keysFile };
}

const wsUrl = (at) => `${at.url.replace('http', 'ws')}v1/ws`;

const bearer = (token) => ({ headers: { Authorization: `Bearer ${token}` } });

async function expectRefused(at, token, what) {
  const { status, error, headers } = await refusal(wsUrl(at), [], bearer(token));
  assert.equal(status, 401, what);
  assert.equal(error.code, 'UNAUTHENTICATED', what);
  assert.match(headers['www-authenticate'], /^Bearer/);
  assert.equal((await rest(at, 'GET', '/v1/me', { token })).status, 401, what);
}

const expectAccepted = async (at, token, user) =>
  assert.equal((await connect(at, user, { token })).established.user_id, user);

test('a request without a token is refused', async () => {
  const { status, error } = await refusal(wsUrl(server));
  assert.equal(status, 401);
  assert.equal(error.code, 'UNAUTHENTICATED');
  assert.equal((await rest(server, 'GET', '/v1/me')).status, 401);
});

test('a token may come as header, query or subprotocol', async () => {
  const token = await server.token('ann');
  await expectAccepted(server, token, 'ann');
  const byQuery = openSocket(`${wsUrl(server)}?access_token=${token}`);
  assert.equal((await byQuery.next('connection_established')).user_id, 'ann');
  const byProtocol = openSocket(wsUrl(server), ['rollcall.v1', `bearer.${token}`]);
  assert.equal((await byProtocol.next('connection_established')).user_id, 'ann');
  assert.equal(byProtocol.socket.protocol, 'rollcall.v1');
});

test('a header may have extra spaces, and a list may be split over several headers', async () => {
  const token = await server.token('ann');
  const answer = async (...headers) => {
    const socket = rawConnect(server);
    socket.send(request('GET', '/v1/ws', [...HANDSHAKE, ...headers]));
    return (await socket.response()).status;
  };
  assert.equal(await answer(`Authorization: bearer   ${token}`), 101);
  const protocols = ['rollcall.v1', `bearer.${token}`].map((name) => `Sec-WebSocket-Protocol: ${name}`);
  assert.equal(await answer(...protocols), 101);
});

test('the answer names the subprotocol only if the client offered it, and never the token', async () => {
  const token = await server.token('ann');
  const answer = async (protocols) => {
    const socket = rawConnect(server);
    const header = protocols === null ? [] : [`Sec-WebSocket-Protocol: ${protocols}`];
    const authorization = `Authorization: Bearer ${token}`;
    socket.send(request('GET', '/v1/ws', [...HANDSHAKE, ...header, authorization]));
    const { status, headers } = await socket.response();
    assert.equal(status, 101);
    return headers['sec-websocket-protocol'];
  };
  assert.equal(await answer(null), undefined);
  assert.equal(await answer('chat, rollcall.v1'), 'rollcall.v1');
  assert.equal(await answer('chat'), undefined);
  assert.equal(await answer(`bearer.${token}, rollcall.v1`), 'rollcall.v1');
});

test('a header without a bearer token counts as no token', async () => {
  for (const value of ['Basic YTpi', 'Bearer', 'Bearer ', 'nonsense']) {
    const { status } = await refusal(wsUrl(server), [], { headers: { Authorization: value } });
    assert.equal(status, 401, value);
  }
});

test('invalid tokens get 401 and no upgrade', async () => {
  const good = key.RS256;
  const changed = (token, part) => {
    const parts = token.split('.');
    const replacement = parts[part][10] === 'A' ? 'B' : 'A';
    parts[part] = parts[part].slice(0, 10) + replacement + parts[part].slice(11);
    return parts.join('.');
  };
  const token = makeToken(good, 'eve');
  const bad = {
    nonsense: 'nonsense',
    'two parts': token.split('.').slice(0, 2).join('.'),
    'four parts': `${token}.x`,
    'a changed claim': changed(token, 1),
    'a changed signature': changed(token, 2),
    'no signature': `${token.split('.').slice(0, 2).join('.')}.`,
    expired: makeToken(good, 'eve', { exp: nowSeconds() - 1 }),
    'without exp': makeToken(good, 'eve', { exp: undefined }),
    'exp as text': makeToken(good, 'eve', { exp: '9999999999' }),
    'not valid yet': makeToken(good, 'eve', { nbf: nowSeconds() + 600 }),
    'without sub': makeToken(good, undefined),
    'an empty sub': makeToken(good, ''),
    'a sub too long': makeToken(good, 'x'.repeat(129)),
    'a sub with a control character': makeToken(good, 'a\nb'),
    'a sub that is a number': makeToken(good, 7),
    'a critical extension': makeToken(good, 'eve', {}, { crit: ['b64'], b64: true }),
    'another key': makeToken(makeKey('RS256'), 'eve'),
    'an unknown key id': makeToken({ ...key.ES256, kid: 'who' }, 'eve'),
    'none as algorithm': makeUnsignedToken('eve'),
    'None as algorithm': makeUnsignedToken('eve', 'None'),
    'a public key as HMAC secret': makeConfusedToken(good, 'eve'),
    'the key id of a key of another algorithm': makeToken(key.ES256, 'eve', {}, { kid: 'ed' }),
    'an algorithm that is not the key’s': makeToken(key.ES256, 'eve', {}, { alg: 'RS256' }),
    'a key in the token itself': makeToken(makeKey('ES256'), 'eve', {}, { jwk: key.ES256.jwk }),
    'a token too long': makeToken(good, 'eve', { pad: 'x'.repeat(9000) }),
  };
  for (const [what, value] of Object.entries(bad)) await expectRefused(keyed, value, what);
});

test('RS256, ES256 and EdDSA keys are read from a JWK set', async () => {
  for (const alg of ['RS256', 'ES256', 'EdDSA'])
    await expectAccepted(keyed, makeToken(key[alg], `${alg}-user`), `${alg}-user`);
});

test('the same keys are read from one PEM file', async () => {
  const pem = await serveKeys(key.RS256.pem + key.ES256.pem + key.EdDSA.pem);
  try {
    for (const alg of ['RS256', 'ES256', 'EdDSA'])
      await expectAccepted(pem, makeToken(key[alg], `${alg}-user`), `${alg}-user`);
    await expectRefused(pem, makeConfusedToken(key.RS256, 'eve'), 'a public key as secret');
    await expectRefused(pem, makeToken(makeKey('EdDSA'), 'eve'), 'another key');
  } finally {
    await pem.stop();
  }
});

test('tokens are issued in dev mode only', async () => {
  const response = await fetch(`${keyed.url}dev/token`, { method: 'POST', body: '{"user":"a"}' });
  assert.equal(response.status, 404);
});

test('a server accepts what `rollcall token --key` signs with its key', async () => {
  for (const alg of ['RS256', 'ES256', 'EdDSA']) {
    const file = join(directory, `${alg}.private.pem`);
    await writeFile(file, key[alg].privatePem, { mode: 0o600 });
    const { stdout } = await rollcall('token', 'kim', '--key', file);
    await expectAccepted(keyed, stdout.trim(), 'kim');
  }
});

test('SIGHUP reloads the keys; a removed key ends its sessions, an invalid file changes nothing', async () => {
  const [older, newer] = [makeKey('ES256', 'older'), makeKey('RS256', 'newer')];
  const rotating = await serveKeys(jwks(older));
  const reload = async (text, logged) => {
    await writeFile(rotating.keysFile, text);
    const seen = rotating.log().split(logged).length;
    process.kill(rotating.pid, 'SIGHUP');
    await eventually(() => rotating.log().split(logged).length > seen, `${logged} in the log`);
  };
  try {
    const old = await connect(rotating, 'old', { token: makeToken(older, 'old') });
    const last = await connect(rotating, 'last', { token: makeToken(older, 'last') });
    await expectRefused(rotating, makeToken(newer, 'new'), 'not known yet');

    await reload(jwks(older, newer), 'reloaded');
    await expectAccepted(rotating, makeToken(newer, 'new'), 'new');
    await expectAccepted(rotating, makeToken(older, 'too'), 'too');
    const renewed = await old.ask({ type: 'refresh_token', token: makeToken(newer, 'old') });
    assert.equal(renewed.type, 'ok');

    await reload(jwks(newer), 'reloaded');
    assert.equal((await last.next('connection_closing')).reason, 'key_removed');
    assert.equal((await last.ended()).code, 4001);
    await expectRefused(rotating, makeToken(older, 'late'), 'retired');
    const { code } = await old.ask({ type: 'refresh_token', token: makeToken(older, 'old') });
    assert.equal(code, 'UNAUTHENTICATED');
    assert.equal((await old.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');

    for (const text of ['', 'nonsense', '{"keys":[]}', newer.privatePem]) {
      await reload(text, 'keys_not_reloaded');
      await expectAccepted(rotating, makeToken(newer, 'still'), 'still');
    }
    assert.equal((await old.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  } finally {
    await rotating.stop();
  }
});

test('the connection of an expired token is notified, then closed with 4001', async () => {
  const token = makeToken(key.ES256, 'zoe', { exp: nowSeconds() + 2 });
  const zoe = await connect(keyed, 'zoe', { token });
  const startedMs = Date.now();
  const closing = await zoe.next('connection_closing');
  assert.equal(closing.reason, 'token_expired');
  assert.equal(typeof closing.reconnect_allowed, 'boolean');
  assert.equal((await zoe.ended()).code, 4001);
  assert.ok(Date.now() - startedMs < SOON_MS / 2);
});

test('a token refreshed in time keeps the connection beyond the first token', async () => {
  const exp = nowSeconds() + 2;
  const yan = await connect(keyed, 'yan', { token: makeToken(key.ES256, 'yan', { exp }) });
  const answer = await yan.ask({ type: 'refresh_token', token: makeToken(key.EdDSA, 'yan') });
  assert.equal(answer.type, 'ok');
  await eventually(() => Date.now() > (exp + 1) * 1000, 'the first token expires');
  await yan.settle();
  assert.deepEqual(yan.messages, []);
});

test('a refresh with an invalid token, or another user’s, is refused', async () => {
  const max = await connect(keyed, 'max', { token: makeToken(key.ES256, 'max') });
  const ask = async (token) => (await max.ask({ type: 'refresh_token', token })).code;
  assert.equal(await ask(makeToken(key.ES256, 'moritz')), 'FORBIDDEN');
  assert.equal(await ask(makeToken(makeKey('ES256', 'es'), 'max')), 'UNAUTHENTICATED');
  assert.equal(await ask('nonsense'), 'UNAUTHENTICATED');
  assert.equal(await ask(7), 'INVALID_MESSAGE');
  assert.equal((await max.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
});

test('issuer and audience are checked if they are set', async () => {
  const strict = await serveKeys(jwks(key.ES256), {
    'auth.issuer': 'https://issuer.example',
    'auth.audience': 'rollcall',
  });
  const iss = 'https://issuer.example';
  const token = (claims) => makeToken(key.ES256, 'ina', claims);
  try {
    await expectAccepted(strict, token({ iss, aud: 'rollcall' }), 'ina');
    await expectAccepted(strict, token({ iss, aud: ['other', 'rollcall'] }), 'ina');
    for (const claims of [{}, { iss }, { aud: 'rollcall' }, { iss: 'x', aud: 'rollcall' }])
      await expectRefused(strict, token(claims), JSON.stringify(claims));
    await expectRefused(strict, token({ iss, aud: ['other'] }), 'another audience');
  } finally {
    await strict.stop();
  }
});

test('an origin that is not listed gets 403; a request without an origin passes', async () => {
  const restricted = await startServer({
    settings: { 'gateway.allowed_origins': 'https://one.example,https://two.example' },
  });
  const token = await restricted.token('ori');
  const withOrigin = (origin) => ({ ...bearer(token), origin });
  try {
    for (const origin of ['https://one.example', 'https://two.example', undefined])
      await connect(restricted, 'ori', { token, ws: { origin } });
    for (const origin of [
      'https://three.example',
      'http://one.example',
      'https://one.example.evil.example',
      'null',
    ]) {
      const { status, error } = await refusal(wsUrl(restricted), [], withOrigin(origin));
      assert.equal(status, 403, origin);
      assert.equal(error.code, 'FORBIDDEN');
    }
    const engine = (origin) =>
      fetch(`${restricted.url}socket.io/?EIO=4&transport=polling`, { headers: { origin } });
    const listed = await engine('https://two.example');
    assert.equal(listed.headers.get('access-control-allow-origin'), 'https://two.example');
    assert.equal(listed.headers.get('access-control-allow-credentials'), 'true');
    const unlisted = await engine('https://three.example');
    assert.equal(unlisted.status, 403);
    assert.equal((await unlisted.json()).code, 4);
    const health = await fetch(`${restricted.url}healthz`, {
      headers: { Origin: 'https://three.example' },
    });
    assert.equal(health.headers.get('access-control-allow-origin'), null);
  } finally {
    await restricted.stop();
  }
});

test('a user id may contain anything except control characters', async () => {
  for (const user of ['a b', 'a/b', 'Zoë', '日本', '😀', '{x}', 'x'.repeat(128), '"\\']) {
    const { established } = await connect(server, user, { token: await devToken(server, user) });
    assert.equal(established.user_id, user);
  }
});

test('a flood of tokens with unknown keys does not delay a connected user', async () => {
  const calm = await connect(keyed, 'calm', { token: makeToken(key.ES256, 'calm') });
  const unknownKey = makeToken(makeKey('ES256', 'unknown'), 'eve');
  const forged = makeToken(makeKey('RS256'), 'eve'); // costs a verification each time
  let answered = 0;
  const attack = async (token) => {
    const socket = rawConnect(keyed);
    const line = `Authorization: Bearer ${token}`;
    for (let n = 0; n < 60; n += 1) {
      socket.send(request('GET', '/v1/ws', [...HANDSHAKE, line]));
      const { status } = await socket.response();
      assert.ok(status === 401 || status === 503, String(status));
      answered += 1;
    }
  };
  const attacks = Array.from({ length: 30 }, (_, n) => attack(n % 2 ? unknownKey : forged));
  let slowestMs = 0;
  let beats = 0;
  const floodedMs = Date.now();
  const flood = Promise.all(attacks).then(() => true);
  while (!(await Promise.race([flood, new Promise((resolve) => setTimeout(resolve, 20))]))) {
    const startedMs = Date.now();
    await calm.ask({ type: 'heartbeat' });
    slowestMs = Math.max(slowestMs, Date.now() - startedMs);
    beats += 1;
  }
  assert.equal(answered, 1800);
  assert.ok(beats > 3, `${beats} heartbeats`);
  const busyMs = (Date.now() - floodedMs) / 2; // a busy machine stretches both
  assert.ok(slowestMs < Math.max(2000, busyMs), `a heartbeat took ${slowestMs} ms`);
});
