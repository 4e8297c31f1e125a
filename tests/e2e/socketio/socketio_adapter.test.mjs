/** What the stock emitter, and Node servers with the stock Redis adapter, publish reaches our clients. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { createAdapter } from '@socket.io/redis-adapter';
import { Emitter } from '@socket.io/redis-emitter';
import { Redis } from 'ioredis';
import notepack from 'notepack.io';
import { Server } from 'socket.io';
import { closeAll, connect, eventually, metric, rest, sleep } from '../support/client.mjs';
import { PARSERS, closeAllSocketIo, connectSocketIo, openSocketIo, nextEvent } from '../support/socketio.mjs';
import { startFleet } from '../support/fleet.mjs';
import { startRedis } from '../support/redis.mjs';
import { startServer } from '../support/server.mjs';

let redis, fleet, gateways, client, emitter;
const connectToRedis = () => new Redis(Number(new URL(redis.url).port), '127.0.0.1');

/** A Node server on the same Redis, as a team has it that moves over. */
async function startNode() {
  const http = createServer();
  const io = new Server(http);
  const clients = [connectToRedis(), connectToRedis()];
  io.adapter(createAdapter(...clients));
  io.on('connection', (socket) => socket.on('join', (room, done) => { socket.join(room); done(); }));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const node = { io, url: `http://127.0.0.1:${http.address().port}/` };
  node.stop = async () => {
    await io.close();
    clients.forEach((one) => one.disconnect());
  };
  return node;
}

before(async () => {
  redis = await startRedis();
  fleet = await startFleet({ redis, settings: { 'socketio.adapter': true } });
  gateways = fleet.gateways;
  client = connectToRedis();
  emitter = new Emitter(client);
  await eventually(async () => (await client.pubsub('NUMPAT')) === 2, 'every worker listens by the same two patterns');
  await eventually(async () => /sub=0 psub=2/.test(await client.client('LIST')), 'a subscriber');
});

after(async () => {
  closeAll();
  closeAllSocketIo();
  client.disconnect();
  await fleet.stop();
  await redis.stop();
});

/** Everything that a client got under a name, once a last event has come. */
async function untilDone(clients, user) {
  const mark = `done-${Math.random()}`;
  emitter.to(`u:${user}`).emit(mark);
  await Promise.all(clients.map((one) =>
    'ask' in one && one.socket.io ? one.next(mark) : one.next(({ event }) => event === mark)));
}

const names = (one) => one.events.map(({ name }) => name);

test('to a user: all devices on all gateways, each once, with every argument, in order', async () => {
  const devices = await Promise.all(gateways.flatMap((gateway) =>
    [...Object.values(PARSERS)].map((parser) => connectSocketIo(gateway, 'alice', { parser }))));
  const native = await connect(gateways[1], 'alice');
  const other = await connectSocketIo(gateways[0], 'bob');
  for (let i = 0; i < 20; i += 1) emitter.to('u:alice').emit('step', i, { deep: [null, 'é"'] }, true);
  emitter.to('u:alice').emit('bare');
  emitter.to('u:alice').emit('one', { a: 1 });
  await untilDone(devices, 'alice');
  for (const device of devices) {
    const steps = device.events.filter(({ name }) => name === 'step').map(({ args }) => args.slice(0, 3));
    assert.deepEqual(steps, Array.from({ length: 20 }, (_, i) => [i, { deep: [null, 'é"'] }, true]));
    assert.equal(names(device).filter((name) => name === 'bare' || name === 'one').length, 2);
  }
  const one = await native.next(({ event }) => event === 'one');
  assert.deepEqual([one.type, one.data, 'args' in one], ['delivery', { a: 1 }, false]);
  const step = await native.next(({ event }) => event === 'step');
  assert.deepEqual([step.data, step.args], [0, [0, { deep: [null, 'é"'] }, true]]);
  const bare = await native.next(({ event }) => event === 'bare');
  assert.deepEqual([bare.data, bare.args], [null, []]);
  assert.equal(other.events.filter(({ name }) => name === 'step').length, 0);
});

test('a chat’s room is its members; except takes users and chats out', async () => {
  const members = ['carol', 'dave', 'erin'];
  const chat = (await rest(gateways[0], 'POST', 'v1/chats', { user: 'carol', body: { chat_id: 'team', members } })).body;
  assert.equal(chat.chat_id, 'team');
  const [carol, dave, erin, frank] = await Promise.all(
    [...members, 'frank'].map((user, i) => connectSocketIo(gateways[i % 2], user)));
  emitter.to('team').emit('to-team', 1);
  emitter.to('team').except('u:dave').emit('not-dave', 1);
  emitter.to('team').to('u:frank').to('u:carol').emit('each-once', 1);
  emitter.except('team').emit('not-team', 1);
  emitter.except('u:frank').emit('not-frank', 1);
  emitter.to('lobby').emit('nobody', 1);
  emitter.to('lobby').except('team').emit('nobody', 1);
  emitter.emit('everybody', 1);
  await Promise.all([carol, dave, erin, frank].map((one) => one.next('everybody')));
  const got = (one) => names(one).filter((name) => /team|dave|once|frank|nobody/.test(name)).sort();
  assert.deepEqual(got(carol), ['each-once', 'not-dave', 'not-frank', 'to-team']);
  assert.deepEqual(got(dave), ['each-once', 'not-frank', 'to-team']);
  assert.deepEqual(got(erin), ['each-once', 'not-dave', 'not-frank', 'to-team']);
  assert.deepEqual(got(frank), ['each-once', 'not-team']);
});

test('binary arguments come as JSON.stringify() writes a Buffer', async () => {
  const grace = await connectSocketIo(gateways[0], 'grace');
  emitter.to('u:grace').emit('bytes', Buffer.from([0, 127, 255]), { inside: Buffer.from('x') });
  await untilDone([grace], 'grace');
  const { args } = grace.events.find(({ name }) => name === 'bytes');
  assert.deepEqual(Buffer.from(args[0]), Buffer.from([0, 127, 255]));
  assert.deepEqual(Buffer.from(args[1].inside), Buffer.from('x'));
});

test('a Node server and our gateways serve one room together; local stays local', async () => {
  const node = await startNode();
  const heidi = await connectSocketIo(gateways[0], 'heidi');
  const native = await connect(gateways[1], 'heidi');
  const theirs = openSocketIo(node);
  await nextEvent(theirs.socket, 'connect');
  await theirs.ask('join', 'u:heidi').catch(() => {});
  node.io.to('u:heidi').emit('hello', 'from node');
  node.io.local.to('u:heidi').emit('only-local', 1);
  node.io.of('/admin').to('u:heidi').emit('elsewhere', 1);
  for (const socket of node.io.sockets.sockets.values()) socket.broadcast.emit('broadcast', 1);
  await Promise.all([heidi.next('broadcast'), native.next(({ event }) => event === 'broadcast')]);
  assert.equal(theirs.count('hello'), 1);
  assert.equal(theirs.count('broadcast'), 0);
  assert.equal(heidi.events.find(({ name }) => name === 'hello').args[0], 'from node');
  assert.deepEqual(names(heidi).filter((name) => /local|elsewhere/.test(name)), []);
  theirs.close();
  await node.stop();
});

test('Node servers do not wait for us in fetchSockets(), allRooms() and serverSideEmit()', async () => {
  const [one, two] = [await startNode(), await startNode()];
  await eventually(async () => (await one.io.of('/').adapter.serverCount()) >= 2, 'Node servers see one another');
  const begun = Date.now();
  assert.ok(Array.isArray(await one.io.fetchSockets()));
  assert.ok((await one.io.of('/').adapter.allRooms()) instanceof Set);
  one.io.serverSideEmit('unheard', 1);
  emitter.serverSideEmit('unheard', 1);
  emitter.socketsJoin('elsewhere');
  assert.ok(Date.now() - begun < 4000, 'the adapter’s time limit is 5 s');
  await Promise.all([one.stop(), two.stop()]); // the stock adapter does not survive the garbage below
});

test('disconnectSockets() ends the sockets of its rooms, told as by an administrator', async () => {
  const [ivan, judy] = await Promise.all(['ivan', 'judy'].map((user) => connectSocketIo(gateways[0], user)));
  const native = await connect(gateways[1], 'ivan');
  const reason = ivan.disconnected();
  emitter.in('u:ivan').disconnectSockets(true);
  assert.equal((await native.next('connection_closing')).reason, 'admin');
  assert.equal((await native.ended()).code, 4005);
  assert.equal(await reason, 'io server disconnect');
  emitter.in('lobby').disconnectSockets();
  await untilDone([judy], 'judy');
  assert.ok(judy.socket.connected);
  emitter.except('u:judy').disconnectSockets();
  const mallory = await connectSocketIo(gateways[1], 'mallory');
  const ended = mallory.disconnected();
  emitter.except('u:judy').disconnectSockets();
  await ended;
  assert.ok(judy.socket.connected);
});

test('garbage is dropped and counted, and harms nobody', async () => {
  const before = await metric(gateways[0], 'socketio_adapter_dropped');
  const kim = await connectSocketIo(gateways[0], 'kim');
  const garbage = ['', 'x', '{', '{"type":4,"opts":{"rooms":"all"}}', Buffer.from([0x93]), Buffer.from([0xdd, 255, 255, 255, 255]),
    Buffer.alloc(100000, 0x91), Buffer.from([0x93, 0xa1, 0x78, 0x80, 0x80]), Buffer.alloc(1100000, 0xc0)];
  for (const bytes of garbage) {
    await client.publish('socket.io#/#', bytes);
    await client.publish('socket.io-request#/#', bytes);
  }
  const reserved = ['x', { type: 2, data: ['connect'], nsp: '/' }, { rooms: ['u:kim'], except: [], flags: {} }];
  await client.publish('socket.io#/#', Buffer.from(notepack.encode(reserved)));
  await untilDone([kim], 'kim');
  assert.ok((await metric(gateways[0], 'socketio_adapter_dropped')) >= before + 8);
  assert.ok(kim.socket.connected);
});

test('without socketio.adapter nothing is listened to', async () => {
  const patterns = await client.pubsub('NUMPAT');
  const plain = await startServer({ args: ['--state', redis.url, '--node-id', 'gw-plain'] });
  await connectSocketIo(plain, 'leo');
  await sleep(100);
  assert.equal(await client.pubsub('NUMPAT'), patterns);
  await plain.stop();
});
