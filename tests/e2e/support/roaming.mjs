/**
 * Polling sessions whose requests roam: each may reach another worker, or another process on the same port,
 * and the session must work all the same.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { EngineSession, engineSend } from './engine.mjs';
import { startServer } from './server.mjs';

export const OK = { status: 200, text: 'ok' };
export const UNKNOWN_SID = { status: 400, text: '{"code":1,"message":"Session ID unknown"}' };

const TURNS = 10;

/** Starts another process on a server's port; the two share nothing but the keys. */
export const startOnSamePort = (server, { settings, ...options }) =>
  startServer({
    ...options,
    port: server.port,
    settings: {
      'gateway.share_port': true,
      ...settings,
      'auth.keys_file': join(server.dataDir, 'dev-jwks.json'),
    },
  });

/** Starts a session that sends every request on a new connection. */
export const startRoaming = (server) => EngineSession.start(server, { send: engineSend });

/** Starts such a session and joins the main namespace. */
export async function joinRoaming(server, token) {
  const session = await startRoaming(server);
  await session.join(token);
  return session;
}

/** Sends heartbeats, each padded with white space, and polls for the acknowledgement of each. */
export async function exchangeHeartbeats(session, { requests, paddingBytes = 0 }) {
  const padding = ' '.repeat(paddingBytes);
  for (let at = 0; at < requests; at += 1) {
    assert.deepEqual(await session.post(`42${at}["heartbeat",${padding}{}]`), OK);
    await session.until((packet) => packet.startsWith(`43${at}[`));
  }
}

/** Posts for all sessions in turn on one connection, which must follow each of them. */
export async function postInTurns(sessions, Agent) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let turn = 0; turn < TURNS; turn += 1)
    for (const session of sessions) assert.deepEqual(await session.post('3', { agent }), OK);
  agent.destroy();
}

/** Expects that every client has finished its upgrade, if it makes one, and gets an answer. */
export async function expectAllAnswered(clients, transports) {
  if (transports.length === 2) await Promise.all(clients.map((client) => client.upgraded()));
  const answers = await Promise.all(clients.map((client) => client.ask('heartbeat', {})));
  assert.ok(answers.every((answer) => 'server_time' in answer));
}
