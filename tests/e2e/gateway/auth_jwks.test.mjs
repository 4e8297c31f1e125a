/** Keys from `auth.jwks_url`: rotation, outages and bad answers of a real issuer; and HS256 with a shared secret. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { makeCertificate } from '../support/certificate.mjs';
import { closeAll, connect, eventually, metric, rest } from '../support/client.mjs';
import { rollcall, startServer } from '../support/server.mjs';
import { jwks, makeConfusedToken, makeKey, makeToken, nowSeconds } from '../support/tokens.mjs';

const directory = await mkdtemp(join(tmpdir(), 'rollcall-jwks-'));
const issuers = [];
after(async () => {
  for (const issuer of issuers) issuer.close();
  await rm(directory, { recursive: true, force: true });
});
afterEach(closeAll);

/** An issuer whose answer is `issuer.answer(request, response)`, or the text `issuer.keys`; it counts requests. */
async function startIssuer(keys, tls) {
  const issuer = { keys, requests: 0, answer: undefined };
  const listener = (request, response) => {
    issuer.requests += 1;
    if (issuer.answer) issuer.answer(request, response);
    else response.end(issuer.keys);
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer.port = server.address().port;
  issuer.url = `${tls ? 'https' : 'http'}://127.0.0.1:${issuer.port}/jwks.json`;
  issuer.close = () => {
    server.closeAllConnections?.();
    server.close();
  };
  issuers.push(issuer);
  return issuer;
}

const serve = (issuer, settings = {}, options = {}) =>
  startServer({
    dev: false,
    args: ['--workers', '2'],
    settings: { 'auth.jwks_url': issuer.url, 'auth.jwks_refresh_seconds': 1, ...settings },
    ...options,
  });

const statusOf = async (server, token) => (await rest(server, 'GET', '/v1/me', { token })).status;
const isReady = async (server) => (await fetch(new URL('readyz', server.url))).status === 200;
const waitUntilReady = (server) => eventually(() => isReady(server), 'ready');
const logged = (server, event) => server.log().split(`${event} `).length - 1;

test('a server with jwks_url alone is ready once it has keys, and keeps them over a restart', async () => {
  const key = makeKey('RS256', 'one');
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-jwks-data-'));
  const issuer = await startIssuer('not yet');
  let server = await serve(issuer, {}, { dataDir });
  assert.equal(await isReady(server), false);
  assert.equal(await statusOf(server, makeToken(key, 'ann')), 503);
  issuer.keys = jwks(key);
  await waitUntilReady(server);
  assert.equal(await statusOf(server, makeToken(key, 'ann')), 200);
  await server.stop();

  issuer.close();
  server = await serve(issuer, {}, { dataDir });
  assert.equal(await isReady(server), true);
  await connect(server, 'ann', { token: makeToken(key, 'ann') });
  await eventually(() => metric(server, 'auth_jwks_failures'), 'a failure is counted');
  assert.equal(await server.stop(), 0);
  await rm(dataDir, { recursive: true, force: true });
});

test('the first token of a new key is accepted at once; a removed key ends its sessions', async () => {
  const [older, newer] = [makeKey('ES256', 'older'), makeKey('RS256', 'newer')];
  const issuer = await startIssuer(jwks(older));
  const server = await serve(issuer, { 'auth.jwks_refresh_seconds': 3600 });
  await waitUntilReady(server);
  const old = await connect(server, 'old', { token: makeToken(older, 'old') });
  issuer.keys = jwks(older, newer);
  const login = await connect(server, 'new', { token: makeToken(newer, 'new') });
  assert.equal(await statusOf(server, makeToken(newer, 'new')), 200);
  issuer.keys = jwks(newer);
  assert.equal(await statusOf(server, makeToken(makeKey('ES256', 'unknown'), 'x')), 401); // asks again
  assert.equal((await old.next('connection_closing')).reason, 'key_removed');
  assert.equal((await old.ended()).code, 4001);
  assert.equal((await login.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await server.stop();
});

test('unknown kids cause at most one fetch a second, and are refused in a bounded time', async () => {
  const key = makeKey('ES256', 'known');
  const issuer = await startIssuer(jwks(key));
  const server = await serve(issuer, { 'auth.jwks_refresh_seconds': 3600 });
  await waitUntilReady(server);
  const startedMs = Date.now();
  const before = issuer.requests;
  const forged = Array.from({ length: 200 }, (_, i) => makeToken(key, 'x', {}, { kid: `invented-${i}` }));
  const statuses = await Promise.all(forged.map((token) => statusOf(server, token)));
  assert.ok(statuses.every((status) => status === 401));
  const seconds = (Date.now() - startedMs) / 1000;
  assert.ok(issuer.requests - before <= seconds + 1, `${issuer.requests - before} in ${seconds} s`);
  assert.equal(await statusOf(server, makeToken(key, 'ann')), 200);
  await server.stop();
});

test('a bad issuer changes nothing and is logged once', async () => {
  const key = makeKey('EdDSA', 'good');
  const issuer = await startIssuer(jwks(key));
  const server = await serve(issuer);
  await waitUntilReady(server);
  const session = await connect(server, 'ann', { token: makeToken(key, 'ann') });
  const bad = {
    garbage: (_, response) => response.end('<html>'),
    'no keys': (_, response) => response.end('{"keys":[]}'),
    'wrong types': (_, response) => response.end('{"keys":[{"kty":7}]}'),
    'a symmetric key': (_, response) => response.end('{"keys":[{"kty":"oct","k":"AAAA"}]}'),
    'too large': (_, response) => response.end(' '.repeat(300000) + jwks(key)),
    'an error': (_, response) => response.writeHead(500).end(jwks(makeKey('EdDSA', 'bad'))),
    'a redirect to itself': (request, response) =>
      response.writeHead(302, { Location: request.url }).end(),
    'no answer': (_, response) => response.destroy(),
  };
  for (const [what, answer] of Object.entries(bad)) {
    const failures = await metric(server, 'auth_jwks_failures');
    issuer.answer = answer;
    await eventually(async () => (await metric(server, 'auth_jwks_failures')) > failures, what);
    assert.equal(await statusOf(server, makeToken(key, 'ann')), 200, what);
    assert.equal(await isReady(server), true, what);
  }
  assert.equal(logged(server, 'issuer_keys_not_fetched'), 1);
  const refreshes = await metric(server, 'auth_jwks_refreshes');
  issuer.answer = undefined;
  await eventually(async () => (await metric(server, 'auth_jwks_refreshes')) > refreshes, 'it is good again');
  assert.equal(logged(server, 'issuer_keys_fetched'), 2);
  assert.equal((await session.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await server.stop();
});

test('an issuer that drips is given up, and delays nobody else', async () => {
  const key = makeKey('ES256', 'good');
  const issuer = await startIssuer(jwks(key));
  const server = await serve(issuer, { 'auth.jwks_refresh_seconds': 3600 });
  await waitUntilReady(server);
  issuer.answer = (_, response) => {
    const drip = setInterval(() => response.write(' '), 100);
    response.on('close', () => clearInterval(drip));
  };
  const waiting = statusOf(server, makeToken(makeKey('ES256', 'unknown'), 'x'));
  await eventually(() => issuer.requests > 1, 'the server asks');
  const startedMs = Date.now();
  assert.equal(await statusOf(server, makeToken(key, 'ann')), 200);
  assert.ok(Date.now() - startedMs < 4000);
  assert.equal(await waiting, 401);
  await eventually(() => metric(server, 'auth_jwks_failures'), 'a failure is counted');
  await server.stop();
});

test('https is verified: a certificate that nobody vouches for, or of another host, is refused', async () => {
  const key = makeKey('ES256', 'tls');
  await makeCertificate(directory, 'issuer');
  const certificate = join(directory, 'certificate.pem');
  const tls = { cert: await readFile(certificate), key: await readFile(join(directory, 'key.pem')) };
  const issuer = await startIssuer(jwks(key), tls);
  const trusting = await serve(issuer, { 'auth.jwks_ca_file': certificate });
  await waitUntilReady(trusting);
  assert.equal(await statusOf(trusting, makeToken(key, 'ann')), 200);
  await trusting.stop();
  const otherHost = { url: issuer.url.replace('127.0.0.1', 'localhost') };
  for (const [at, settings] of [
    [issuer, {}],
    [otherHost, { 'auth.jwks_ca_file': certificate }],
  ]) {
    const server = await serve(at, settings);
    await eventually(() => metric(server, 'auth_jwks_failures'), 'a failure is counted');
    assert.equal(await isReady(server), false);
    await server.stop();
  }
});

test('plain http is accepted from loopback hosts only', async () => {
  for (const url of ['http://example.org/jwks.json', 'http://127.0.0.1@example.org/', 'ftp://127.0.0.1/', 'jwks']) {
    const { code, stderr } = await rollcall('serve', '--set', `auth.jwks_url=${url}`, '--data-dir', directory);
    assert.notEqual(code, 0, url);
    assert.match(stderr, /auth\.jwks_url/, url);
  }
});

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

function hmacToken(secret, user, header = {}) {
  const text = `${encode({ alg: 'HS256', typ: 'JWT', ...header })}.${encode({ sub: user, exp: nowSeconds() + 600 })}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

test('HS256 is accepted with the shared secret only, beside other keys', async () => {
  const key = makeKey('RS256', 'rsa');
  const secret = 'a secret of at least thirty-two bytes';
  const [secretFile, keysFile] = [join(directory, 'secret'), join(directory, 'keys.pem')];
  await writeFile(secretFile, `${secret}\n`);
  await writeFile(keysFile, key.pem);
  const server = await startServer({
    dev: false,
    args: ['--jwt-keys', keysFile],
    settings: { 'auth.hmac_secret_file': secretFile },
  });
  const client = await connect(server, 'ann', { token: hmacToken(secret, 'ann') });
  assert.equal(await statusOf(server, hmacToken(secret, 'ann', { kid: 'any' })), 200);
  assert.equal(await statusOf(server, makeToken(key, 'ann')), 200);
  for (const token of [
    hmacToken(`${secret}!`, 'ann'),
    hmacToken(key.pem, 'ann'),
    makeConfusedToken(key, 'ann'),
    hmacToken(secret, 'ann', { alg: 'RS256' }),
    hmacToken(secret, 'ann', { alg: 'HS512' }),
    hmacToken(secret, 'ann', { alg: 'none' }),
  ])
    assert.equal(await statusOf(server, token), 401);
  await writeFile(secretFile, 'another secret of at least thirty-two bytes');
  process.kill(server.pid, 'SIGHUP');
  assert.equal((await client.next('connection_closing')).reason, 'key_removed');
  const isRefused = async () => (await statusOf(server, hmacToken(secret, 'ann'))) === 401;
  await eventually(isRefused, 'every worker has the new secret');
  await server.stop();
});

test('a secret that is too short stops the start', async () => {
  const secretFile = join(directory, 'short');
  await writeFile(secretFile, 'x'.repeat(31));
  const args = ['serve', '--set', `auth.hmac_secret_file=${secretFile}`, '--data-dir', directory];
  const { code, stderr } = await rollcall(...args, '--listen', '127.0.0.1:0');
  assert.notEqual(code, 0);
  assert.match(stderr, /31 bytes/);
});
