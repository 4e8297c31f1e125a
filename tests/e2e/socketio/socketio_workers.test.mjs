/** Polling on several workers: each request may reach another worker, and the session works all the same. */
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, devToken, eventually, rest } from '../support/client.mjs';
import { befriend, uniqueUsers } from '../support/contacts.mjs';
import {
  exchangeHeartbeats,
  expectAllAnswered,
  joinRoaming,
  postInTurns,
  startRoaming,
} from '../support/roaming.mjs';
import { startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo, TRANSPORTS } from '../support/socketio.mjs';

const WORKERS = 4;
/** This many new connections reach each of a few workers. */
const REQUESTS = 60;

let server;

before(async () => {
  server = await startServer({ args: ['--node-id', 'gw', '--workers', String(WORKERS)] });
});
after(async () => assert.equal(await server.stop(), 0));
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

test('a session is served by whichever worker its requests reach', async () => {
  await exchangeHeartbeats(await joinRoaming(server, await devToken(server, 'roam')), { requests: REQUESTS });
});

test('a connection that was moved to another worker serves further requests, also of other sessions', async () => {
  await postInTurns(await Promise.all(Array.from({ length: 8 }, () => startRoaming(server))), Agent);
});

test('a large body arrives complete at another worker', async () => {
  const session = await joinRoaming(server, await devToken(server, 'large'));
  await exchangeHeartbeats(session, { requests: 12, paddingBytes: 60000 });
});

for (const [transport, transports] of Object.entries(TRANSPORTS))
  test(`many clients are spread over the workers and answered, ${transport}`, async () => {
    const [ann] = uniqueUsers('ann');
    const token = await devToken(server, ann);
    const clients = await Promise.all(
      Array.from({ length: 24 }, () => connectSocketIo(server, ann, { token, transports })),
    );
    await expectAllAnswered(clients, transports);
    const admin = await server.token('root', { scope: 'admin' });
    const path = `/admin/v1/connections?user=${ann}`;
    const { body } = await rest(server, 'GET', path, { token: admin });
    assert.equal(body.connections.length, clients.length);
    const workers = new Set(body.connections.map(({ server_id: id }) => id));
    assert.ok(workers.size > 1, 'the clients are spread');
  });

test('polling and native friends on different workers receive each other’s presence', async () => {
  const [ann, bob] = uniqueUsers('ann', 'bob');
  await befriend(server, ann, bob);
  for (let at = 0; at < 6; at += 1) {
    const client = await connectSocketIo(server, ann, { transports: ['polling'] });
    const native = await connect(server, bob);
    await client.next('friend_online');
    native.terminate();
    await client.next('friend_offline');
    client.close();
    await eventually(async () => {
      const { body } = await rest(server, 'GET', `/v1/presence/${ann}`, { user: bob });
      return body.status === 'offline';
    }, `${ann} is offline`);
  }
});
