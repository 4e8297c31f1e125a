/**
 * The credentials of GET /v1/ice against a real TURN server, coturn, configured as docs/CALLS.md says: with them a client
 * gets a relay and sends packets through it; with others it gets none.
 */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, sleep } from '../e2e/support/client.mjs';
import { startServer } from '../e2e/support/server.mjs';

const SECRET = 'a secret shared with coturn';
const OLD_SECRET = 'the one before';
const TTL_SECONDS_MIN = 1;
const CLIENT_MS = 120000; // it takes 6 s on an idle machine
const isInstalled = spawnSync('turnserver', ['--version']).error === undefined;
const skip = isInstalled ? false : 'coturn is not installed; tools/install-deps clients';

let folder;
let port;
let coturn;
const servers = [];

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => listener.once('listening', resolve));
  const { port: free } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return free;
}

/** A fenced block of docs/CALLS.md, by the comment in its first line; the secrets take the place of the dots. */
const page = await readFile(new URL('../../docs/CALLS.md', import.meta.url), 'utf8');
const blockOf = (name) => new RegExp(`\`\`\`\\w*\\n# ${name}\\n([^]*?)\`\`\``).exec(page)[1];

/** Starts coturn with the configuration of docs/CALLS.md, and what a test on loopback needs besides. */
async function startCoturn() {
  folder = await mkdtemp(join(tmpdir(), 'rollcall-turn-'));
  port = await freePort();
  const configuration = blockOf('turnserver.conf');
  assert.match(configuration, /^use-auth-secret$/m);
  const secrets = `static-auth-secret=${OLD_SECRET}\nstatic-auth-secret=${SECRET}`; // as during a change of the secret
  await writeFile(join(folder, 'turnserver.conf'), configuration.replace('static-auth-secret=…', secrets));
  coturn = spawn('turnserver', [
    '-c', join(folder, 'turnserver.conf'), '--listening-ip', '127.0.0.1', '--relay-ip', '127.0.0.1', '--listening-port', port,
    '--allow-loopback-peers', '--no-tls', '--no-dtls', '--no-cli', '--log-file', join(folder, 'log'), '--simple-log',
    '--pidfile', join(folder, 'pid'), '--db', join(folder, 'db'),
  ].map(String), { stdio: 'ignore' });
  await eventually(() => accepts(port), 'coturn listens');
}

const accepts = (at) =>
  new Promise((resolve) => {
    const socket = connect(at, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });

before(async () => {
  if (isInstalled) await startCoturn();
});
after(async () => {
  coturn?.kill();
  for (const server of servers) await server.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** What GET /v1/ice of a server with these settings says of the TURN server. */
async function turnOf(user, settings = {}) {
  const server = await startServer({
    settings: { 'turn.urls': `turn:127.0.0.1:${port}?transport=udp`, 'turn.secret': SECRET, ...settings },
  });
  servers.push(server);
  const headers = { Authorization: `Bearer ${await server.token(user)}` };
  const { iceServers } = await (await fetch(`${server.url}v1/ice`, { headers })).json();
  assert.deepEqual(iceServers[0].urls, [`turn:127.0.0.1:${port}?transport=udp`]);
  return iceServers[0];
}

/** Lets the client of coturn send packets from one relay to another; returns how many arrived. */
async function relayed({ username, credential }, ...options) {
  const args = ['-y', '-n', '2', '-m', '1', ...options, '-u', username, '-w', credential, '-p', port, '127.0.0.1'].map(String);
  const output = await new Promise((resolve) => {
    execFile('turnutils_uclient', args, { timeout: CLIENT_MS }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
  const counts = [...output.matchAll(/tot_recv_msgs=(\d+)/g)].map(([, count]) => Number(count));
  return output.includes('Cannot complete Allocation') ? 0 : counts.at(-1) ?? 0;
}

test('coturn relays for the credentials of /v1/ice, over UDP and TCP', { skip }, async () => {
  const turn = await turnOf('alice');
  const [udp, tcp] = await Promise.all([relayed(turn), relayed(turn, '-t')]);
  assert.ok(udp > 0, `UDP: ${udp} packets`);
  assert.ok(tcp > 0, `TCP: ${tcp} packets`);
});

test('an id of any characters works too', { skip }, async () => {
  assert.ok((await relayed(await turnOf('team:Jürgen "O\'Neil" 🐢 \\ 5%'))) > 0);
});

test('during a change of the secret coturn takes the old and the new one', { skip }, async () => {
  assert.ok((await relayed(await turnOf('alice', { 'turn.secret': OLD_SECRET }))) > 0);
});

test('Rollcall accepts the settings of the page', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-calls-'));
  const config = join(directory, 'rollcall.yaml');
  await writeFile(config, blockOf('rollcall.yaml').replace('"…"', `"${SECRET}"`));
  const server = await startServer({ args: ['--config', config] });
  servers.push(server);
  const headers = { Authorization: `Bearer ${await server.token('alice')}` };
  const { iceServers, ttl_seconds: ttl } = await (await fetch(`${server.url}v1/ice`, { headers })).json();
  assert.deepEqual(iceServers.flatMap(({ urls }) => urls),
    ['stun:turn.example.org:3478', 'turn:turn.example.org:3478?transport=udp', 'turns:turn.example.org:5349?transport=tcp']);
  assert.equal(ttl, 43200);
  await rm(directory, { recursive: true });
});

test('coturn refuses another secret, another user, and a changed expiry', { skip }, async () => {
  const own = await turnOf('alice');
  const [expiry] = own.username.split(':');
  const refused = {
    'another secret': await turnOf('alice', { 'turn.secret': 'a guess' }),
    'another user': { ...own, username: own.username.replace('alice', 'bob') },
    'a changed expiry': { ...own, username: own.username.replace(expiry, Number(expiry) + 3600) },
  };
  for (const [what, turn] of Object.entries(refused)) assert.equal(await relayed(turn), 0, what);
});

test('coturn refuses credentials that have expired', { skip }, async () => {
  const turn = await turnOf('alice', { 'turn.ttl_seconds': TTL_SECONDS_MIN });
  const expiresMs = Number(turn.username.split(':')[0]) * 1000;
  await sleep(Math.max(0, expiresMs - Date.now()) + 1500);
  assert.equal(await relayed(turn), 0);
});
