/** Polling over https: a TLS connection can move between workers, but not to another process. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { certificateSettings, makeCertificate } from '../support/certificate.mjs';
import {
  exchangeHeartbeats,
  expectAllAnswered,
  joinRoaming,
  postInTurns,
  startOnSamePort,
  startRoaming,
  UNKNOWN_SID,
} from '../support/roaming.mjs';
import { startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo, TRANSPORTS } from '../support/socketio.mjs';

const WORKERS = 4;
/** This many new connections reach each of a few workers. */
const REQUESTS = 40;
const CLIENTS = 24;

let directory;
let server;
let token;

const ARGS = ['--workers', String(WORKERS)];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-tls-'));
  await makeCertificate(directory, 'polled');
  server = await startServer({
    args: ARGS,
    settings: { 'gateway.share_port': true, ...certificateSettings(directory) },
  });
  token = await server.token('tess');
});
after(async () => {
  assert.equal(await server.stop(), 0);
  await rm(directory, { recursive: true, force: true });
});
afterEach(closeAllSocketIo);

const connectClient = (transports) =>
  connectSocketIo(server, 'tess', { token, transports, rejectUnauthorized: false });

test('a session is served by whichever worker its requests reach', async () => {
  await exchangeHeartbeats(await joinRoaming(server, token), { requests: REQUESTS });
});

test('a body of many TLS records arrives complete', async () => {
  await exchangeHeartbeats(await joinRoaming(server, token), { requests: 12, paddingBytes: 200000 });
});

test('one connection serves sessions on several workers', async () => {
  const sessions = Array.from({ length: 8 }, () => joinRoaming(server, token));
  await postInTurns(await Promise.all(sessions), Agent);
});

for (const [name, transports] of Object.entries(TRANSPORTS))
  test(`many clients are spread over the workers and answered, ${name}`, async () => {
    const clients = await Promise.all(
      Array.from({ length: CLIENTS }, () => connectClient(transports)),
    );
    await expectAllAnswered(clients, transports);
    const greetings = clients.map((client) => client.next('connection_established'));
    const ids = (await Promise.all(greetings)).map(({ server_id: id }) => id);
    assert.ok(new Set(ids).size > 1, 'the clients are spread');
  });

test('a request that reaches another process is refused, so that the client starts a new session', async () => {
  const second = await startOnSamePort(server, {
    args: [...ARGS, '--node-id', 'second'],
    settings: certificateSettings(directory),
  });
  const session = await startRoaming(server);
  const statuses = new Set();
  for (let at = 0; at < REQUESTS; at += 1) {
    const answer = await session.post('3');
    statuses.add(answer.status);
    if (answer.status !== 200) assert.deepEqual(answer, UNKNOWN_SID);
  }
  assert.deepEqual([...statuses].sort(), [200, 400]);
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () => connectClient(['websocket'])),
  );
  for (const client of clients) assert.ok('server_time' in (await client.ask('heartbeat', {})));
  assert.equal(await second.stop(), 0);
});
