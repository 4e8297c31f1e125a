/**
 * The scripts of the state store on Redis, against the real server: one user's transition is one atomic
 * script. The backend that calls them comes on top; this holds them to the rules of the port.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually, sleep } from './support/client.mjs';

const execute = promisify(execFile);
const SCRIPTS = fileURLToPath(new URL('../../src/store/lua/', import.meta.url));
const WINDOW_MS = 2000;
const CONNECTED_AT = '2026-01-31T10:00:00.000Z';

let port;
let redis;
let directory;

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: free } = server.address();
  server.close();
  return free;
}

async function command(...args) {
  const { stdout } = await execute('redis-cli', ['-p', String(port), '--json', ...args.map(String)]);
  return JSON.parse(stdout);
}

/** Runs a script for a user; what it answers as an object. */
async function run(name, user, args = [], { grace = 0 } = {}) {
  const text =
    (await readFile(join(SCRIPTS, 'prelude.lua'), 'utf8')) +
    (await readFile(join(SCRIPTS, `${name}.lua`), 'utf8'));
  const keys = ['user_connections', 'user_servers', 'user_presence', 'last_seen'];
  const answer = await command(
    'EVAL', text, keys.length, ...keys.map((key) => `${key}:${user}`),
    WINDOW_MS, grace, 'connection:', '', ...args,
  );
  if (!Array.isArray(answer) || typeof answer[0] !== 'number') return answer;
  const [changed, status, inCall, lastSeen, version, at, lingers] = answer;
  return { changed: changed === 1, status, inCall: inCall === '1', lastSeen, version, at, lingers };
}

const open = (user, conn, server, { idle = 0, again = 0, grace = 0 } = {}) =>
  run('open', user, [conn, user, 'device', server, CONNECTED_AT, CONNECTED_AT, idle, again], { grace });

before(async () => {
  port = await freePort();
  directory = await mkdtemp(join(tmpdir(), 'rollcall-redis-'));
  redis = spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--dir', directory], {
    stdio: 'ignore',
  });
  await eventually(() => command('PING').then(() => true, () => false), 'Redis answers');
});
after(async () => {
  redis.kill();
  await once(redis, 'exit');
  await rm(directory, { recursive: true, force: true });
});
beforeEach(() => command('FLUSHALL'));

test('first lease online, last one offline with last_seen, nothing in between', async () => {
  const first = await open('A', 'c1', 'gw-1');
  assert.ok(first.changed && first.status === 'online' && first.lastSeen === '');
  assert.equal((await open('A', 'c2', 'gw-2')).changed, false);
  assert.deepEqual((await command('SMEMBERS', 'user_servers:A')).sort(), ['gw-1', 'gw-2']);
  assert.equal((await run('close', 'A', ['c1'])).changed, false);
  assert.deepEqual(await command('SMEMBERS', 'user_servers:A'), ['gw-2']);
  const last = await run('close', 'A', ['c2']);
  assert.ok(last.changed && last.status === 'offline' && last.version > first.version);
  assert.equal(await command('GET', 'last_seen:A'), last.lastSeen);
  assert.equal(Math.abs(Date.parse(last.lastSeen) - Date.now()) < 5000, true);
  assert.equal((await run('close', 'A', ['c2'])).changed, false);
});

test('every routing key lives at most a window, the record five seconds more', async () => {
  await open('A', 'c1', 'gw-1');
  for (const key of ['connection:c1', 'user_connections:A', 'user_servers:A']) {
    const left = await command('PTTL', key);
    assert.ok(left > 0 && left <= WINDOW_MS, `${key} lives ${left} ms`);
  }
  assert.ok((await command('PTTL', 'user_presence:A')) <= WINDOW_MS + 5000);
});

test('away when every device is idle, online with the first that is not', async () => {
  await open('A', 'c1', 'gw-1');
  await open('A', 'c2', 'gw-1');
  assert.equal((await run('idle', 'A', ['c1', 1])).changed, false);
  assert.equal((await run('idle', 'A', ['c2', 1])).status, 'away');
  const active = await run('idle', 'A', ['c1', 0]);
  assert.ok(active.changed && active.status === 'online');
});

test('what is renewed lives on, what is not is found, once', async () => {
  await open('A', 'c1', 'gw-1');
  await open('A', 'c2', 'gw-2');
  await sleep(WINDOW_MS / 2);
  assert.equal(await run('renew', 'A', ['c1', CONNECTED_AT]), 1);
  await sleep(WINDOW_MS * 0.7);
  assert.equal(await run('renew', 'A', ['c2', CONNECTED_AT]), 0);
  assert.equal((await run('expire', 'A', ['c2', Date.now()])).changed, false);
  assert.deepEqual(await command('SMEMBERS', 'user_servers:A'), ['gw-1'], 'while another device lives');
  assert.equal((await run('expire', 'A', ['c1', Date.now()]))[0], 'later');
  await sleep(WINDOW_MS);
  const due = Date.now();
  const gone = await run('expire', 'A', ['c1', due]);
  assert.ok(gone.changed && gone.status === 'offline');
  assert.equal(Date.parse(gone.lastSeen), due - WINDOW_MS);
  assert.equal((await run('expire', 'A', ['c1', due])).changed, false);
});

test('a grace holds offline back, and a return within it changes nothing', async () => {
  const grace = 1500;
  await open('A', 'c1', 'gw-1', { grace });
  const left = await run('close', 'A', ['c1'], { grace });
  assert.ok(!left.changed && left.status === 'online' && left.lingers > 0);
  assert.equal((await open('A', 'c2', 'gw-1', { grace })).changed, false);
  await run('close', 'A', ['c2'], { grace });
  assert.equal((await run('expire', 'A', ['', 0], { grace }))[0], 'later');
  await sleep(grace + 50);
  const over = await run('expire', 'A', ['', 0], { grace });
  assert.ok(over.changed && over.status === 'offline' && over.lastSeen);
});

test('in a call while online; offline takes the call along', async () => {
  assert.equal((await run('call', 'A', [1])).changed, false);
  await open('A', 'c1', 'gw-1');
  assert.ok((await run('call', 'A', [1])).inCall);
  assert.equal((await run('call', 'A', [1])).changed, false);
  assert.equal((await run('close', 'A', ['c1'])).inCall, false);
});

test('a store that lost everything makes no news of a return; one that reaped does', async () => {
  await open('A', 'c1', 'gw-1');
  await command('FLUSHALL');
  assert.equal((await open('A', 'c1', 'gw-1', { again: 1 })).changed, false);
  await sleep(WINDOW_MS + 50);
  await run('expire', 'A', ['c1', Date.now()]);
  await command('DEL', 'user_presence:A');
  assert.ok((await open('A', 'c1', 'gw-1', { again: 1 })).changed, 'others were told that A had gone');
});

test('ids cannot touch other keys', async () => {
  const odd = 'a:b {c}\r\nDEL x 😀';
  await command('SET', 'x', 1);
  await open(odd, 'c1', 'gw-1');
  assert.equal((await run('read', odd)).status, 'online');
  assert.equal(await command('GET', 'x'), '1');
});
