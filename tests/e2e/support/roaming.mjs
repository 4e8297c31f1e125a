/**
 * Polling where every request may reach another worker, or another process on the same port: what a
 * session is held to all the same.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { EngineSession, engineSend } from './engine.mjs';
import { startServer } from './server.mjs';

export const OK = { status: 200, text: 'ok' };
export const UNKNOWN_SID = { status: 400, text: '{"code":1,"message":"Session ID unknown"}' };

const TURNS = 10;

/** Another process on a server's port, a world of its own but for the keys. */
export const startBeside = (server, { settings, ...options }) =>
  startServer({
    ...options,
    port: server.port,
    settings: { ...settings, 'auth.keys_file': join(server.dataDir, 'dev-jwks.json') },
  });

/** A session every request of which is on a connection of its own. */
export const startRoaming = (server) => EngineSession.start(server, { send: engineSend });

/** The same, joined. */
export async function joinRoaming(server, token) {
  const session = await startRoaming(server);
  await session.join(token);
  return session;
}

/** Sends heartbeats, each with so much white space in it, and polls for each one's acknowledgement. */
export async function roam(session, { requests, paddingBytes = 0 }) {
  const padding = ' '.repeat(paddingBytes);
  for (let at = 0; at < requests; at += 1) {
    assert.deepEqual(await session.post(`42${at}["heartbeat",${padding}{}]`), OK);
    await session.until((packet) => packet.startsWith(`43${at}[`));
  }
}

/** One connection serves all sessions in turn, and so goes wherever each of them is. */
export async function takeTurns(sessions, Agent) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let turn = 0; turn < TURNS; turn += 1)
    for (const session of sessions) assert.deepEqual(await session.post('3', { agent }), OK);
  agent.destroy();
}

/** Every client has the last of its transports, and is answered. */
export async function areAnswered(clients, transports) {
  if (transports.length === 2) await Promise.all(clients.map((client) => client.upgraded()));
  const answers = await Promise.all(clients.map((client) => client.ask('heartbeat', {})));
  assert.ok(answers.every((answer) => 'server_time' in answer));
}
