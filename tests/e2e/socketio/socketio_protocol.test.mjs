/** Socket.IO 5 over every transport: namespaces, events, acknowledgements, and invalid packets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../support/client.mjs';
import { EngineSocket } from '../support/engine.mjs';
import { describeBoth, HASTY, PING_INTERVAL_MS } from '../support/reference.mjs';
import {
  connectError,
  connectSocketIo,
  openSocketIo,
  PARSERS,
  TRANSPORTS,
} from '../support/socketio.mjs';

for (const [name, parser] of Object.entries(PARSERS))
  describeBoth(
    `Socket.IO clients, ${name}`,
    (server) => {
      for (const [transport, transports] of Object.entries(TRANSPORTS)) {
        test(`events are acknowledged, ${transport}`, async () => {
          const token = await server.token('ack');
          const client = await connectSocketIo(server, 'ack', { token, transports, parser });
          const answers = await Promise.all(
            Array.from({ length: 20 }, () => client.ask('heartbeat', {})),
          );
          assert.ok(answers.every(({ server_time: time }) => typeof time === 'string'));
          if (transports.length === 2) await client.upgraded();
          assert.equal(client.transport, transports.at(-1));
          assert.ok('server_time' in (await client.ask('heartbeat', {})));
        });

        test(`a client without a token is refused, ${transport}`, async () => {
          const client = openSocketIo(server, { transports, parser });
          const { message } = await connectError(client);
          assert.match(message, /token is needed/);
        });

        test(`a client without auth is refused, ${transport}`, async () => {
          const client = openSocketIo(server, { transports, parser, auth: undefined });
          assert.match((await connectError(client)).message, /token is needed/);
        });

        test(`another namespace is refused, ${transport}`, async () => {
          const token = await server.token('space');
          const client = openSocketIo(server, { token, transports, parser, namespace: '/admin' });
          assert.equal((await connectError(client)).message, 'Invalid namespace');
        });

        test(`a client may disconnect and connect again, ${transport}`, async () => {
          const token = await server.token('leave');
          const client = await connectSocketIo(server, 'leave', { token, transports, parser });
          client.socket.disconnect();
          assert.equal(client.socket.connected, false);
          client.socket.connect();
          await client.connected();
          assert.ok('server_time' in (await client.ask('heartbeat', {})));
        });
      }
    },
    { parser },
  );

for (const [name, parser] of Object.entries(PARSERS))
  describeBoth(
    `pings of Socket.IO clients, ${name}`,
    (server) => {
      test('pings keep the sessions of all transports alive', async () => {
        const token = await server.token('ping');
        const clients = await Promise.all(
          Object.values(TRANSPORTS).map((transports) => connectSocketIo(server, 'ping', { token, transports, parser })),
        );
        const ids = clients.map(({ socket }) => socket.id);
        await sleep(2 * (PING_INTERVAL_MS + HASTY.pingTimeoutMs));
        for (const client of clients) assert.ok('server_time' in (await client.ask('heartbeat', {})));
        assert.deepEqual(clients.map(({ socket }) => socket.id), ids);
      });
    },
    { parser, times: HASTY },
  );

describeBoth('Socket.IO packets', (server) => {
  for (const [what, ...packets] of [
    ['an unknown packet type', '49'],
    ['an event before CONNECT', '42["heartbeat",{}]'],
    ['a binary message before CONNECT', Buffer.from([1, 2, 3])],
    ['a second CONNECT', 'join', '40{}'],
    ['an event that is no array', 'join', '42{"a":1}'],
    ['an event without a name', 'join', '42[]'],
    ['an object as event name', 'join', '42[{"toString":"x"}]'],
    ['a reserved event name', 'join', '42["disconnect"]'],
    ['another reserved event name', 'join', '42["connect_error",{}]'],
    ['broken JSON', 'join', '42["heartbeat",{]'],
    ['no attachments where some are announced', 'join', '450-["x"]'],
    ['a negative number of attachments', 'join', '45-1-["x"]'],
    ['too many attachments', 'join', '4511-["x"]'],
    ['attachments without a dash', 'join', '455["x",{"_placeholder":true,"num":0}]'],
    ['text where an attachment is due', 'join', '451-["x",{"_placeholder":true,"num":0}]', '42["y"]'],
    ['an attachment that was not announced', 'join', Buffer.from([1, 2, 3])],
    ['a placeholder beyond the last attachment', 'join', '451-["x",{"_placeholder":true,"num":7}]', Buffer.from([1])],
    ['a placeholder that is no number', 'join', '451-["x",{"_placeholder":true,"num":"splice"}]', Buffer.from([1])],
  ])
    test(`${what} closes the connection`, async () => {
      const socket = new EngineSocket(server);
      if (packets[0] === 'join') {
        packets.shift();
        await socket.join(await server.token('bad'));
      }
      await socket.opened;
      socket.send(...packets);
      await socket.ended();
    });

  for (const [what, ...packets] of [
    ['an unknown event', '42["no such thing",1,2,3]'],
    ['an event called error', '42["error",{"message":"x"}]'],
    ['an event called __proto__', '42["__proto__",{}]'],
    ['a number as event name', '42[7]'],
    ['an event without data', '42'],
    ['an event without data that asks to be acknowledged', '420'],
    ['a binary event without data', '451-', Buffer.from([1])],
    ['an unexpected acknowledgement', '4399["x"]'],
    ['an acknowledgement of nothing', '43'],
    ['a flood of pongs', ...Array(1000).fill('3')],
  ])
    test(`${what} does no harm`, async () => {
      const socket = new EngineSocket(server);
      await socket.join(await server.token('odd'));
      socket.send(...packets);
      socket.send('425["heartbeat",{}]');
      while (!(await socket.take()).startsWith('435['));
      socket.terminate();
    });

  test('a DISCONNECT packet leaves the namespace', async () => {
    const socket = new EngineSocket(server);
    await socket.join(await server.token('bye'));
    socket.send('41');
    socket.send('42["heartbeat",{}]');
    await socket.ended();
  });
});
