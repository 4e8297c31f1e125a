/**
 * Attacks that have brought Socket.IO and Engine.IO servers down before. After each one the server still runs,
 * serves its other clients, and has not grown much.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { WebSocket } from 'ws';
import { closeAll, connect, devToken, eventually, metric, sleep, SOON_MS, within } from '../support/client.mjs';
import {
  enginePath,
  engineRequest,
  EngineSession,
  EngineSocket,
  SEPARATOR,
} from '../support/engine.mjs';
import { destroyAll, frame, HANDSHAKE, OPCODE, rawConnect, request } from '../support/raw.mjs';
import { residentBytes, startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo } from '../support/socketio.mjs';

const PENDING_MAX = 200;
const MAX_PAYLOAD_BYTES = 200000;
/** The limit for unauthenticated clients, that of a native message. */
const UNAUTHENTICATED_BYTES_MAX = 65536;
/** Memory that an attack may leave behind: slack of the allocator and of sanitizers. */
const GROWTH_BYTES_MAX = 64 << 20;

let server;
let bystanders;
let bytesBefore;

before(async () => {
  server = await startServer({
    args: ['--workers', '2'],
    settings: {
      'socketio.max_payload_bytes': MAX_PAYLOAD_BYTES,
      'socketio.connect_timeout_ms': 1500,
      'socketio.pending_sessions_max': PENDING_MAX,
    },
  });
});
after(async () => assert.equal(await server.stop(), 0));

beforeEach(async () => {
  bystanders = [
    await connectSocketIo(server, 'bystander', { transports: ['polling'] }),
    await connectSocketIo(server, 'bystander', { transports: ['websocket'] }),
  ];
  bystanders.native = await connect(server, 'bystander');
  bytesBefore = await residentBytes(server);
});

afterEach(async () => {
  try {
    for (const client of bystanders) {
      assert.equal(client.socket.connected, true);
      assert.ok('server_time' in (await client.ask('heartbeat', {})));
    }
    await bystanders.native.settle();
    assert.equal(server.child.exitCode, null);
    const grownBytes = (await residentBytes(server)) - bytesBefore;
    assert.ok(grownBytes < GROWTH_BYTES_MAX, `memory grew by ${grownBytes} bytes`);
  } finally {
    closeAll();
    closeAllSocketIo();
    destroyAll();
  }
});

const token = () => devToken(server, 'mallory');

/** Starts a polling session that has joined the main namespace. */
async function joinByPolling() {
  const session = await EngineSession.start(server);
  await session.join(await token());
  return session;
}

/** Opens an Engine.IO WebSocket that has joined the main namespace. */
async function joinBySocket() {
  const bearer = await token();
  const url = new URL(enginePath({ transport: 'websocket' }), server.url);
  const socket = new WebSocket(url.href.replace(/^http/, 'ws'));
  socket.on('error', () => {});
  socket.ended = new Promise((resolve) => socket.on('close', resolve));
  const ready = new Promise((resolve) => {
    socket.on('message', (data) => {
      const text = data.toString();
      if (text[0] === '0') socket.send(`40${JSON.stringify({ token: bearer })}`);
      if (text.startsWith('40')) resolve();
    });
  });
  await within(SOON_MS, ready, 'the answer to CONNECT');
  return socket;
}

const waitUntilUnknown = (session) =>
  eventually(async () => (await session.get()).status === 400, 'the session is unknown');

test('a payload of very many packets does no harm', async () => {
  for (const packet of ['3', '', '6', 'b', '4']) {
    const session = await joinByPolling();
    await session.post(Array(MAX_PAYLOAD_BYTES / 4).fill(packet).join(SEPARATOR)).catch(() => {});
  }
  await (await joinByPolling()).post(SEPARATOR.repeat(MAX_PAYLOAD_BYTES - 1)).catch(() => {});
});

test('a body over the limit gets 413, with Content-Length and chunked', async () => {
  for (let at = 0; at < 20; at += 1) {
    const session = await joinByPolling();
    const { status } = await session
      .post('4'.repeat(MAX_PAYLOAD_BYTES + 1))
      .catch(() => ({ status: 413 }));
    assert.equal(status, 413);
  }
  const session = await joinByPolling();
  const socket = rawConnect(server);
  socket.send(
    request('POST', enginePath({ sid: session.sid }), ['Transfer-Encoding: chunked']),
  );
  const piece = `10000\r\n${'4'.repeat(0x10000)}\r\n`;
  for (let at = 0; at < 10; at += 1) socket.send(piece);
  assert.equal((await socket.response()).status, 413);
});

test('a frame over the limit closes the connection', async () => {
  const socket = await joinBySocket();
  socket.send(`42["${'x'.repeat(MAX_PAYLOAD_BYTES)}"]`);
  assert.ok([1009, 1006].includes(await within(SOON_MS, socket.ended, 'end of the connection')));
});

test('unauthenticated clients may send only short messages', async () => {
  const long = `42["${'x'.repeat(UNAUTHENTICATED_BYTES_MAX)}"]`;
  const session = await EngineSession.start(server);
  assert.equal((await session.post(long).catch(() => ({ status: 413 }))).status, 413);
  const socket = new EngineSocket(server);
  await socket.opened;
  socket.send(long);
  assert.ok([1009, 1006].includes(await socket.ended()));
  const authenticated = await joinBySocket();
  authenticated.send(long);
  const answer = new Promise((resolve) => {
    authenticated.on('message', (data) => String(data).startsWith('43') && resolve());
  });
  authenticated.send('420["heartbeat",{}]');
  await within(SOON_MS, answer, 'answer to the authenticated client');
});

test('connections reset in the middle of upgrades do no harm', async () => {
  for (let at = 0; at < 100; at += 1) {
    const session = await EngineSession.start(server);
    const socket = rawConnect(server);
    const path = enginePath({ transport: 'websocket', sid: session.sid });
    socket.send(request('GET', path, HANDSHAKE));
    if (at % 4 > 0) await socket.response();
    if (at % 4 > 1) socket.send(frame(OPCODE.text, '2probe'));
    if (at % 4 > 2) socket.send(frame(OPCODE.text, '5'));
    socket.socket.resetAndDestroy();
  }
});

test('an upgrade that is started and not finished leaves polling working', async () => {
  const session = await joinByPolling();
  const path = enginePath({ transport: 'websocket', sid: session.sid });
  const unfinished = rawConnect(server);
  unfinished.send(request('GET', path, HANDSHAKE));
  await unfinished.response();
  await session.post('420["heartbeat",{}]');
  await session.until((packet) => packet.startsWith('430['));
});

test('unusual values of transport, EIO and sid are refused', async () => {
  const odd = [
    'constructor', '__proto__', 'toString', '', '%00', 'a'.repeat(4000), '../../etc/passwd', '[]',
    'websocket,polling', '😀', "'", '0', '-1', '4.0', '1e1', 'null',
  ];
  for (const name of ['transport', 'EIO', 'sid'])
    for (const value of odd) {
      const { status } = await engineRequest(server, { query: { [name]: value } });
      assert.ok(status === 400 || (name === 'sid' && value === ''), `${name}=${value}: ${status}`);
    }
  const twice = await fetch(new URL(`${enginePath()}&EIO=3&transport=constructor`, server.url));
  assert.ok([200, 400].includes(twice.status));
  await twice.text();
  for (const method of ['PUT', 'DELETE', 'PATCH', 'HEAD']) {
    const { status } = await engineRequest(server, { method });
    assert.ok(status >= 400 && status < 500, `${method}: ${status}`);
  }
});

test('another user’s token does not give access to a session', async () => {
  const session = await joinByPolling();
  const otherToken = await devToken(server, 'other');
  const headers = { authorization: `Bearer ${otherToken}` };
  assert.equal((await session.post('420["heartbeat",{}]', { headers })).status, 403);
  assert.equal((await session.get({ headers })).status, 403);
  assert.equal((await session.get({ query: { access_token: 'nonsense' } })).status, 403);
  const thief = new EngineSocket(server, { sid: session.sid, access_token: otherToken });
  await assert.rejects(thief.opened, /403/);
  const own = { authorization: `Bearer ${await token()}` };
  assert.equal((await session.post('421["heartbeat",{}]', { headers: own })).status, 200);
  await session.until((packet) => packet.startsWith('431['));
});

test('ids similar to a session’s id are unknown', async () => {
  const { sid } = await joinByPolling();
  for (let at = 0; at < sid.length; at += 1) {
    const near = `${sid.slice(0, at)}${sid[at] === 'A' ? 'B' : 'A'}${sid.slice(at + 1)}`;
    assert.equal((await engineRequest(server, { query: { sid: near } })).status, 400);
    assert.equal((await engineRequest(server, { query: { sid: sid.slice(0, at) || 'x' } })).status, 400);
  }
  assert.equal((await engineRequest(server, { query: { sid: `${sid}A` } })).status, 400);
});

test('announced attachments that never come cost bounded memory', async () => {
  const sockets = await Promise.all(Array.from({ length: 50 }, joinBySocket));
  for (const socket of sockets)
    socket.send(`4510-["x",${'{"_placeholder":true,"num":0},'.repeat(1000)}1]`);
  for (const socket of sockets)
    for (let at = 0; at < 9; at += 1) socket.send(Buffer.alloc(MAX_PAYLOAD_BYTES / 10));
  await sleep(200);
  for (const socket of sockets) socket.terminate();
});

test('attachments and placeholders that do not match end the polling session', async () => {
  for (const packets of [
    ['451-["x",{"_placeholder":true,"num":99999999999}]', 'bAAAA'],
    ['451-["x",{"_placeholder":true,"num":-1}]', 'bAAAA'],
    ['452-["x",{"_placeholder":true,"num":0}]', '42["x"]'],
    ['bAAAA'],
    ['4599999999999999999999-["x"]'],
    ['45'],
    ['451-', '42["x"]'],
  ]) {
    const session = await joinByPolling();
    await session.post(packets.join(SEPARATOR));
    await waitUntilUnknown(session);
  }
  const session = await joinByPolling();
  await session.post(['451-["x",{"_placeholder":true,"num":0}]', 'b!!!not base64'].join(SEPARATOR));
});

test('unusual event names, arguments and packets do no harm', async () => {
  for (const packet of [
    '42["error"]', '42["error",null]', '42["hasOwnProperty"]', '42["__proto__",{"__proto__":{}}]',
    '42["newListener2",1]', '42["heartbeat"]', '42["heartbeat",null]', '42["heartbeat",[[[[]]]]]',
    '42["\\u0000"]', '42[""]', '42[1e999]', '42[0]', `42["x",${'['.repeat(5000)}${']'.repeat(5000)}]`,
    '42["heartbeat",{"toJSON":1}]', '4299999999999999999999999["heartbeat",{}]',
    '42/,["heartbeat",{}]', '42/admin,["heartbeat",{}]', '40/admin,{}', '43[]', '430', '41/x',
  ]) {
    const session = await joinByPolling();
    const { status } = await session.post(packet);
    assert.ok(status === 200 || status === 400, `${packet}: ${status}`);
    await session.post('1').catch(() => {});
  }
});

test('an event name that is no string ends the session', async () => {
  for (const packet of ['42[{}]', '42[[]]', '42[null]', '42[true]', '42[{"length":1}]']) {
    const session = await joinByPolling();
    await session.post(packet);
    await waitUntilUnknown(session);
  }
});

test('a flood of pongs does no harm', async () => {
  const socket = await joinBySocket();
  for (let at = 0; at < 50000; at += 1) socket.send('3');
  socket.send('42["heartbeat",{}]');
  await sleep(500);
  socket.terminate();
});

test('a POST that never ends does not block polling', async () => {
  const session = await joinByPolling();
  const slow = rawConnect(server);
  slow.send(request('POST', enginePath({ sid: session.sid }), ['Content-Length: 1000']));
  slow.send('4');
  await session.until((packet) => packet === '2' || true);
});

test('one of two simultaneous polls is refused', async () => {
  for (let at = 0; at < 30; at += 1) {
    const session = await joinByPolling();
    const answers = await Promise.all([session.get(), session.get()].map((poll) => poll.catch(() => ({ status: 0 }))));
    assert.ok(answers.some(({ status }) => status === 400));
  }
});

test('sessions that never join are bounded, and end', async () => {
  const connections = () => metric(server, 'gateway_socketio_connections');
  const before = await connections();
  for (let round = 0; round < 6; round += 1) {
    const tries = Array.from({ length: PENDING_MAX }, () => engineRequest(server));
    for (const { status } of await Promise.all(tries)) assert.equal(status, 200);
  }
  const pending = (await connections()) - before;
  assert.ok(pending <= 2 * PENDING_MAX, `${pending} sessions are pending`); // on two workers
  await eventually(async () => (await connections()) <= before, 'the pending sessions end');
});
