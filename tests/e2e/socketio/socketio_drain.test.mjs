/** Polling while a process of two workers drains: a request finds its session as ever, for as long as there is one. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { devToken, eventually, sleep } from '../support/client.mjs';
import { enginePath } from '../support/engine.mjs';
import { destroyAll, rawConnect, request } from '../support/raw.mjs';
import { startRoaming, UNKNOWN_SID } from '../support/roaming.mjs';
import { startServer } from '../support/server.mjs';

/** Over four fifths of this the sessions of a worker end, the first at once. */
const DRAIN_SECONDS = 8;
const SESSIONS = 8;
/** A worker whose only session nobody polls is done with its drain by then, or the test shows less. */
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

/** Joined sessions, so many on either worker. */
async function joinOn(...counts) {
  const token = await devToken(server, 'ann');
  const places = new Map();
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const session = await startRoaming(server);
    const place = session.sid.slice(0, 8); // the rest of an id names nothing
    if (!places.has(place)) places.set(place, []);
    const found = places.get(place);
    if (found.length === counts[[...places.keys()].indexOf(place)]) {
      await session.post('1');
      continue;
    }
    await session.join(token);
    found.push(session);
    const lists = [...places.values()];
    if (counts.every((count, at) => lists[at]?.length === count)) return lists;
  }
  throw new Error('all sessions are on one worker');
}

async function post(connection, { sid }) {
  connection.send(request('POST', enginePath({ sid }), ['Content-Length: 1'], '3'));
  const { status, body } = await connection.response();
  return { status, text: body };
}

/** A connection that is where a session is: it was handed over to it. */
async function connectTo(session) {
  const connection = rawConnect(server);
  assert.equal((await post(connection, session)).status, 200);
  return connection;
}

/** Starts the drain; its exit code is told later. */
async function drain() {
  const stopped = server.stop();
  const told = () => server.log().match(/event=draining/g)?.length === 2;
  await eventually(told, 'the drain of both workers');
  return { stopped };
}

test('a request that reaches another worker is brought to the one that has its session', async () => {
  server = await serve();
  const [here, there] = await joinOn(SESSIONS, SESSIONS);
  const connections = [];
  for (const session of there) connections.push(await connectTo(session));
  const { stopped } = await drain();
  const answers = await Promise.all(connections.map((connection, at) => post(connection, here[at])));
  const known = answers.filter(({ status }) => status === 200);
  assert.ok(known.length > 0, JSON.stringify(answers));
  assert.equal(await stopped, 0);
});

test('when a worker is done with its drain, its sessions are unknown to one that is not', async () => {
  server = await serve();
  const [[gone], there] = await joinOn(1, SESSIONS);
  const connections = [];
  for (const session of there) connections.push(await connectTo(session));
  const { stopped } = await drain();
  await sleep(DRAINED_MS);
  for (const connection of connections.slice(0, SESSIONS / 2))
    assert.deepEqual(await post(connection, gone), UNKNOWN_SID);
  assert.equal(await stopped, 0);
});
