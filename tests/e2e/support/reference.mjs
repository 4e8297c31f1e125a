/**
 * Runs every test of the protocol against Rollcall and against the npm server, with the same times, so that the
 * tests expect what the reference does.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, afterEach, before, describe } from 'node:test';
import { Server } from 'socket.io';
import { destroyAll } from './raw.mjs';
import { startServer } from './server.mjs';
import { closeAllSocketIo } from './socketio.mjs';

export const PING_INTERVAL_MS = 300;
export const MAX_PAYLOAD_BYTES = 20000;

/** Times that no client exceeds on a busy machine; and short ones, for tests of what happens afterwards. */
export const PATIENT = { pingTimeoutMs: 20000, connectTimeoutMs: 20000 };
export const HASTY = { pingTimeoutMs: 2000, connectTimeoutMs: 4000 };

/** The npm server, with the little application that the protocol tests need. */
async function startReference(options) {
  const http = createServer((request, response) => response.writeHead(404).end());
  const server = new Server(http, { cors: { origin: true }, ...options });
  server.use((socket, next) =>
    next(socket.handshake.auth.token ? undefined : new Error('a bearer token is needed')),
  );
  server.on('connection', (socket) => {
    socket.on('heartbeat', (_fields, answer) => answer?.({ server_time: new Date().toISOString() }));
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address();
  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    token: async (user) => user,
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}

const TARGETS = {
  rollcall: ({ times }) =>
    startServer({
      args: ['--workers', '1'],
      settings: {
        'socketio.ping_interval_ms': PING_INTERVAL_MS,
        'socketio.ping_timeout_ms': times.pingTimeoutMs,
        'socketio.connect_timeout_ms': times.connectTimeoutMs,
        'socketio.max_payload_bytes': MAX_PAYLOAD_BYTES,
      },
    }),
  'the reference': ({ times, ...options }) =>
    startReference({
      ...options,
      pingInterval: PING_INTERVAL_MS,
      pingTimeout: times.pingTimeoutMs,
      connectTimeout: times.connectTimeoutMs,
      maxHttpBufferSize: MAX_PAYLOAD_BYTES,
    }),
};

/**
 * Declares `tests(server)` once for each server, which is started with these times before they run. Other options are
 * for the reference.
 */
export function describeBoth(subject, tests, { times = PATIENT, ...options } = {}) {
  for (const [name, start] of Object.entries(TARGETS))
    describe(`${subject}, ${name}`, () => {
      const server = {};
      before(async () => Object.assign(server, await start({ times, ...options })));
      after(() => server.stop());
      afterEach(() => {
        closeAllSocketIo();
        destroyAll();
      });
      tests(server);
    });
}
