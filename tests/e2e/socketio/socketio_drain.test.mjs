/** Polling while a process of two workers drains: a request still reaches its session while the session exists. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { devToken, eventually, sleep } from '../support/client.mjs';
import { enginePath } from '../support/engine.mjs';
import { destroyAll, rawConnect, request } from '../support/raw.mjs';
import { startRoaming, UNKNOWN_SID } from '../support/roaming.mjs';
import { startServer } from '../support/server.mjs';

/** The sessions of a worker end over four fifths of this time, the first one at once. */
const DRAIN_SECONDS = 8;
const SESSIONS = 8;
/** By then a worker whose only session is not polled has finished its drain. */
const DRAINED_MS = 2000;
const TRIES_MAX = 200;

let server;
afterEach(async () => {
  destroyAll();
  await server.stop('SIGKILL');
});

const serve = () =>
  startServer({
    args: ['--workers', '2'],
    settings: { 'gateway.shutdown.drain_timeout_seconds': DRAIN_SECONDS },
  });

/** Joins this many sessions on each worker; returns a list per worker. */
async function joinOn(...counts) {
  const token = await devToken(server, 'ann');
  const workers = new Map();
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const session = await startRoaming(server);
    const worker = session.sid.slice(0, 8); // this part of an id names its worker
    if (!workers.has(worker)) workers.set(worker, []);
    const found = workers.get(worker);
    if (found.length === counts[[...workers.keys()].indexOf(worker)]) {
      await session.post('1');
      continue;
    }
    await session.join(token);
    found.push(session);
    const lists = [...workers.values()];
    if (counts.every((count, at) => lists[at]?.length === count)) return lists;
  }
  throw new Error('the sessions could not be spread over both workers');
}

async function post(connection, { sid }) {
  connection.send(request('POST', enginePath({ sid }), ['Content-Length: 1'], '3'));
  const { status, body } = await connection.response();
  return { status, text: body };
}

/** Opens a connection to the worker of a session: the first request moves it there. */
async function connectTo(session) {
  const connection = rawConnect(server);
  assert.equal((await post(connection, session)).status, 200);
  return connection;
}

/** Starts the drain; `stopped` resolves to the exit code. */
async function startDrain() {
  const stopped = server.stop();
  const areBothDraining = () => server.log().match(/event=draining/g)?.length === 2;
  await eventually(areBothDraining, 'both workers drain');
  return { stopped };
}

test('during a drain a request that reaches the wrong worker is moved to its session’s worker', async () => {
  server = await serve();
  const [here, there] = await joinOn(SESSIONS, SESSIONS);
  const connections = [];
  for (const session of there) connections.push(await connectTo(session));
  const { stopped } = await startDrain();
  const answers = await Promise.all(connections.map((connection, at) => post(connection, here[at])));
  const served = answers.filter(({ status }) => status === 200);
  assert.ok(served.length > 0, JSON.stringify(answers));
  assert.equal(await stopped, 0);
});

/** Polls until the session or the connection ends; returns the bodies and the last status (undefined: cut off). */
async function pollToTheEnd(connection, { sid }) {
  const bodies = [];
  for (;;) {
    connection.send(request('GET', enginePath({ sid })));
    const answer = await connection.response().catch(() => ({}));
    if (answer.body) bodies.push(answer.body);
    if (answer.status !== 200) return { bodies, status: answer.status };
  }
}

test('polls end with an error or their connection, after which every client reconnects', async () => {
  server = await startServer({
    args: ['--workers', '1'],
    settings: { 'gateway.shutdown.drain_timeout_seconds': 2 },
  });
  const [sessions] = await joinOn(4);
  const connections = await Promise.all(sessions.map(connectTo));
  const stopped = server.stop();
  const ends = await Promise.all(sessions.map((session, i) => pollToTheEnd(connections[i], session)));
  for (const { bodies, status } of ends) {
    assert.ok(bodies.some((body) => body.includes('connection_closing')), bodies.join('\n'));
    assert.equal(bodies.includes('1'), false, bodies.join('\n'));
    assert.ok(status === undefined || JSON.parse(bodies.at(-1)).code === 1, `${status} ${bodies.at(-1)}`);
  }
  assert.equal(await stopped, 0);
});

test('the sessions of a worker that has finished its drain are unknown to the other worker', async () => {
  server = await serve();
  const [[ended], there] = await joinOn(1, SESSIONS);
  const connections = [];
  for (const session of there) connections.push(await connectTo(session));
  const { stopped } = await startDrain();
  await sleep(DRAINED_MS);
  for (const connection of connections.slice(0, SESSIONS / 2))
    assert.deepEqual(await post(connection, ended), UNKNOWN_SID);
  assert.equal(await stopped, 0);
});
