/** Polling on several processes that share a port: every request may reach another one. */
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { eventually, sleep } from './support/client.mjs';
import { startServer } from './support/server.mjs';
import {
  closeAllSocketIo,
  connectSocketIo,
  engineSend,
  EngineSession,
  SEPARATOR,
  TRANSPORTS,
} from './support/socketio.mjs';

/** So many new connections meet both processes, but for one time in 10^9. */
const REQUESTS = 30;
const CLIENTS = 30;
/** By then each client's poll waits where its session is, and none is on its way through another process. */
const POLLS_WAIT_MS = 1000;
const UNKNOWN_SID = { status: 400, text: '{"code":1,"message":"Session ID unknown"}' };

let first;
let second;
let token;

/** Another process on the first one's port, a world of its own but for the keys. */
const startBeside = (nodeId) =>
  startServer({
    args: ['--node-id', nodeId, '--workers', '2'],
    port: first.port,
    settings: { 'auth.keys_file': join(first.dataDir, 'dev-jwks.json') },
  });

before(async () => {
  first = await startServer({ args: ['--node-id', 'first', '--workers', '2'] });
  token = await first.token('roam');
  second = await startBeside('second');
});
after(async () => {
  assert.equal(await second?.stop(), 0);
  assert.equal(await first.stop(), 0);
});
afterEach(closeAllSocketIo);

const send = (sid, options) => engineSend(first, sid, options);

/** Which process a client's session is on. */
async function placeOf(client) {
  return (await client.next('connection_established')).server_id.replace(/-\d$/, '');
}

const connectMany = (transports) =>
  Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const client = await connectSocketIo(first, 'roam', { token, transports });
      client.place = await placeOf(client);
      return client;
    }),
  );

test('a session is served by whichever process its requests reach', async () => {
  const session = await EngineSession.start(first);
  await session.join(token);
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

test('a connection goes back and forth between processes', async () => {
  const sessions = await Promise.all(Array.from({ length: 8 }, () => EngineSession.start(first)));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round < 10; round += 1)
    for (const { sid } of sessions)
      assert.deepEqual(await send(sid, { method: 'POST', body: '3', agent }), {
        status: 200,
        text: 'ok',
      });
  agent.destroy();
});

test('a large body arrives whole at another process', async () => {
  const session = await EngineSession.start(first);
  await session.join(token);
  const padding = ' '.repeat(400000);
  for (let at = 0; at < 12; at += 1) {
    const body = `42${at}["heartbeat",${padding}{}]`;
    assert.equal((await send(session.sid, { method: 'POST', body })).status, 200);
    await session.until((packet) => packet.startsWith(`43${at}[`));
  }
});

for (const [name, transports] of Object.entries(TRANSPORTS))
  test(`many clients, ${name}`, async () => {
    const clients = await connectMany(transports);
    if (transports.length === 2) await Promise.all(clients.map((client) => client.upgraded()));
    assert.equal(new Set(clients.map(({ place }) => place)).size, 2, 'they are spread');
    const answers = await Promise.all(clients.map((client) => client.ask('heartbeat', {})));
    assert.ok(answers.every((answer) => 'server_time' in answer));
  });

test('ids that name nobody are unknown, and nothing else happens', async () => {
  const { sid } = await EngineSession.start(first);
  const strange = ['A'.repeat(sid.length), `${sid.slice(0, 8)}${'A'.repeat(22)}`, 'x', `${sid}A`];
  for (const other of strange)
    for (let at = 0; at < 6; at += 1) assert.deepEqual(await send(other), UNKNOWN_SID);
  assert.equal((await send(sid, { method: 'POST', body: '3' })).status, 200);
});

test('a process that drains serves its polling clients until it has told them', async () => {
  const third = await startBeside('third');
  const clients = (await connectMany(['polling'])).filter(({ place }) => place === 'third');
  assert.ok(clients.length > 0);
  await sleep(POLLS_WAIT_MS);
  const told = Promise.all(clients.map((client) => client.next('connection_closing')));
  const stopped = third.stop();
  await eventually(() => third.log().includes('event=draining'), 'draining');
  for (const client of clients) client.emit('heartbeat', {}); // by way of the others: it accepts no more
  assert.equal(await stopped, 0);
  assert.ok((await told).every(({ reason }) => reason === 'draining'));
  for (const client of clients) assert.notEqual(await placeOf(client), 'third');
});

test('when a process dies its sessions are unknown, and clients come back to the others', async () => {
  const third = await startBeside('third');
  const clients = await connectMany(['polling']);
  const hers = clients.filter(({ place }) => place === 'third');
  const others = clients.filter(({ place }) => place !== 'third');
  const cuts = [];
  for (const { socket } of others) socket.on('disconnect', () => cuts.push(socket.id));
  await sleep(POLLS_WAIT_MS);
  const sids = hers.map(({ socket }) => socket.io.engine.id);
  assert.ok(sids.length > 0);
  assert.equal(await third.stop('SIGKILL'), 'SIGKILL');
  for (const sid of sids) assert.deepEqual(await send(sid), UNKNOWN_SID);
  for (const client of hers) assert.notEqual(await placeOf(client), 'third');
  for (const client of clients)
    assert.ok('server_time' in (await client.ask('heartbeat', {})));
  assert.deepEqual(cuts, [], 'nobody else was cut');
});
