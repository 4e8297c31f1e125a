/** The stock emitter and adapter on a Redis Cluster: they publish with PUBLISH, which reaches every node. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { createAdapter } from '@socket.io/redis-adapter';
import { Emitter } from '@socket.io/redis-emitter';
import { Cluster } from 'ioredis';
import { Server } from 'socket.io';
import { closeAll, connect, eventually, rest, sleep } from '../support/client.mjs';
import { startFleet } from '../support/fleet.mjs';
import { startCluster } from '../support/redis.mjs';
import { closeAllSocketIo, connectSocketIo } from '../support/socketio.mjs';

let redis, fleet, gateways, client, emitter;
const connectToCluster = () => new Cluster(redis.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));

/** The nodes on which somebody listens by a pattern. */
async function listenedTo() {
  const counts = await Promise.all((await redis.masters()).map(async (node) => [node, await node.command('PUBSUB', 'NUMPAT')]));
  return counts.filter(([, count]) => Number(count) > 0).map(([node]) => node);
}

before(async () => {
  redis = await startCluster();
  fleet = await startFleet({ redis, settings: { 'socketio.adapter': true } });
  gateways = fleet.gateways;
  client = connectToCluster();
  client.on('error', () => {}); // while a node is away
  emitter = new Emitter(client);
  await eventually(async () => (await listenedTo()).length > 0, 'the gateways listen');
});

after(async () => {
  closeAll();
  closeAllSocketIo();
  client.disconnect();
  await fleet.stop();
  await redis.stop();
});

/** Emits a name of its own again and again until a client has one: what was published before the subscription is lost. */
async function emitUntilHeard(room, one) {
  const heard = () => one.events.some(({ name }) => name.startsWith('try-'));
  for (let i = 0; !heard() && i < 300; i += 1) {
    emitter.to(room).emit(`try-${i}`);
    await sleep(100);
  }
  assert.ok(heard(), `${room} hears`);
}

test('users and chats get each event once, whichever node it is published on', async () => {
  const [carol, dave] = await Promise.all(['carol', 'dave'].map((user, i) => connectSocketIo(gateways[i], user)));
  const native = await connect(gateways[1], 'carol');
  await rest(gateways[0], 'POST', 'v1/chats', { user: 'carol', body: { chat_id: 'team', members: ['dave'] } });
  await emitUntilHeard('u:carol', carol);
  await emitUntilHeard('u:dave', dave);
  for (const [i, node] of client.nodes('master').entries()) {
    const direct = new Emitter(node);
    direct.to('u:carol').emit('to-carol', i);
    direct.to('team').emit('to-team', i);
  }
  const mark = `end-${Math.random()}`;
  await Promise.all([carol, dave].map((one) => eventually(() => one.count('to-team') === 3, 'three events')));
  emitter.to('team').emit(mark);
  await Promise.all([carol.next(mark), dave.next(mark)]);
  assert.deepEqual([carol.count('to-carol'), carol.count('to-team'), dave.count('to-carol'), dave.count('to-team')], [3, 3, 0, 3]);
  const got = await native.next(({ event }) => event === 'to-carol');
  assert.equal(got.type, 'delivery');
});

test('a Node server with the stock adapter on the cluster reaches our clients', async () => {
  const http = createServer();
  const io = new Server(http);
  const clients = [connectToCluster(), connectToCluster()];
  io.adapter(createAdapter(...clients));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const erin = await connectSocketIo(gateways[0], 'erin');
  await emitUntilHeard('u:erin', erin);
  io.to('u:erin').emit('from-node', { a: 1 });
  assert.deepEqual(await erin.next('from-node'), { a: 1 });
  await io.close();
  clients.forEach((one) => one.disconnect());
});

test('events go on after the node with the subscription has died', async () => {
  const frank = await connectSocketIo(gateways[1], 'frank');
  await emitUntilHeard('u:frank', frank);
  const [node] = await listenedTo();
  const { port } = node;
  await redis.killNode(node);
  frank.events.length = 0;
  await emitUntilHeard('u:frank', frank);
  assert.ok((await listenedTo()).every((other) => other.port !== port));
});
