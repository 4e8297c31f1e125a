/** Polling on several processes that share a port: each request may reach another process. */
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, afterEach, before, test } from 'node:test';
import { eventually, sleep } from '../support/client.mjs';
import { engineSend } from '../support/engine.mjs';
import {
  exchangeHeartbeats,
  expectAllAnswered,
  joinRoaming,
  OK,
  postInTurns,
  startOnSamePort,
  startRoaming,
  UNKNOWN_SID,
} from '../support/roaming.mjs';
import { startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo, TRANSPORTS } from '../support/socketio.mjs';

/** This many new connections reach both processes, except once in 10^9 runs. */
const REQUESTS = 30;
const CLIENTS = 30;
/** By then each client's poll has reached its session, and none is being moved by another process. */
const POLLS_WAIT_MS = 1000;

let first;
let second;
let token;

const startAnother = (nodeId) =>
  startOnSamePort(first, { args: ['--node-id', nodeId, '--workers', '2'] });

before(async () => {
  first = await startServer({
    args: ['--node-id', 'first', '--workers', '2'],
    settings: { 'gateway.share_port': true },
  });
  token = await first.token('roam');
  second = await startAnother('second');
});
after(async () => {
  assert.deepEqual([await second?.stop(), await first.stop()], [0, 0]);
});
afterEach(closeAllSocketIo);

const poll = (sid) => engineSend(first, { query: { sid } });

/** The process that has a client's session. */
async function processOf(client) {
  return (await client.next('connection_established')).server_id.replace(/-\d$/, '');
}

const connectMany = (transports) =>
  Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const client = await connectSocketIo(first, 'roam', { token, transports });
      client.process = await processOf(client);
      return client;
    }),
  );

test('a session is served by whichever process its requests reach', async () => {
  await exchangeHeartbeats(await joinRoaming(first, token), { requests: REQUESTS });
});

test('one connection serves sessions on several processes', async () => {
  await postInTurns(await Promise.all(Array.from({ length: 8 }, () => startRoaming(first))), Agent);
});

test('a large body arrives complete at another process', async () => {
  await exchangeHeartbeats(await joinRoaming(first, token), { requests: 12, paddingBytes: 400000 });
});

for (const [name, transports] of Object.entries(TRANSPORTS))
  test(`many clients are spread over both processes and answered, ${name}`, async () => {
    const clients = await connectMany(transports);
    assert.equal(new Set(clients.map(({ process }) => process)).size, 2, 'the clients are spread');
    await expectAllAnswered(clients, transports);
  });

test('invalid session ids are unknown and do no harm', async () => {
  const session = await startRoaming(first);
  const { sid } = session;
  const invalid = ['A'.repeat(sid.length), `${sid.slice(0, 8)}${'A'.repeat(22)}`, 'x', `${sid}A`];
  for (const other of invalid)
    for (let at = 0; at < 6; at += 1) assert.deepEqual(await poll(other), UNKNOWN_SID);
  assert.deepEqual(await session.post('3'), OK);
});

test('a draining process serves its polling clients until they are notified', async () => {
  const third = await startAnother('third');
  const clients = (await connectMany(['polling'])).filter(({ process }) => process === 'third');
  assert.ok(clients.length > 0);
  await sleep(POLLS_WAIT_MS);
  const closings = Promise.all(clients.map((client) => client.next('connection_closing')));
  const stopped = third.stop();
  await eventually(() => third.log().includes('event=draining'), 'the third process drains');
  for (const client of clients) client.emit('heartbeat', {}); // through the others: it accepts no new connections
  assert.equal(await stopped, 0);
  assert.ok((await closings).every(({ reason }) => reason === 'draining'));
  for (const client of clients) assert.notEqual(await processOf(client), 'third');
});

test('the sessions of a killed process are unknown, and its clients reconnect to the others', async () => {
  const third = await startAnother('third');
  const clients = await connectMany(['polling']);
  const ofThird = clients.filter(({ process }) => process === 'third');
  const others = clients.filter(({ process }) => process !== 'third');
  const cuts = [];
  for (const { socket } of others) socket.on('disconnect', () => cuts.push(socket.id));
  await sleep(POLLS_WAIT_MS);
  const sids = ofThird.map(({ socket }) => socket.io.engine.id);
  assert.ok(sids.length > 0);
  assert.equal(await third.stop('SIGKILL'), 'SIGKILL');
  for (const sid of sids) assert.deepEqual(await poll(sid), UNKNOWN_SID);
  for (const client of ofThird) assert.notEqual(await processOf(client), 'third');
  for (const client of clients)
    assert.ok('server_time' in (await client.ask('heartbeat', {})));
  assert.deepEqual(cuts, [], 'no other client was disconnected');
});
