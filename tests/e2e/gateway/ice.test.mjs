/** GET /v1/ice: the STUN and TURN servers of the configuration, with credentials that a TURN server accepts. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, test } from 'node:test';
import { startServer } from '../support/server.mjs';

const SECRET = 'a secret of north';
const TTL_SECONDS = 600;
const SETTINGS = {
  'ice.servers': 'stun:stun.example.org,turn:static.example.org:3478',
  'ice.username': 'everybody',
  'ice.credential': 'knows',
  'turn.urls': 'turn:turn.example.org?transport=udp,turns:turn.example.org:443?transport=tcp',
  'turn.secret': SECRET,
  'turn.ttl_seconds': TTL_SECONDS,
};

const servers = [];
after(() => Promise.all(servers.map((server) => server.stop())));

async function start(settings) {
  const server = await startServer({ settings });
  servers.push(server);
  return server;
}

async function iceOf(server, user) {
  const token = await server.token(user);
  const response = await fetch(`${server.url}v1/ice`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('Cache-Control'), 'no-store');
  return response.json();
}

/** What a TURN server with `use-auth-secret` does with the credentials of a request. */
function turnServerAccepts({ username, credential }, nowMs = Date.now()) {
  const expected = createHmac('sha1', SECRET).update(username, 'utf8').digest('base64');
  return credential === expected && Number(username.split(':')[0]) > nowMs / 1000;
}

test('the answer has the configured servers, with credentials that expire', async () => {
  const server = await start(SETTINGS);
  const beforeMs = Date.now();
  const { iceServers, ttl_seconds: ttlSeconds } = await iceOf(server, 'alice');
  const [stun, fixed, turn] = iceServers;
  assert.deepEqual(stun, { urls: ['stun:stun.example.org'] });
  assert.deepEqual(fixed, { urls: ['turn:static.example.org:3478'], username: 'everybody', credential: 'knows' });
  assert.deepEqual(turn.urls, SETTINGS['turn.urls'].split(','));
  assert.equal(iceServers.length, 3);
  assert.equal(ttlSeconds, TTL_SECONDS);
  assert.match(turn.username, /^\d+:alice$/);
  assert.ok(turnServerAccepts(turn));
  const expiresMs = parseInt(turn.username, 10) * 1000;
  assert.ok(expiresMs >= beforeMs + TTL_SECONDS * 1000 - 2000 && expiresMs <= Date.now() + TTL_SECONDS * 1000);
  assert.equal(turnServerAccepts(turn, beforeMs + (TTL_SECONDS + 5) * 1000), false, 'they expire');
});

test('credentials belong to the user, whatever characters the id has', async () => {
  const server = servers[0] ?? (await start(SETTINGS));
  for (const user of ['bob', 'a:b', 'Jürgen 🐢', 'x'.repeat(128)]) {
    const { iceServers } = await iceOf(server, user);
    const { username, credential } = iceServers[2];
    assert.equal(username.slice(username.indexOf(':') + 1), user.replaceAll(' ', '%20')); // coturn refuses blanks
    assert.ok(turnServerAccepts({ username, credential }), user);
  }
});

test('without settings the list is empty', async () => {
  const { iceServers, ttl_seconds: ttlSeconds } = await iceOf(await start(), 'alice');
  assert.deepEqual(iceServers, []);
  assert.ok(ttlSeconds > 0);
});

test('only signed-in users are told', async () => {
  const server = servers[0] ?? (await start(SETTINGS));
  const response = await fetch(`${server.url}v1/ice`);
  assert.equal(response.status, 401);
  assert.doesNotMatch(await response.text(), /turn:/);
});

test('the secret is in no log', async () => {
  const server = servers[0] ?? (await start(SETTINGS));
  await iceOf(server, 'carol');
  assert.doesNotMatch(server.log(), new RegExp(SECRET));
});
