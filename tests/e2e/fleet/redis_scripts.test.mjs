/**
 * The Lua scripts of the state store on a real Redis: one transition of one user is one atomic script. This file checks
 * the keys; the store itself is tested in redis_state_test.c.
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
import { eventually, sleep } from '../support/client.mjs';

const execute = promisify(execFile);
const SCRIPTS = fileURLToPath(new URL('../../../src/store/redis/lua/', import.meta.url));
const WINDOW_MS = 3000;
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

const USERS = ['time_text', 'time', 'user_prelude'];
const PRELUDES = {
  open: ['time_text', 'open_first', 'time', 'user_prelude'],
  close: ['time_text', 'close_last', 'time', 'user_prelude'],
  reap: ['reap_nothing', ...USERS, 'expire_prelude'],
  renew: ['time_text'],
};

async function textOf(...files) {
  const texts = await Promise.all(files.map((file) => readFile(join(SCRIPTS, `${file}.lua`), 'utf8')));
  return texts.join('');
}

/** Runs a script with its own arguments. Returns its reply. */
async function run(name, key, args = [], { grace = 0 } = {}) {
  const script = await textOf(...(PRELUDES[name] ?? USERS), name);
  return command('EVAL', script, 1, key, WINDOW_MS, grace, '', ...args);
}

const readTransition = ([changed, status, inCall, lastSeen, version, at, lingers, repaired]) => ({
  changed: changed > 0, status, inCall: inCall === '1', lastSeen, version, at, lingers, repaired,
});

/** Runs a script that makes a transition of one user. */
const transition = async (name, user, args = [], options = {}) =>
  readTransition(await run(name, `user_connections:${user}`, [user, ...args], options));

const open = (user, conn, server, { idle = 0, again = '', grace = 0 } = {}) =>
  transition('open', user, [conn, user, 'device', server, CONNECTED_AT, CONNECTED_AT, idle, again], { grace });

const renew = (user, conn) => run('renew', `user_connections:${user}`, ['gw-1', user, 1, conn]);

/** Reaps expired leases and graces, unless it is later than `notAfterMs`. Returns the transitions. */
const reap = async ({ notAfterMs = Number.MAX_SAFE_INTEGER, ...options } = {}) =>
  (await run('reap', 'presence:v_heartbeat', [100, notAfterMs], options)).slice(3).map(readTransition);

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

test('times are written and read as RFC 3339 texts', async () => {
  const script = `${await textOf('time_text', 'time')}
    local answers = {}
    for at, text in ipairs(ARGV) do answers[at] = {time_text(time_ms(text)), string.format('%.0f', time_ms(text))} end
    return answers`;
  const days = ['1970-01-01', '1999-12-31', '2000-02-29', '2000-03-01', '2026-01-31', '2028-02-29', '2100-02-28', '9999-12-31'];
  const times = days.flatMap((day) => [`${day}T00:00:00.000Z`, `${day}T23:59:59.999Z`]);
  const expected = times.map((time) => [time, String(Date.parse(time))]);
  assert.deepEqual(await command('EVAL', script, 0, ...times), expected);
  const fromMs = await command('EVAL', script, 0, ...times.map(Date.parse));
  assert.deepEqual(fromMs, expected, 'milliseconds, as older gateways wrote them');
  const none = ['', 'soon', '-1', 'nan', 'inf', '1e400', '253402300800000', '0000-01-01T00:00:00.000Z'];
  for (const [, ms] of await command('EVAL', script, 0, ...none)) assert.equal(ms, '0');
});

test('the first lease brings a user online, the end of the last one offline with last_seen', async () => {
  const first = await open('A', 'c1', 'gw-1');
  assert.ok(first.changed && first.status === 'online' && first.lastSeen === '');
  assert.equal(await command('HGET', 'user_presence:A', 'last_seen'), null);
  assert.equal((await open('A', 'c2', 'gw-2')).changed, false);
  assert.deepEqual((await command('SMEMBERS', 'user_servers:A')).sort(), ['gw-1', 'gw-2']);
  assert.deepEqual(await command('SMEMBERS', 'presence:online'), ['A']);
  assert.deepEqual(await command('SMEMBERS', 'server_connections:gw-1'), ['c1']);
  assert.equal((await transition('close', 'A', ['c1', 'gw-1'])).changed, false);
  assert.deepEqual(await command('SMEMBERS', 'user_servers:A'), ['gw-2']);
  const last = await transition('close', 'A', ['c2', 'gw-2']);
  assert.ok(last.changed && last.status === 'offline' && last.version > first.version);
  assert.equal(await command('GET', 'last_seen:A'), last.lastSeen);
  assert.equal(Math.abs(Date.parse(last.lastSeen) - Date.now()) < 5000, true);
  assert.equal((await transition('close', 'A', ['c2', 'gw-2'])).changed, false);
  assert.deepEqual((await command('KEYS', '*')).sort(), ['last_seen:A', 'presence_history:A', 'user_presence:A']);
});

test('routing keys live at most a window, the presence record five seconds longer', async () => {
  const begun = Date.now();
  await open('A', 'c1', 'gw-1');
  const ended = Date.now();
  for (const key of ['connection:c1', 'user_connections:A', 'user_servers:A', 'server_connections:gw-1']) {
    const left = await command('PTTL', key);
    assert.ok(left > 0 && left <= WINDOW_MS, `${key} lives ${left} ms`);
  }
  assert.ok((await command('PTTL', 'user_presence:A')) <= WINDOW_MS + 5000);
  assert.equal(await command('PTTL', 'last_seen:A'), -2);
  const [[member, score]] = await command('ZRANGE', 'presence:v_heartbeat', 0, -1, 'WITHSCORES');
  assert.equal(member, 'c1:A');
  assert.ok(Number(score) >= begun + WINDOW_MS && Number(score) <= ended + WINDOW_MS, `due at ${score}`);
});

test('a user is away while all devices are idle, and online again with the first active one', async () => {
  await open('A', 'c1', 'gw-1');
  await open('A', 'c2', 'gw-1');
  assert.equal((await transition('idle', 'A', ['c1', 1, 'aa', 1])).changed, false);
  assert.equal((await transition('idle', 'A', ['c2', 1, 'aa', 2])).status, 'away');
  const active = await transition('idle', 'A', ['c1', 0, 'aa', 3]);
  assert.ok(active.changed && active.status === 'online');
});

test('an idle request that comes after a later one of the same store changes nothing', async () => {
  await open('A', 'c1', 'gw-1');
  assert.equal((await transition('idle', 'A', ['c1', 0, 'aa', 2])).changed, false);
  assert.equal((await transition('idle', 'A', ['c1', 1, 'aa', 1])).changed, false);
  assert.equal((await transition('idle', 'A', ['c1', 1, 'bb', 1])).status, 'away');
});

test('a renewed lease is kept, an expired one is reaped once with its last renewal as last_seen', async () => {
  await open('A', 'c1', 'gw-1');
  await open('A', 'c2', 'gw-2');
  await sleep(WINDOW_MS / 2);
  const renewed = Date.now();
  assert.equal(await renew('A', 'c1'), '1');
  await sleep(WINDOW_MS * 0.7);
  assert.equal(await renew('A', 'c2'), '0');
  assert.deepEqual((await reap()).map((made) => made.changed), [false]);
  assert.deepEqual(await command('SMEMBERS', 'user_servers:A'), ['gw-1'], 'while another device lives');
  assert.deepEqual(await reap(), []);
  await sleep(WINDOW_MS);
  assert.deepEqual(await reap({ notAfterMs: Date.now() - 1 }), [], 'a script that runs late ends nothing');
  const [reaped, ...more] = await reap();
  assert.ok(reaped.changed && reaped.status === 'offline' && more.length === 0);
  assert.ok(Math.abs(Date.parse(reaped.lastSeen) - renewed) < WINDOW_MS / 3);
  assert.deepEqual(await reap(), []);
});

test('a grace period delays offline, and a new lease within it changes nothing', async () => {
  const grace = 1500;
  await open('A', 'c1', 'gw-1', { grace });
  const left = await transition('close', 'A', ['c1'], { grace });
  assert.ok(!left.changed && left.status === 'online' && left.lingers > 0);
  assert.equal((await open('A', 'c2', 'gw-1', { grace })).changed, false);
  await transition('close', 'A', ['c2'], { grace });
  assert.deepEqual(await reap({ grace }), []);
  await sleep(grace + 50);
  const [over] = await reap({ grace });
  assert.ok(over.changed && over.status === 'offline' && over.lastSeen);
});

test('only an online user is in a call, and going offline ends the flag', async () => {
  assert.equal((await transition('in_call', 'A', [1])).changed, false);
  await open('A', 'c1', 'gw-1');
  assert.ok((await transition('in_call', 'A', [1])).inCall);
  assert.deepEqual(await command('SMEMBERS', 'presence:incall'), ['A']);
  assert.deepEqual(await command('SMEMBERS', 'presence:online'), ['A'], 'a user in a call is online too');
  assert.equal((await transition('in_call', 'A', [1])).changed, false);
  assert.equal((await transition('close', 'A', ['c1', 'gw-1'])).inCall, false);
  assert.deepEqual(await command('SMEMBERS', 'presence:incall'), []);
});

test('a lease registered again is no transition after Redis lost its data, but is one after a reap', async () => {
  await open('A', 'c1', 'gw-1');
  await command('FLUSHALL');
  assert.equal((await open('A', 'c1', 'gw-1', { again: CONNECTED_AT })).changed, false);
  assert.deepEqual(await command('SMEMBERS', 'presence:online'), ['A']);
  await sleep(WINDOW_MS + 50);
  await reap();
  await command('DEL', 'user_presence:A');
  assert.ok((await open('A', 'c1', 'gw-1', { again: CONNECTED_AT })).changed, 'a reaped user comes online again');
});

test('foreign values under our keys are removed and counted', async () => {
  await open('A', 'c1', 'gw-1');
  for (const key of ['user_connections:A', 'user_servers:A', 'connection:c1', 'presence:v_heartbeat', 'presence:online']) {
    await command('DEL', key);
    await command('SET', key, 'garbage');
    const again = await open('A', 'c1', 'gw-1', { again: CONNECTED_AT });
    assert.deepEqual([again.status, again.changed, again.repaired], ['online', false, 1], key);
  }
  await command('HSET', 'user_presence:A', 'version', '1e400', 'status', 'flying', 'left_at', 'soon');
  assert.equal((await transition('close', 'A', ['c1', 'gw-1'])).status, 'offline');
  await command('ZADD', 'presence:v_heartbeat', 1, 'nonsense');
  assert.deepEqual(await reap(), []);
  assert.equal(await command('ZCARD', 'presence:v_heartbeat'), 0);
});

test('a version does not go back where the clock does', async () => {
  const seen = new Date(Date.now() + 60000).toISOString();
  await command('SET', 'last_seen:A', seen);
  const first = await open('A', 'c1', 'gw-1');
  assert.ok(first.changed && first.version >= Date.parse(seen) + WINDOW_MS + 5000, `version ${first.version}`);
  const last = await transition('close', 'A', ['c1', 'gw-1']);
  assert.ok(last.changed && last.version > first.version);
});

test('a user whom nobody was told about is told again, until somebody was', async () => {
  await open('A', 'c1', 'gw-1');
  await sleep(WINDOW_MS + 100);
  const [gone] = await reap();
  assert.ok(gone.changed && gone.status === 'offline');
  assert.deepEqual(await command('ZRANGE', 'presence:untold', 0, -1), [`${gone.version} A`]);
  assert.deepEqual(await reap(), [], 'not yet');
  await command('ZADD', 'presence:untold', 1, `${gone.version} A`);
  const [again] = await reap();
  assert.deepEqual([again.status, again.version, again.lastSeen], ['offline', gone.version, gone.lastSeen]);
  await open('A', 'c2', 'gw-1');
  await command('ZADD', 'presence:untold', 1, `${gone.version} A`);
  assert.deepEqual(await reap(), [], 'who came back is not told to be offline');
  assert.equal(await command('ZCARD', 'presence:untold'), 0);
});

test('unusual ids do not touch other keys', async () => {
  const odd = 'a:b {c}\r\nDEL x 😀';
  await command('SET', 'x', 1);
  await open(odd, 'c1', 'gw-1');
  assert.equal((await run('read', `user_connections:${odd}`, [odd]))[0][0], 'online');
  assert.equal(await command('GET', 'x'), '1');
  await sleep(WINDOW_MS + 50);
  const [reaped] = await reap();
  assert.ok(reaped.changed);
});
