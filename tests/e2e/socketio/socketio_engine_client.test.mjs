/** Engine.IO 4 with engine.io-client, on which the Socket.IO client is built, over every transport. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Socket } from 'engine.io-client';
import { sleep, SOON_MS, within } from '../support/client.mjs';
import { describeBoth, HASTY, PING_INTERVAL_MS } from '../support/reference.mjs';
import { nextEvent, TRANSPORTS } from '../support/socketio.mjs';

async function open(server, transports) {
  const socket = new Socket(server.url, { path: '/socket.io/', transports });
  const messages = [];
  const waiting = [];
  socket.on('message', (data) => (waiting.length ? waiting.shift()(data) : messages.push(data)));
  socket.take = () =>
    messages.length ? messages.shift() : within(SOON_MS, new Promise((resolve) => waiting.push(resolve)), 'message');
  await nextEvent(socket, 'open');
  return socket;
}

async function join(server, user, transports) {
  const token = await server.token(user); // first, because a session that joins no namespace soon ends
  const socket = await open(server, transports);
  const upgraded = transports.length > 1 && nextEvent(socket, 'upgrade');
  socket.send(`0${JSON.stringify({ token })}`);
  assert.match(await socket.take(), /^0\{"sid":/);
  await upgraded;
  return socket;
}

/** Sends a heartbeat and waits for its acknowledgement; skips other events. */
async function heartbeat(socket, id) {
  socket.send(`2${id}["heartbeat",{}]`);
  while (!(await socket.take()).startsWith(`3${id}[`));
}

describeBoth('engine.io-client', (server) => {
  for (const [name, transports] of Object.entries(TRANSPORTS)) {
    test(`messages pass in both directions and in order, ${name}`, async () => {
      const socket = await join(server, 'engine', transports);
      assert.equal(socket.transport.name, transports.at(-1));
      for (let id = 0; id < 20; id += 1) socket.send(`2${id}["heartbeat",{}]`);
      const answers = [];
      while (answers.length < 20) {
        const answer = await socket.take();
        if (answer.startsWith('3')) answers.push(Number.parseInt(answer.slice(1), 10));
      }
      assert.deepEqual(answers, [...Array(20).keys()]);
      socket.close();
    });

    test(`an invalid packet closes the session, ${name}`, async () => {
      const socket = await join(server, 'broken', transports);
      socket.send('9');
      await nextEvent(socket, 'close');
    });
  }
});

describeBoth(
  'times of engine.io-client',
  (server) => {
    test('pings keep the sessions of all transports alive', async () => {
      const sockets = await Promise.all(
        Object.values(TRANSPORTS).map((transports) => join(server, 'pinged', transports)),
      );
      const ids = sockets.map(({ id }) => id);
      await sleep(2 * (PING_INTERVAL_MS + HASTY.pingTimeoutMs));
      for (const socket of sockets) await heartbeat(socket, 1);
      assert.deepEqual(sockets.map(({ id }) => id), ids);
      for (const socket of sockets) socket.close();
    });

    test('clients that join no namespace are closed, whatever the transport', async () => {
      await Promise.all(
        Object.values(TRANSPORTS).map(async (transports) => nextEvent(await open(server, transports), 'close')),
      );
    });
  },
  { times: HASTY },
);
