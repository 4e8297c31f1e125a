/** Polling on several workers: every request may reach another one, and the session does not mind. */
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, devToken, eventually, rest } from './support/client.mjs';
import { befriend, people } from './support/people.mjs';
import { startServer } from './support/server.mjs';
import {
  closeAllSocketIo,
  connectSocketIo,
  engineSend,
  EngineSession,
  SEPARATOR,
  TRANSPORTS,
} from './support/socketio.mjs';

const WORKERS = 4;
/** So many new connections meet every one of a few workers. */
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

const send = (sid, options) => engineSend(server, sid, options);

test('a session is served by whichever worker its requests reach', async () => {
  const session = await EngineSession.start(server);
  await session.join(await devToken(server, 'roam'));
  for (let at = 0; at < REQUESTS; at += 1) {
    const posted = await send(session.sid, { method: 'POST', body: `42${at}["heartbeat",{}]` });
    assert.deepEqual(posted, { status: 200, text: 'ok' });
    let packets = [];
    while (!packets.some((packet) => packet.startsWith(`43${at}[`))) {
      const { status, text } = await send(session.sid);
      assert.equal(status, 200, text);
      packets = text.split(SEPARATOR);
    }
  }
});

test('a connection that was handed over serves further requests, of others too', async () => {
  const sessions = await Promise.all(
    Array.from({ length: 8 }, () => EngineSession.start(server)),
  );
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round < 10; round += 1)
    for (const { sid } of sessions)
      assert.deepEqual(await send(sid, { method: 'POST', body: '3', agent }), {
        status: 200,
        text: 'ok',
      });
  agent.destroy();
});

test('a large body arrives whole at another worker', async () => {
  const session = await EngineSession.start(server);
  await session.join(await devToken(server, 'large'));
  const padding = ' '.repeat(60000);
  for (let at = 0; at < 12; at += 1) {
    await send(session.sid, { method: 'POST', body: `42${at}["heartbeat",${padding}{}]` });
    await session.until((packet) => packet.startsWith(`43${at}[`));
  }
});

for (const [transport, transports] of Object.entries(TRANSPORTS))
  test(`many clients, ${transport}`, async () => {
    const [ann] = people('ann');
    const token = await devToken(server, ann);
    const clients = await Promise.all(
      Array.from({ length: 24 }, () => connectSocketIo(server, ann, { token, transports })),
    );
    if (transports.length === 2) await Promise.all(clients.map((client) => client.upgraded()));
    const answers = await Promise.all(clients.map((client) => client.ask('heartbeat', {})));
    assert.ok(answers.every((answer) => 'server_time' in answer));
    const admin = await server.token('root', { scope: 'admin' });
    const path = `/admin/v1/connections?user=${ann}`;
    const { body } = await rest(server, 'GET', path, { token: admin });
    assert.equal(body.connections.length, clients.length);
    const places = new Set(body.connections.map(({ server_id: id }) => id));
    assert.ok(places.size > 1, 'they are spread');
  });

test('friends on different workers, polling and native, see each other', async () => {
  const [ann, bob] = people('ann', 'bob');
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
    }, 'offline');
  }
});
