/** Polling on several processes that share a port: every request may reach another one. */
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, afterEach, before, test } from 'node:test';
import { eventually, sleep } from '../support/client.mjs';
import { engineSend } from '../support/engine.mjs';
import {
  expectAllAnswered,
  joinRoaming,
  OK,
  exchangeHeartbeats,
  startOnSamePort,
  startRoaming,
  postInTurns,
  UNKNOWN_SID,
} from '../support/roaming.mjs';
import { startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo, TRANSPORTS } from '../support/socketio.mjs';

/** So many new connections meet both processes, but for one time in 10^9. */
const REQUESTS = 30;
const CLIENTS = 30;
/** By then each client's poll waits where its session is, and none is on its way through another process. */
const POLLS_WAIT_MS = 1000;

let first;
let second;
let token;

const startAnother = (nodeId) =>
  startOnSamePort(first, { args: ['--node-id', nodeId, '--workers', '2'] });

before(async () => {
  first = await startServer({ args: ['--node-id', 'first', '--workers', '2'] });
  token = await first.token('roam');
  second = await startAnother('second');
});
after(async () => {
  assert.equal(await second?.stop(), 0);
  assert.equal(await first.stop(), 0);
});
afterEach(closeAllSocketIo);

const poll = (sid) => engineSend(first, { query: { sid } });

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
  await exchangeHeartbeats(await joinRoaming(first, token), { requests: REQUESTS });
});

test('a connection goes back and forth between processes', async () => {
  await postInTurns(await Promise.all(Array.from({ length: 8 }, () => startRoaming(first))), Agent);
});

test('a large body arrives whole at another process', async () => {
  await exchangeHeartbeats(await joinRoaming(first, token), { requests: 12, paddingBytes: 400000 });
});

for (const [name, transports] of Object.entries(TRANSPORTS))
  test(`many clients, ${name}`, async () => {
    const clients = await connectMany(transports);
    assert.equal(new Set(clients.map(({ place }) => place)).size, 2, 'they are spread');
    await expectAllAnswered(clients, transports);
  });

test('ids that name nobody are unknown, and nothing else happens', async () => {
  const session = await startRoaming(first);
  const { sid } = session;
  const strange = ['A'.repeat(sid.length), `${sid.slice(0, 8)}${'A'.repeat(22)}`, 'x', `${sid}A`];
  for (const other of strange)
    for (let at = 0; at < 6; at += 1) assert.deepEqual(await poll(other), UNKNOWN_SID);
  assert.deepEqual(await session.post('3'), OK);
});

test('a process that drains serves its polling clients until it has told them', async () => {
  const third = await startAnother('third');
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
  const third = await startAnother('third');
  const clients = await connectMany(['polling']);
  const hers = clients.filter(({ place }) => place === 'third');
  const others = clients.filter(({ place }) => place !== 'third');
  const cuts = [];
  for (const { socket } of others) socket.on('disconnect', () => cuts.push(socket.id));
  await sleep(POLLS_WAIT_MS);
  const sids = hers.map(({ socket }) => socket.io.engine.id);
  assert.ok(sids.length > 0);
  assert.equal(await third.stop('SIGKILL'), 'SIGKILL');
  for (const sid of sids) assert.deepEqual(await poll(sid), UNKNOWN_SID);
  for (const client of hers) assert.notEqual(await placeOf(client), 'third');
  for (const client of clients)
    assert.ok('server_time' in (await client.ask('heartbeat', {})));
  assert.deepEqual(cuts, [], 'nobody else was cut');
});
