/** Engine.IO 4 on the wire: handshakes, polling, pings, upgrades, and what ends a session. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, sleep, SOON_MS, within } from '../support/client.mjs';
import {
  enginePath,
  engineRequest,
  EngineSession,
  EngineSocket,
  SEPARATOR,
} from '../support/engine.mjs';
import { rawConnect, request } from '../support/raw.mjs';
import {
  describeBoth,
  HASTY,
  MAX_PAYLOAD_BYTES,
  PATIENT,
  PING_INTERVAL_MS,
} from '../support/reference.mjs';

/** How late a server may be on a busy machine. */
const LATE_MS = 1500;

/** Starts a polling session of a user in the main namespace. */
async function joinByPolling(server, user) {
  const token = await server.token(user); // first, because a session that is not polled soon ends
  const session = await EngineSession.start(server);
  await session.join(token);
  return session;
}

/** Sends half of a POST: the server has read its head and waits for the rest of the body. */
async function sendHalfPost({ server, sid }) {
  const socket = rawConnect(server);
  const headers = ['Content-Type: text/plain', 'Content-Length: 3', 'Expect: 100-continue'];
  socket.send(request('POST', enginePath({ sid }), headers));
  assert.equal((await socket.response()).status, 100);
  socket.send('4');
  return socket;
}

/** Waits until the session is unknown; answers its pings meanwhile. */
const waitUntilUnknown = (session) =>
  eventually(async () => {
    const { status, text } = await session.get();
    if (status === 200 && text.split(SEPARATOR).includes('2')) await session.post('3');
    return status === 400 && JSON.parse(text).code === 1;
  }, 'the session is unknown');

/** Opens a WebSocket for a session that has one, or is about to: it is accepted and closed. */
async function openSurplus({ server, sid }) {
  const socket = new EngineSocket(server, { sid });
  await socket.opened;
  await socket.ended();
}

/** Opens a WebSocket for the upgrade of a session, and probes it. */
async function probe({ server, sid }) {
  const socket = new EngineSocket(server, { sid });
  await socket.opened;
  socket.send('2probe');
  assert.equal(await socket.next(), '3probe');
  return socket;
}

describeBoth('Engine.IO', (server) => {
  test('a handshake by polling returns the session id and the settings', async () => {
    const { status, headers, text } = await engineRequest(server);
    assert.equal(status, 200);
    assert.match(headers.get('content-type'), /^text\/plain; charset=UTF-8$/i);
    assert.equal(text[0], '0');
    const { sid, ...rest } = JSON.parse(text.slice(1));
    assert.match(sid, /^[\w-]{20,}$/);
    assert.deepEqual(rest, {
      upgrades: ['websocket'],
      pingInterval: PING_INTERVAL_MS,
      pingTimeout: PATIENT.pingTimeoutMs,
      maxPayload: MAX_PAYLOAD_BYTES,
    });
  });

  test('a handshake by WebSocket offers no upgrade', async () => {
    const socket = new EngineSocket(server);
    const open = JSON.parse((await socket.next()).slice(1));
    assert.deepEqual(open.upgrades, []);
    socket.terminate();
  });

  for (const [what, options, code, message, status = 400] of [
    ['an unknown transport', { query: { transport: 'tachyon' } }, 0, 'Transport unknown'],
    ['no transport', { query: { transport: undefined } }, 0, 'Transport unknown'],
    ['a transport called constructor', { query: { transport: 'constructor' } }, 0, 'Transport unknown'],
    ['an unknown session', { query: { sid: 'nobody' } }, 1, 'Session ID unknown'],
    ['a session called __proto__', { query: { sid: '__proto__' } }, 1, 'Session ID unknown'],
    ['a handshake by POST', { method: 'POST', body: '40' }, 2, 'Bad handshake method'],
    ['a handshake by PUT', { method: 'PUT', body: '40' }, 2, 'Bad handshake method'],
    ['a handshake by DELETE', { method: 'DELETE' }, 2, 'Bad handshake method'],
    ['PATCH of an unknown session', { method: 'PATCH', query: { sid: 'nobody' } }, 1, 'Session ID unknown'],
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
      const socket = new EngineSocket(server, query);
      await socket.ended();
      assert.deepEqual(socket.packets, []);
    });

  test('packets pass in both directions by polling, several in one payload', async () => {
    const token = await server.token('poll');
    const session = await EngineSession.start(server);
    const joined = await session.join(token);
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

  test('a poll waits until there is a packet, such as a ping', async () => {
    const session = await joinByPolling(server, 'waits');
    session.rest = [];
    assert.equal(await within(SOON_MS, session.until((packet) => packet === '2'), 'ping'), '2');
  });

  test('a second poll at a time ends the session', async () => {
    const session = await joinByPolling(server, 'twice');
    const polls = await Promise.allSettled([session.get(), session.get()]); // the one that comes second is refused
    assert.ok(polls.some(({ value }) => value?.status === 400), JSON.stringify(polls));
    const { status, text } = await session.get();
    assert.deepEqual([status, JSON.parse(text).code], [400, 1]);
  });

  test('a second POST at a time ends the session', async () => {
    const session = await joinByPolling(server, 'twice');
    const first = await sendHalfPost(session);
    assert.equal((await session.post('3')).status, 400);
    first.send('2[');
    const answer = await first.response().catch(() => ({ status: 'none' }));
    assert.notEqual(answer.status, 200);
    await waitUntilUnknown(session);
  });

  test('a session ends when its client disconnects during a POST', async () => {
    const session = await joinByPolling(server, 'gone');
    const socket = await sendHalfPost(session);
    socket.destroy();
    await waitUntilUnknown(session);
  });

  test('a POST that is too long is refused', async () => {
    const session = await joinByPolling(server, 'long');
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
    ['an invalid packet', 'abc'],
    ['an empty packet', ['3', '', '3'].join(SEPARATOR)],
    ['a ping from the client', '2'],
  ])
    test(`${what} ends a polling session`, async () => {
      const session = await joinByPolling(server, 'parse');
      await session.post(body);
      await eventually(async () => {
        const { status, text } = await session.get();
        return status === 400 && JSON.parse(text).code === 1;
      }, 'the session is unknown');
    });

  test('a close packet ends a polling session, and its poll is answered', async () => {
    const closeDuringPoll = async () => {
      const session = await EngineSession.start(server);
      const poll = session.get();
      await sleep(20);
      await session.post('1');
      const { status, text } = await poll;
      assert.equal((await session.get()).status, 400);
      return status === 200 && text !== '2' && text; // else the poll arrived after the close packet, or was answered with a ping
    };
    assert.equal(await eventually(closeDuringPoll, 'a close packet that arrives during a poll'), '6');
  });

  test('a close packet ends a polling session without a pending poll', async () => {
    const session = await joinByPolling(server, 'close');
    assert.equal((await session.post('1')).text, 'ok');
    assert.equal((await session.get()).status, 400);
  });

  test('a WebSocket session is not served by polling', async () => {
    const socket = new EngineSocket(server);
    const { sid } = JSON.parse((await socket.next()).slice(1));
    const { status, text } = await engineRequest(server, { query: { sid } });
    assert.equal(status, 400);
    assert.ok([1, 3].includes(JSON.parse(text).code), text);
    socket.terminate();
  });

  test('CORS headers allow polling from another origin', async () => {
    const headers = { origin: 'http://localhost:5173' };
    const answer = await engineRequest(server, { headers });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('access-control-allow-origin'), 'http://localhost:5173');
    const preflight = await engineRequest(server, {
      method: 'OPTIONS',
      headers: {
        ...headers,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,x-of-the-page',
      },
    });
    assert.match(preflight.headers.get('access-control-allow-headers'), /x-of-the-page/);
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get('access-control-allow-origin'), 'http://localhost:5173');
    assert.match(preflight.headers.get('access-control-allow-methods'), /POST/);
  });

  test('an upgrade is probed, ends the pending poll, and continues the session', async () => {
    const session = await joinByPolling(server, 'upgrade');
    const poll = session.get();
    const socket = await probe(session);
    assert.match((await poll).text, /^[26]/);
    socket.send('5', '427["heartbeat",{}]');
    assert.ok((await socket.take()).startsWith('437['));
    const late = await session.get();
    assert.equal(late.status, 400);
    assert.ok([1, 3].includes(JSON.parse(late.text).code), late.text);
    socket.terminate();
  });

  test('a session keeps polling after an upgrade that is not finished', async () => {
    const session = await joinByPolling(server, 'halfway');
    const socket = await probe(session);
    socket.terminate();
    await session.post('428["heartbeat",{}]');
    await session.until((packet) => packet.startsWith('438['));
  });

  test('an upgrade that does not start with a probe is closed, and the session keeps polling', async () => {
    const session = await joinByPolling(server, 'noprobe');
    const socket = new EngineSocket(server, { sid: session.sid });
    await socket.opened;
    socket.send('40');
    await socket.ended();
    await session.post('429["heartbeat",{}]');
    await session.until((packet) => packet.startsWith('439['));
  });

  test('polling is refused after the upgrade', async () => {
    for (let round = 0; round < 30; round += 1) {
      const session = await EngineSession.start(server);
      const socket = new EngineSocket(server, { sid: session.sid });
      await socket.opened;
      socket.send('2probe', '5');
      assert.equal((await session.get()).status, 400, 'refused at once');
      socket.terminate();
    }
  });

  test('a session is upgraded only once', async () => {
    const session = await joinByPolling(server, 'one');
    const socket = await probe(session);
    await openSurplus(session);
    socket.send('5');
    socket.send('420["heartbeat",{}]');
    await socket.take();
    await openSurplus(session);
    socket.send('421["heartbeat",{}]');
    assert.ok((await socket.take()).startsWith('431['));
    socket.terminate();
  });

  test('a session ends when its client disconnects during a poll', async () => {
    const session = await joinByPolling(server, 'gone');
    const socket = rawConnect(server);
    socket.send(request('GET', enginePath({ sid: session.sid })));
    await sleep(50);
    socket.destroy();
    await sleep(100);
    assert.equal((await session.get()).status, 400);
  });
});

describeBoth(
  'times of Engine.IO',
  (server) => {
    for (const [what, open] of Object.entries({
      'a session that has joined': () => joinByPolling(server, 'silent'),
      'a session that has not joined': () => EngineSession.start(server),
    }))
      test(`${what} ends when it neither polls nor answers pings`, async () => {
        const session = await open();
        await sleep(PING_INTERVAL_MS + HASTY.pingTimeoutMs + LATE_MS);
        const { status, text } = await session.get();
        assert.deepEqual([status, JSON.parse(text).code], [400, 1]);
      });

    test('a session that polls but does not answer pings gets a close packet and ends', async () => {
      const session = await joinByPolling(server, 'deaf');
      const packets = [];
      while (packets.at(-1) !== '1') packets.push(...(await session.poll()));
      assert.ok(packets.includes('2'));
      assert.equal((await session.get()).status, 400);
    });

    test('a connection that joins no namespace is closed', async () => {
      const socket = new EngineSocket(server);
      socket.socket.on('message', (data) => {
        if (data.toString() === '2') socket.send('3');
      });
      const startedMs = Date.now();
      await socket.ended();
      assert.ok(Date.now() - startedMs > HASTY.connectTimeoutMs / 2);
    });
  },
  { times: HASTY },
);
