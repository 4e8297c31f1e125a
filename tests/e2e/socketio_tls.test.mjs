/** Polling over https: a TLS session goes from worker to worker with its socket, but to no other process. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { certificateSettings, makeCertificate } from './support/certificate.mjs';
import { startServer } from './support/server.mjs';
import {
  closeAllSocketIo,
  connectSocketIo,
  engineSend,
  SEPARATOR,
  TRANSPORTS,
} from './support/socketio.mjs';

const WORKERS = 4;
/** So many new connections meet every one of a few workers. */
const REQUESTS = 40;
const CLIENTS = 24;
const OK = { status: 200, text: 'ok' };

let directory;
let server;
let token;

const start = (options = {}) => {
  const { args = [], settings, port } = options;
  return startServer({
    args: ['--workers', String(WORKERS), ...args],
    port,
    settings: { ...certificateSettings(directory), ...settings },
  });
};

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-tls-'));
  await makeCertificate(directory, 'polled');
  server = await start();
  token = await server.token('tess');
});
after(async () => {
  assert.equal(await server.stop(), 0);
  await rm(directory, { recursive: true, force: true });
});
afterEach(closeAllSocketIo);

const send = (sid, options) => engineSend(server, sid, options);
const post = (sid, body, agent) => send(sid, { method: 'POST', body, agent });

/** A session that has joined; its id. */
async function joined() {
  const { text } = await send('');
  const { sid } = JSON.parse(text.slice(1));
  assert.deepEqual(await post(sid, `40${JSON.stringify({ token })}`), OK);
  await packet(sid, (text) => text.startsWith('40'));
  return sid;
}

/** Polls, each time on a new connection, until a packet fits. */
async function packet(sid, fits) {
  for (;;) {
    const { status, text } = await send(sid);
    assert.equal(status, 200, text);
    const found = text.split(SEPARATOR).find(fits);
    if (found) return found;
  }
}

const connectOne = (transports) =>
  connectSocketIo(server, 'tess', { token, transports, rejectUnauthorized: false });

test('a session is served by whichever worker its requests reach', async () => {
  const sid = await joined();
  for (let at = 0; at < REQUESTS; at += 1) {
    assert.deepEqual(await post(sid, `42${at}["heartbeat",{}]`), OK);
    await packet(sid, (text) => text.startsWith(`43${at}[`));
  }
});

test('bodies of many records arrive whole', async () => {
  const sid = await joined();
  for (let at = 0; at < 12; at += 1) {
    assert.deepEqual(await post(sid, `42${at}["heartbeat",${' '.repeat(200000)}{}]`), OK);
    await packet(sid, (text) => text.startsWith(`43${at}[`));
  }
});

test('a connection goes from worker to worker and back', async () => {
  const sids = await Promise.all(Array.from({ length: 8 }, joined));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round < 10; round += 1)
    for (const sid of sids) assert.deepEqual(await post(sid, '3', agent), OK);
  agent.destroy();
});

for (const [name, transports] of Object.entries(TRANSPORTS))
  test(`many clients, ${name}`, async () => {
    const clients = await Promise.all(
      Array.from({ length: CLIENTS }, () => connectOne(transports)),
    );
    if (transports.length === 2) await Promise.all(clients.map((client) => client.upgraded()));
    const answers = await Promise.all(clients.map((client) => client.ask('heartbeat', {})));
    assert.ok(answers.every((answer) => 'server_time' in answer));
    const places = clients.map((client) => client.next('connection_established'));
    const ids = (await Promise.all(places)).map(({ server_id: id }) => id);
    assert.ok(new Set(ids).size > 1, 'they are spread');
  });

test('a request that reaches another process is refused, so that the client starts anew', async () => {
  const second = await start({
    args: ['--node-id', 'second'],
    port: server.port,
    settings: { 'auth.keys_file': join(server.dataDir, 'dev-jwks.json') },
  });
  const { text } = await send('');
  const { sid } = JSON.parse(text.slice(1));
  const statuses = new Set();
  for (let at = 0; at < REQUESTS; at += 1) {
    const answer = await post(sid, '3');
    statuses.add(answer.status);
    if (answer.status !== 200)
      assert.equal(answer.text, '{"code":1,"message":"Session ID unknown"}');
  }
  assert.deepEqual([...statuses].sort(), [200, 400]);
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () => connectOne(['websocket'])),
  );
  for (const client of clients) assert.ok('server_time' in (await client.ask('heartbeat', {})));
  assert.equal(await second.stop(), 0);
});
