/**
 * Engine.IO 4 and Socket.IO 5 on the wire, by hand. Every test runs against the npm server too: what it
 * expects is what the reference does.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import msgpackParser from 'socket.io-msgpack-parser';
import { WebSocket } from 'ws';
import { closeAll, eventually, sleep, SOON_MS, within } from './support/client.mjs';
import { destroyAll, rawConnect, request } from './support/raw.mjs';
import { startServer } from './support/server.mjs';
import {
  closeAllSocketIo,
  connectError,
  connectSocketIo,
  enginePath,
  engineRequest,
  EngineSession,
  openSocketIo,
  SEPARATOR,
  startReference,
  TRANSPORTS,
} from './support/socketio.mjs';

const PING_INTERVAL_MS = 300;
const PING_TIMEOUT_MS = 200;
const CONNECT_TIMEOUT_MS = 1000;
const MAX_PAYLOAD_BYTES = 20000;

const TARGETS = {
  rollcall: () =>
    startServer({
      args: ['--workers', '1'],
      settings: {
        'socketio.ping_interval_ms': PING_INTERVAL_MS,
        'socketio.ping_timeout_ms': PING_TIMEOUT_MS,
        'socketio.connect_timeout_ms': CONNECT_TIMEOUT_MS,
        'socketio.max_payload_bytes': MAX_PAYLOAD_BYTES,
      },
    }),
  'the reference': () =>
    startReference({
      pingInterval: PING_INTERVAL_MS,
      pingTimeout: PING_TIMEOUT_MS,
      connectTimeout: CONNECT_TIMEOUT_MS,
      maxHttpBufferSize: MAX_PAYLOAD_BYTES,
    }),
};

/** A WebSocket of Engine.IO, whose messages are packets. */
class Packets {
  packets = [];
  #wake = () => {};

  constructor(server, query = {}) {
    const url = new URL(enginePath({ transport: 'websocket', ...query }), server.url);
    this.socket = new WebSocket(url.href.replace(/^http/, 'ws'));
    this.closed = new Promise((resolve) => this.socket.on('close', resolve));
    this.opened = new Promise((resolve, reject) => {
      this.socket.on('open', resolve);
      this.socket.on('error', reject);
    });
    this.opened.catch(() => {});
    this.socket.on('message', (data, binary) => {
      this.packets.push(binary ? data : data.toString());
      this.#wake();
    });
  }

  async next() {
    while (this.packets.length === 0) {
      const woken = new Promise((resolve) => {
        this.#wake = resolve;
      });
      await within(SOON_MS, Promise.race([woken, this.closed]), 'packet');
      if (this.packets.length === 0) throw new Error('the connection ended');
    }
    return this.packets.shift();
  }

  /** The next packet but pings, which are answered. */
  async take() {
    for (;;) {
      const packet = await this.next();
      if (packet !== '2') return packet;
      this.socket.send('3');
    }
  }

  send(...packets) {
    for (const packet of packets) this.socket.send(packet);
  }

  async join(token) {
    assert.equal((await this.next())[0], '0');
    this.send(`40${JSON.stringify({ token })}`);
    const answer = await this.take();
    assert.ok(answer.startsWith('40{'), answer);
    return JSON.parse(answer.slice(2));
  }

  isClosed() {
    return within(SOON_MS, this.closed, 'end of the WebSocket');
  }
}

for (const [name, start] of Object.entries(TARGETS))
  describe(`Engine.IO, ${name}`, () => {
    let server;
    before(async () => {
      server = await start();
    });
    after(() => server.stop());
    afterEach(() => {
      closeAll();
      closeAllSocketIo();
      destroyAll();
    });

    test('a handshake by polling says all that a client needs', async () => {
      const { status, headers, text } = await engineRequest(server);
      assert.equal(status, 200);
      assert.match(headers.get('content-type'), /^text\/plain; charset=UTF-8$/i);
      assert.equal(text[0], '0');
      const { sid, ...rest } = JSON.parse(text.slice(1));
      assert.match(sid, /^[\w-]{20,}$/);
      assert.deepEqual(rest, {
        upgrades: ['websocket'],
        pingInterval: PING_INTERVAL_MS,
        pingTimeout: PING_TIMEOUT_MS,
        maxPayload: MAX_PAYLOAD_BYTES,
      });
    });

    test('a handshake by WebSocket offers no upgrade', async () => {
      const socket = new Packets(server);
      const open = JSON.parse((await socket.next()).slice(1));
      assert.deepEqual(open.upgrades, []);
      socket.socket.terminate();
    });

    for (const [what, options, code, message, status = 400] of [
      ['an unknown transport', { query: { transport: 'tachyon' } }, 0, 'Transport unknown'],
      ['no transport', { query: { transport: undefined } }, 0, 'Transport unknown'],
      ['a transport called constructor', { query: { transport: 'constructor' } }, 0, 'Transport unknown'],
      ['an unknown session', { query: { sid: 'nobody' } }, 1, 'Session ID unknown'],
      ['a session called __proto__', { query: { sid: '__proto__' } }, 1, 'Session ID unknown'],
      ['a handshake by POST', { method: 'POST', body: '40' }, 2, 'Bad handshake method'],
      ['a WebSocket without an upgrade', { query: { transport: 'websocket' } }, 3, 'Bad request'],
      ['version 3', { query: { EIO: '3' } }, 5, 'Unsupported protocol version'],
      ['no version', { query: { EIO: undefined } }, 5, 'Unsupported protocol version'],
      ['an odd version', { query: { EIO: '4abc' } }, 5, 'Unsupported protocol version'],
    ])
      test(`${what} is refused`, async () => {
        const answer = await engineRequest(server, options);
        assert.equal(answer.status, status);
        assert.match(answer.headers.get('content-type'), /json/);
        assert.deepEqual(JSON.parse(answer.text), { code, message });
      });

    for (const [what, query] of [
      ['an unknown session', { sid: 'nobody' }],
      ['an unknown transport', { transport: 'tachyon' }],
      ['version 3', { EIO: '3' }],
    ])
      test(`an upgrade with ${what} is refused`, async () => {
        const socket = new Packets(server, query);
        await socket.isClosed();
        assert.deepEqual(socket.packets, []);
      });

    test('packets go both ways by polling, several in one payload', async () => {
      const session = await EngineSession.start(server);
      const joined = await session.join(await server.token('poll'));
      assert.equal(joined.refused, false);
      assert.match(joined.sid, /^\S{10,}$/);
      const answer = await session.post(
        ['420["heartbeat",{}]', '421["heartbeat",{}]'].join(SEPARATOR),
      );
      assert.equal(answer.status, 200);
      assert.equal(answer.text, 'ok');
      assert.match(answer.headers.get('content-type'), /^text\/html/);
      for (const ack of ['430[', '431[']) {
        const packet = await session.until((text) => text.startsWith(ack));
        assert.ok('server_time' in JSON.parse(packet.slice(3))[0], packet);
      }
    });

    test('a poll waits until there is something, and pings are something', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('waits'));
      session.rest = [];
      const startedMs = Date.now();
      assert.equal(await session.until((packet) => packet === '2'), '2');
      assert.ok(Date.now() - startedMs < PING_INTERVAL_MS + 1000);
    });

    test('who does not answer pings is gone', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('silent'));
      await sleep(PING_INTERVAL_MS + PING_TIMEOUT_MS + 300);
      const answers = [await session.get()];
      while (answers.at(-1).status === 200) answers.push(await session.get());
      if (answers.length > 1) assert.match(answers[0].text, /heartbeat_timeout/); // told why first
      assert.deepEqual(JSON.parse(answers.at(-1).text).code, 1);
    });

    test('who joins no namespace is closed', async () => {
      const socket = new Packets(server);
      socket.socket.on('message', (data) => {
        if (data.toString() === '2') socket.send('3');
      });
      const startedMs = Date.now();
      await socket.isClosed();
      assert.ok(Date.now() - startedMs > CONNECT_TIMEOUT_MS / 2);
    });

    test('a second poll at a time ends the session', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('twice'));
      const first = session.get();
      await sleep(50);
      const second = await session.get();
      assert.equal(second.status, 400);
      await first.catch(() => {});
      const { status, text } = await session.get();
      assert.deepEqual([status, JSON.parse(text).code], [400, 1]);
    });

    test('a POST that is too long is refused', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('long'));
      const answer = await session
        .post(`4${'x'.repeat(MAX_PAYLOAD_BYTES)}`)
        .catch(() => ({ status: 413 }));
      assert.equal(answer.status, 413);
    });

    test('a binary body is refused', async () => {
      const session = await EngineSession.start(server);
      const headers = { 'content-type': 'application/octet-stream' };
      assert.equal((await session.post('4x', { headers })).status, 400);
      assert.equal((await session.get()).status, 400);
    });

    for (const [what, body] of [
      ['no packet at all', 'abc'],
      ['an empty packet', ['3', '', '3'].join(SEPARATOR)],
      ['a ping of the client', '2'],
    ])
      test(`${what} ends a polling session`, async () => {
        const session = await EngineSession.start(server);
        await session.join(await server.token('parse'));
        await session.post(body);
        await eventually(async () => {
          const { status, text } = await session.get();
          return status === 400 && JSON.parse(text).code === 1;
        }, 'the end of the session');
      });

    test('a close packet ends a polling session, and its poll', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('close'));
      const poll = session.get();
      await sleep(20);
      await session.post('1');
      assert.equal((await poll).status, 200);
      assert.equal((await session.get()).status, 400);
    });

    test('a session of one transport is not served by the other without an upgrade', async () => {
      const socket = new Packets(server);
      const { sid } = JSON.parse((await socket.next()).slice(1));
      const { status, text } = await engineRequest(server, { query: { sid } });
      assert.equal(status, 400);
      assert.ok([1, 3].includes(JSON.parse(text).code), text);
      socket.socket.terminate();
    });

    test('a browser of another origin may poll', async () => {
      const headers = { origin: 'http://app.example' };
      const answer = await engineRequest(server, { headers });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('access-control-allow-origin'), 'http://app.example');
      const preflight = await engineRequest(server, {
        method: 'OPTIONS',
        headers: {
          ...headers,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type',
        },
      });
      assert.equal(preflight.status, 204);
      assert.equal(preflight.headers.get('access-control-allow-origin'), 'http://app.example');
      assert.match(preflight.headers.get('access-control-allow-methods'), /POST/);
    });

    test('an upgrade is probed, releases the poll, and goes on where polling was', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('upgrade'));
      const poll = session.get();
      const socket = new Packets(server, { sid: session.sid });
      await socket.opened;
      socket.send('2probe');
      assert.equal(await socket.next(), '3probe');
      assert.match((await poll).text, /^[26]/);
      socket.send('5', '427["heartbeat",{}]');
      assert.ok((await socket.take()).startsWith('437['));
      const late = await session.get();
      assert.equal(late.status, 400);
      assert.ok([1, 3].includes(JSON.parse(late.text).code), late.text);
      socket.socket.terminate();
    });

    test('an upgrade that is given up leaves the session to polling', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('halfway'));
      const socket = new Packets(server, { sid: session.sid });
      await socket.opened;
      socket.send('2probe');
      assert.equal(await socket.next(), '3probe');
      socket.socket.terminate();
      await session.post('428["heartbeat",{}]');
      await session.until((packet) => packet.startsWith('438['));
    });

    test('an upgrade with anything but a probe is closed, the session is not', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('noprobe'));
      const socket = new Packets(server, { sid: session.sid });
      await socket.opened;
      socket.send('40');
      await socket.isClosed();
      await session.post('429["heartbeat",{}]');
      await session.until((packet) => packet.startsWith('439['));
    });

    test('there is one upgrade at a time, and none after one', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('one'));
      const socket = new Packets(server, { sid: session.sid });
      await socket.opened;
      socket.send('2probe');
      assert.equal(await socket.next(), '3probe');
      await new Packets(server, { sid: session.sid }).isClosed();
      socket.send('5');
      socket.send('420["heartbeat",{}]');
      await socket.take();
      await new Packets(server, { sid: session.sid }).isClosed();
      socket.send('421["heartbeat",{}]');
      assert.ok((await socket.take()).startsWith('431['));
      socket.socket.terminate();
    });

    test('the peer of a poll that goes takes the session with it', async () => {
      const session = await EngineSession.start(server);
      await session.join(await server.token('gone'));
      const socket = rawConnect(server);
      socket.send(request('GET', enginePath({ sid: session.sid })));
      await sleep(50);
      socket.destroy();
      await sleep(100);
      assert.equal((await session.get()).status, 400);
    });
  });

for (const [name, start] of Object.entries(TARGETS))
  describe(`Socket.IO, ${name}`, () => {
    let server;
    before(async () => {
      server = await start();
    });
    after(() => server.stop());
    afterEach(() => {
      closeAll();
      closeAllSocketIo();
    });

    for (const [transport, transports] of Object.entries(TRANSPORTS)) {
      test(`acknowledgements, ${transport}`, async () => {
        const token = await server.token('ack');
        const client = await connectSocketIo(server, 'ack', { token, transports });
        const answers = await Promise.all(
          Array.from({ length: 20 }, () => client.ask('heartbeat', {})),
        );
        assert.ok(answers.every(({ server_time: time }) => typeof time === 'string'));
        if (transports.length === 2) await client.upgraded();
        assert.equal(client.transport, transports.at(-1));
        assert.ok('server_time' in (await client.ask('heartbeat', {})));
      });

      test(`no token, no connection, ${transport}`, async () => {
        const client = openSocketIo(server, { transports });
        const { message } = await connectError(client);
        assert.match(message, /token is needed/);
      });

      test(`another namespace is refused, ${transport}`, async () => {
        const token = await server.token('space');
        const client = openSocketIo(server, { token, transports, namespace: '/admin' });
        assert.equal((await connectError(client)).message, 'Invalid namespace');
      });

      test(`a client that disconnects is let go, ${transport}`, async () => {
        const token = await server.token('leave');
        const client = await connectSocketIo(server, 'leave', { token, transports });
        client.socket.disconnect();
        assert.equal(client.socket.connected, false);
        client.socket.connect();
        await client.connected();
        assert.ok('server_time' in (await client.ask('heartbeat', {})));
      });

      test(`a client whose packets are all binary is closed, alone, ${transport}`, async () => {
        const token = await server.token('plain');
        const bystander = await connectSocketIo(server, 'plain', { token, transports });
        const { id } = bystander.socket;
        const client = openSocketIo(server, {
          token,
          transports,
          parser: msgpackParser,
          reconnection: false,
        });
        assert.match(await client.disconnected(), /transport (close|error)/);
        assert.equal(client.socket.connected, false);
        assert.ok('server_time' in (await bystander.ask('heartbeat', {})));
        assert.equal(bystander.socket.id, id);
      });

      test(`pings keep it, ${transport}`, async () => {
        const token = await server.token('ping');
        const client = await connectSocketIo(server, 'ping', { token, transports });
        const { id } = client.socket;
        await sleep(3 * (PING_INTERVAL_MS + PING_TIMEOUT_MS));
        assert.equal(client.socket.id, id);
        assert.ok('server_time' in (await client.ask('heartbeat', {})));
      });
    }

    for (const [what, ...packets] of [
      ['an unknown packet type', '49'],
      ['an event before CONNECT', '42["heartbeat",{}]'],
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
      ['an attachment nobody announced', 'join', Buffer.from([1, 2, 3])],
      ['an attachment beyond the last', 'join', '451-["x",{"_placeholder":true,"num":7}]', Buffer.from([1])],
      ['an attachment of no number', 'join', '451-["x",{"_placeholder":true,"num":"splice"}]', Buffer.from([1])],
    ])
      test(`${what} closes the connection`, async () => {
        const socket = new Packets(server);
        if (packets[0] === 'join') {
          packets.shift();
          await socket.join(await server.token('bad'));
        }
        await socket.opened;
        socket.send(...packets);
        await socket.isClosed();
      });

    for (const [what, ...packets] of [
      ['an unknown event', '42["no such thing",1,2,3]'],
      ['an event called error', '42["error",{"message":"x"}]'],
      ['an event called __proto__', '42["__proto__",{}]'],
      ['a number as event name', '42[7]'],
      ['an event without data', '42'],
      ['an event without data that asks to be acknowledged', '420'],
      ['a binary event without data', '451-', Buffer.from([1])],
      ['an acknowledgement nobody asked for', '4399["x"]'],
      ['an acknowledgement of nothing', '43'],
      ['a flood of pongs', ...Array(1000).fill('3')],
    ])
      test(`${what} does no harm`, async () => {
        const socket = new Packets(server);
        await socket.join(await server.token('odd'));
        socket.send(...packets);
        socket.send('425["heartbeat",{}]');
        while (!(await socket.take()).startsWith('435['));
        socket.socket.terminate();
      });

    test('a DISCONNECT packet leaves the namespace', async () => {
      const socket = new Packets(server);
      await socket.join(await server.token('bye'));
      socket.send('41');
      socket.send('42["heartbeat",{}]');
      await socket.isClosed();
    });
  });
