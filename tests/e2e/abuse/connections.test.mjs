/** One token or address cannot take the places, the memory or the Redis of others. Every test has a victim. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { closeAll, connect, deliver, eventually, metric, rest, sleep } from '../support/client.mjs';
import { assertInvariants, BACKENDS, QUICK, QUICK_WINDOW_MS, startFleet } from '../support/fleet.mjs';
import { destroyAll, frame, OPCODE, rawConnect, rawWebSocket, request } from '../support/raw.mjs';
import { freePorts } from '../support/redis.mjs';
import { residentBytes, startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo, nextEvent } from '../support/socketio.mjs';

const endings = [];

afterEach(async () => {
  closeAll();
  closeAllSocketIo();
  destroyAll();
  for (const end of endings.splice(0).reverse()) await end();
});

async function serve(settings = {}, args = ['--workers', '1']) {
  const server = await startServer({ args, settings });
  endings.push(() => server.stop());
  return server;
}

const beat = (client) => client.ask({ type: 'heartbeat' });

/** The milliseconds that a victim waits for the answer to a heartbeat: the median of several. */
async function heartbeatMs(victim, count = 21) {
  const times = [];
  for (let n = 0; n < count; n += 1) {
    const began = performance.now();
    await beat(victim);
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[count >> 1];
}

test('of too many connections of a user the one that was silent longest is closed with 4006', async () => {
  const server = await serve({ 'limits.connections_per_user': 3 });
  const victim = await connect(server, 'victim');
  const [first, second, third] = [
    await connect(server, 'eager'),
    await connect(server, 'eager'),
    await connect(server, 'eager'),
  ];
  await sleep(20);
  for (const client of [first, third, victim]) await beat(client);
  const fourth = await connect(server, 'eager');
  const closing = await second.next('connection_closing');
  assert.equal(closing.reason, 'too_many_connections');
  assert.equal(closing.reconnect_allowed, false);
  assert.equal((await second.ended()).code, 4006);
  for (const client of [first, third, fourth, victim])
    assert.equal((await beat(client)).type, 'heartbeat_ack');
  assert.equal(await metric(server, 'gateway_connections_evicted'), 1);
  const admin = await server.token('root', { scope: 'admin' });
  const { body } = await rest(server, 'GET', '/admin/v1/connections?user=eager', { token: admin });
  assert.equal(body.connections.length, 3);
});

test('the limit of connections holds over workers and dialects', async () => {
  const server = await serve({ 'limits.connections_per_user': 4 }, ['--workers', '2']);
  const clients = [];
  for (const transports of [['websocket'], ['polling']]) {
    const client = await connectSocketIo(server, 'eager', { transports });
    clients.push({ client, gone: nextEvent(client.socket, 'disconnect') });
    await sleep(5);
  }
  for (let n = 0; n < 6; n += 1) {
    await connect(server, 'eager');
    await sleep(5);
  }
  for (const { client, gone } of clients) {
    assert.equal((await client.next('connection_closing')).reason, 'too_many_connections');
    assert.equal(await gone, 'io server disconnect');
    assert.equal(client.socket.active, false, 'it does not reconnect by itself');
  }
  await eventually(async () => (await metric(server, 'gateway_connections_active')) === 4, 'four are left');
  assert.equal(await metric(server, 'gateway_connections_evicted'), 4);
});

for (const [name, backend] of Object.entries(BACKENDS))
  test(`the limit of connections holds over the gateways of a fleet (${name})`, async () => {
    const redis = await backend.start();
    endings.push(() => redis.stop());
    const fleet = await startFleet({ redis, settings: { ...QUICK, 'limits.connections_per_user': 4 } });
    endings.push(() => fleet.stop());
    const clients = [];
    for (let n = 0; n < 12; n += 1) {
      clients.push(await connect(fleet.gateways[n % 2], 'eager'));
      await sleep(10);
    }
    for (const client of clients.slice(0, 8)) {
      assert.equal((await client.next('connection_closing')).reason, 'too_many_connections');
      assert.equal((await client.ended()).code, 4006);
    }
    for (const client of clients.slice(8)) assert.equal((await beat(client)).type, 'heartbeat_ack');
    await assertInvariants(redis, QUICK_WINDOW_MS);
  });

test('a user with 400 connections costs Redis and others no more than one with few', async () => {
  const redis = await BACKENDS.standalone.start();
  endings.push(() => redis.stop());
  const fleet = await startFleet({ redis, gateways: ['gw-001'], settings: { ...QUICK, 'limits.connections_per_user': 0 } });
  endings.push(() => fleet.stop());
  const [gateway] = fleet.gateways;
  const victim = await connect(gateway, 'victim');
  const token = await gateway.token('many');
  /** Opens connections; returns how many microseconds a script took on average. */
  const opened = async (count) => {
    await redis.command('CONFIG', 'RESETSTAT');
    for (let n = 0; n < count; n += 1) await connect(gateway, 'many', { token });
    const stats = await redis.command('INFO', 'commandstats');
    const [, calls, usec] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(stats);
    return Number(usec) / Number(calls);
  };
  const alone = await heartbeatMs(victim);
  const few = await opened(50);
  await opened(300);
  const many = await opened(50);
  assert.ok(many < 4 * few + 100, `a script takes ${few} µs with few connections, ${many} µs with 400`);
  const beside = await heartbeatMs(victim);
  assert.ok(beside < 5 * alone + 50, `a heartbeat takes ${alone} ms, beside 400 connections ${beside} ms`);
  await assertInvariants(redis, QUICK_WINDOW_MS);
});

test('when all places are taken, the user with most connections gives way', async () => {
  const server = await serve({ 'gateway.max_connections': 12, 'limits.connections_per_user': 0 });
  const victim = await connect(server, 'victim');
  const greedy = [];
  const token = await server.token('greedy');
  for (let n = 0; n < 11; n += 1) {
    greedy.push(await connect(server, 'greedy', { token }));
    await sleep(2);
  }
  await sleep(50);
  const late = await connect(server, 'late');
  assert.equal((await greedy[0].next('connection_closing')).reason, 'too_many_connections');
  assert.equal((await greedy[0].ended()).code, 4006);
  for (const client of [victim, late, ...greedy.slice(1)])
    assert.equal((await beat(client)).type, 'heartbeat_ack');
});

/** Whether a new connection from this loopback address is taken. */
async function statusFrom(server, localAddress, first = '', headers = []) {
  const socket = rawConnect(server, { localAddress });
  await socket.connected;
  socket.send(first, request('GET', '/healthz', headers));
  const { status, headers: answered } = await socket.response();
  return { socket, status, retryAfter: answered['retry-after'] };
}

test('an address has limits.connections_per_address connections, others are not affected', async () => {
  const server = await serve({ 'limits.connections_per_address': 3 }, ['--workers', '2']);
  const held = [];
  for (let n = 0; n < 3; n += 1) held.push(await statusFrom(server, '127.0.0.2'));
  for (const { status } of held) assert.equal(status, 200);
  const over = await statusFrom(server, '127.0.0.2');
  assert.equal(over.status, 429);
  assert.ok(Number(over.retryAfter) > 0);
  assert.equal((await statusFrom(server, '127.0.0.3')).status, 200);
  held[0].socket.destroy();
  await eventually(async () => (await statusFrom(server, '127.0.0.2')).status === 200, 'the place is free again');
  const forged = await statusFrom(server, '127.0.0.2', '', ['X-Forwarded-For: 192.0.2.9']);
  assert.equal(forged.status, 429, 'who is not trusted names nobody');
  assert.ok((await metric(server, 'gateway_address_refused')) >= 2);
});

const PROXY_V2 = (address) =>
  Buffer.from([
    ...Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'),
    0x21, 0x11, 0, 12, ...address.split('.').map(Number), 127, 0, 0, 1, 0x10, 0, 0x01, 0xbb,
  ]);

test('trusted proxies name the address of a client, in X-Forwarded-For or by the PROXY protocol', async () => {
  const server = await serve({
    'limits.connections_per_address': 1,
    'gateway.trusted_proxies': '127.0.0.2,10.0.0.0/8',
  });
  const from = (first, headers) => statusFrom(server, '127.0.0.2', first, headers);
  const forwarded = (value) => from('', [`X-Forwarded-For: ${value}`]);
  assert.equal((await forwarded('192.0.2.1')).status, 200);
  assert.equal((await forwarded('198.51.100.1, 192.0.2.1')).status, 429);
  assert.equal((await forwarded('192.0.2.1, 192.0.2.2, 10.0.0.7')).status, 200);
  assert.equal((await forwarded('[2001:db8::1]:4711')).status, 200);
  assert.equal((await forwarded('2001:db8::2')).status, 429, 'the same /64');
  assert.equal((await from('PROXY TCP4 192.0.2.3 127.0.0.1 1 2\r\n')).status, 200);
  assert.equal((await from('PROXY TCP4 192.0.2.3 127.0.0.1 1 2\r\n')).status, 429);
  assert.equal((await from(PROXY_V2('192.0.2.4'))).status, 200);
  assert.equal((await from(PROXY_V2('192.0.2.4'))).status, 429);
  for (let n = 0; n < 3; n += 1) assert.equal((await from('')).status, 200, 'the proxy itself is not limited');
  assert.equal((await from('PROXY TCP4 nonsense\r\n')).status, 400);
  assert.equal((await statusFrom(server, '127.0.0.3', 'PROXY TCP4 192.0.2.5 127.0.0.1 1 2\r\n')).status, 400);
  assert.equal((await statusFrom(server, '127.0.0.4', PROXY_V2('192.0.2.5'))).status, 400);
});

test('HAProxy passes on the addresses of its clients with send-proxy-v2', async () => {
  const server = await serve({ 'limits.connections_per_address': 2, 'gateway.trusted_proxies': '127.0.0.1' });
  const [port] = await freePorts(1);
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-haproxy-'));
  await writeFile(
    join(directory, 'haproxy.cfg'),
    `defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n` +
      `listen front\n  bind 127.0.0.1:${port}\n  server one 127.0.0.1:${server.port} send-proxy-v2\n`,
  );
  const child = spawn('haproxy', ['-db', '-f', join(directory, 'haproxy.cfg')], {
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: 'ignore',
  });
  endings.push(async () => {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    await rm(directory, { recursive: true });
  });
  const front = { port };
  const answers = () => statusFrom(front, '127.0.0.9').then(({ socket }) => !socket.destroy(), () => false);
  await eventually(answers, 'HAProxy answers');
  for (const expected of [200, 200, 429]) assert.equal((await statusFrom(front, '127.0.0.5')).status, expected);
  assert.equal((await statusFrom(front, '127.0.0.6')).status, 200);
});

test('the largest holder of memory gives way first, told memory_pressure', async () => {
  const settings = {
    'gateway.backpressure.outbound.max_buffer_bytes': 1 << 28,
    'gateway.backpressure.outbound.max_buffer_messages': 30000,
    'gateway.socket_unsent_bytes_max': 4096,
  };
  const probe = await serve(settings);
  await connect(probe, 'probe');
  const limit = (await residentBytes(probe)) + (40 << 20);
  const server = await serve({ ...settings, 'gateway.memory_limit_bytes': limit });
  const [hoarder, victim] = [await connect(server, 'hoarder'), await connect(server, 'victim')];
  hoarder.socket.pause();
  const token = await server.token('operator', { scope: 'deliver' });
  const data = { text: 'x'.repeat(60000) };
  for (let n = 0; n < 3000 && !/event=memory_pressure/.test(server.log()); n += 1)
    await deliver(server, token, 'hoarder', data).catch(() => {});
  await eventually(() => metric(server, 'gateway_memory_shed'), 'somebody gives way');
  assert.equal((await beat(victim)).type, 'heartbeat_ack');
  hoarder.socket.resume();
  assert.equal((await hoarder.next('connection_closing')).reason, 'memory_pressure');
  assert.equal((await hoarder.ended()).code, 4004);
  assert.ok(hoarder.messages.length < 300, 'what it held was dropped');
});

test('bodies of clients without a token take no memory', async () => {
  const server = await serve();
  const victim = await connect(server, 'victim');
  await heartbeatMs(victim);
  const before = await residentBytes(server);
  const body = Buffer.alloc(2000000, 'x');
  const nameless = [];
  for (let n = 0; n < 60; n += 1) {
    const socket = rawConnect(server);
    await socket.connected;
    const headers = ['Content-Type: application/json', `Content-Length: ${body.length + 1}`];
    if (n % 2) headers.push('Authorization: Bearer a.b.c');
    socket.send(request('POST', '/v1/chats', headers), body.subarray(0, body.length / 2));
    nameless.push(socket);
  }
  for (const socket of nameless) assert.equal((await socket.response()).status, 401);
  assert.equal((await beat(victim)).type, 'heartbeat_ack');
  const grown = (await residentBytes(server)) - before;
  assert.ok(grown < 30e6, `${grown} bytes more`);
  assert.equal(await metric(server, 'gateway_held_body_bytes'), 0);
});

test('an unfinished message ends after gateway.timeouts.message_seconds, whatever pings come', async () => {
  const server = await serve({ 'gateway.timeouts.message_seconds': 1 });
  const headers = [`Authorization: Bearer ${await server.token('sly')}`];
  const socket = await rawWebSocket(server, '/v1/ws', headers);
  await socket.frame(); // connection_established
  const began = Date.now();
  socket.send(frame(OPCODE.text, 'x'.repeat(1000), { fin: false }));
  const pinging = setInterval(() => socket.send(frame(OPCODE.ping)), 100);
  endings.push(() => clearInterval(pinging));
  let last;
  do last = await socket.frame();
  while (last.opcode !== OPCODE.close);
  clearInterval(pinging);
  assert.equal(last.payload.readUInt16BE(0), 1008);
  assert.ok(Date.now() - began >= 900, 'not before its time');
  assert.equal(await metric(server, 'gateway_messages_unfinished'), 1);
});

test('an unfinished body is answered with 408 after gateway.timeouts.message_seconds', async () => {
  const server = await serve({ 'gateway.timeouts.message_seconds': 0.5 });
  const socket = rawConnect(server);
  await socket.connected;
  const headers = [`Authorization: Bearer ${await server.token('slow')}`, 'Content-Length: 100'];
  socket.send(request('PATCH', '/v1/me', headers), '{"presence_');
  assert.equal((await socket.response()).status, 408);
});
