/** RFC 6455 in detail, on `/v1/echo`, with hand-made frames. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { eventually, refusal, SOON_MS, within } from '../support/client.mjs';
import {
  closeFrame,
  destroyAll,
  frame,
  HANDSHAKE,
  OPCODE,
  rawConnect,
  rawWebSocket,
  request,
} from '../support/raw.mjs';
import { residentBytes, startServer } from '../support/server.mjs';

const FRAME_BYTES_MAX = 65536;
const { continuation, text, binary, close, ping, pong } = OPCODE;

let server;

before(async () => {
  server = await startServer({
    args: ['--workers', '1'],
    settings: { 'debug.echo': true, 'gateway.max_frame_bytes': FRAME_BYTES_MAX },
  });
});
after(() => server.stop());
afterEach(destroyAll);

/** Sends on a new connection, which the server must close; returns the close code. */
async function closeCodeAfter(...pieces) {
  const socket = await rawWebSocket(server);
  socket.send(...pieces);
  const code = await socket.closeCode();
  await socket.end();
  return code;
}

/** The next frame that is not one of the server's own pings, which come while a test takes long. */
async function nextAnswer(socket) {
  for (;;) {
    const answer = await socket.frame();
    if (answer.opcode !== ping) return answer;
    socket.send(frame(pong, answer.payload));
  }
}

async function expectEcho(socket, opcode, payload) {
  const answer = await nextAnswer(socket);
  assert.deepEqual(
    { fin: answer.fin, rsv: answer.rsv, opcode: answer.opcode },
    { fin: true, rsv: 0, opcode },
  );
  assert.ok(answer.payload.equals(Buffer.from(payload)), `the payload differs, ${answer.payload.length} bytes`);
}

test('the handshake is answered as the RFC computes it', async () => {
  const { handshake } = await rawWebSocket(server);
  assert.equal(handshake.headers.upgrade.toLowerCase(), 'websocket');
  assert.match(handshake.headers.connection, /upgrade/i);
  assert.equal(handshake.headers['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  assert.equal(handshake.headers['sec-websocket-protocol'], undefined);
  assert.equal(handshake.headers['sec-websocket-extensions'], undefined);
});

test('another WebSocket version is refused with 426, which names the supported one', async () => {
  for (const version of ['8', '7', '14', '013', '']) {
    const socket = rawConnect(server);
    const headers = HANDSHAKE.map((line) => line.replace(/(Version: )13/, `$1${version}`));
    socket.send(request('GET', '/v1/echo', headers));
    const answer = await socket.response();
    assert.equal(answer.status, 426, `version ${version}`);
    assert.equal(answer.headers['sec-websocket-version'], '13');
  }
});

test('a handshake without a valid key is refused with 400', async () => {
  const keys = ['', 'dGhlIHNhbXBsZSBub25jZQ', 'dGhlIHNhbXBsZQ==', 'dGhlIHNhbXBsZSBub25jZ!==', null];
  for (const key of keys) {
    const socket = rawConnect(server);
    const others = HANDSHAKE.filter((line) => !line.startsWith('Sec-WebSocket-Key'));
    socket.send(
      request('GET', '/v1/echo', key === null ? others : [...others, `Sec-WebSocket-Key: ${key}`]),
    );
    const answer = await socket.response();
    assert.equal(answer.status, 400, `key ${key}`);
    assert.equal(JSON.parse(answer.body).error.code, 'INVALID_MESSAGE');
  }
});

test('a request that is not a handshake is not upgraded', async () => {
  const plain = await fetch(`${server.url}v1/echo`);
  assert.equal(plain.status, 426);
  const socket = rawConnect(server);
  socket.send(request('POST', '/v1/echo', HANDSHAKE));
  assert.equal((await socket.response()).status, 405);
});

test('/v1/echo exists only if it is configured', async () => {
  const other = await startServer();
  try {
    const { status } = await refusal(`${other.url.replace('http', 'ws')}v1/echo`);
    assert.equal(status, 404);
  } finally {
    await other.stop();
  }
});

test('messages with every encoding of the length are echoed complete', async () => {
  const socket = await rawWebSocket(server);
  for (const length of [0, 1, 125, 126, 127, 65535, FRAME_BYTES_MAX]) {
    const payload = Buffer.alloc(length, 'x');
    socket.send(frame(text, payload), frame(binary, payload));
    await expectEcho(socket, text, payload);
    await expectEcho(socket, binary, payload);
  }
});

test('a message that arrives byte by byte is echoed complete', async () => {
  const socket = await rawWebSocket(server);
  const payload = 'κόσμε \u{1F600} '.repeat(8);
  for (const byte of frame(text, payload)) socket.send(Buffer.from([byte]));
  await expectEcho(socket, text, payload);
});

test('many frames in one packet are all answered, in order', async () => {
  const socket = await rawWebSocket(server);
  const payloads = Array.from({ length: 500 }, (_, n) => `message ${n}`);
  socket.send(Buffer.concat(payloads.map((payload) => frame(text, payload))));
  for (const payload of payloads) await expectEcho(socket, text, payload);
});

test('fragments are joined, with control frames answered in between', async () => {
  const socket = await rawWebSocket(server);
  socket.send(frame(text, 'Hel', { fin: false }), frame(ping, 'one'));
  await expectEcho(socket, pong, 'one');
  socket.send(frame(continuation, '', { fin: false }), frame(pong, 'nobody asked'));
  socket.send(frame(continuation, 'lo', { fin: false }), frame(ping, 'two'));
  await expectEcho(socket, pong, 'two');
  socket.send(frame(continuation, ', w', { fin: false }));
  socket.send(frame(continuation, 'orld'));
  await expectEcho(socket, text, 'Hello, world');
});

test('a UTF-8 character may be split over fragments', async () => {
  const socket = await rawWebSocket(server);
  const whole = Buffer.from('\u{1F600}');
  socket.send(frame(text, whole.subarray(0, 1), { fin: false }));
  socket.send(frame(continuation, whole.subarray(1, 3), { fin: false }));
  socket.send(frame(continuation, whole.subarray(3)));
  await expectEcho(socket, text, whole);
});

test('a message of many fragments may be as large as the limit, and no larger', async () => {
  const socket = await rawWebSocket(server);
  const piece = Buffer.alloc(FRAME_BYTES_MAX / 64, 'y');
  const pieces = Array.from({ length: 64 }, (_, n) =>
    frame(n === 0 ? binary : continuation, piece, { fin: n === 63 }),
  );
  socket.send(...pieces);
  await expectEcho(socket, binary, Buffer.alloc(FRAME_BYTES_MAX, 'y'));
  const open = pieces.slice(0, 63).concat(frame(continuation, piece, { fin: false }));
  assert.equal(await closeCodeAfter(...open, frame(continuation, 'z')), 1009);
});

test('a frame over the limit is refused at its header, before its payload arrives', async () => {
  assert.equal(await closeCodeAfter(frame(binary, '', { length: FRAME_BYTES_MAX + 1 })), 1009);
  assert.equal(await closeCodeAfter(frame(text, '', { length: 2 ** 40 })), 1009);
});

test('text that is not UTF-8 is refused with 1007', async () => {
  const bad = [
    [0xff],
    [0xc0, 0xaf], // overlong
    [0xe0, 0x80, 0x80],
    [0xed, 0xa0, 0x80], // surrogate
    [0xf4, 0x90, 0x80, 0x80], // beyond U+10FFFF
    [0x80],
    [0xce, 0xba, 0xe1], // incomplete at the end of the message
  ];
  for (const bytes of bad)
    assert.equal(await closeCodeAfter(frame(text, Buffer.from(bytes))), 1007, JSON.stringify(bytes));
  assert.equal(
    await closeCodeAfter(
      frame(text, Buffer.from([0xe1, 0xbd]), { fin: false }),
      frame(continuation, Buffer.from([0x41])),
    ),
    1007,
  );
});

test('invalid UTF-8 is refused before frame and message are complete', async () => {
  const unfinished = frame(text, Buffer.from([0x41, 0xed, 0xa0, 0x41]), { length: 2000 });
  assert.equal(await closeCodeAfter(unfinished), 1007);
  assert.equal(await closeCodeAfter(frame(text, Buffer.from([0xf4, 0x90]), { fin: false })), 1007);
  assert.equal(
    await closeCodeAfter(
      frame(text, 'good', { fin: false }),
      frame(continuation, Buffer.from([0xff]), { length: 5000, fin: false }),
    ),
    1007,
  );
});

test('binary messages may contain any bytes', async () => {
  const socket = await rawWebSocket(server);
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  socket.send(frame(binary, bytes));
  await expectEcho(socket, binary, bytes);
});

test('a violation of the protocol is refused with 1002', async () => {
  const broken = {
    'an unmasked frame': frame(text, 'hello', { mask: null }),
    'an unmasked ping': frame(ping, '', { mask: null }),
    'a length not minimal in 16 bits': frame(text, 'hello', { form: 16 }),
    'a length not minimal in 64 bits': frame(text, 'x'.repeat(300), { form: 64 }),
    'a length with the highest bit': Buffer.from('82ffffffffffffffffff00000000', 'hex'),
    'a continuation of nothing': frame(continuation, 'hello'),
    'a fragmented ping': frame(ping, 'hello', { fin: false }),
    'a fragmented close': frame(close, '', { fin: false }),
    'a ping of 126 bytes': frame(ping, 'x'.repeat(126)),
    'a close of 126 bytes': frame(close, `\x03\xe8${'x'.repeat(124)}`),
    'a message inside a message': Buffer.concat([
      frame(text, 'one', { fin: false }),
      frame(text, 'two'),
    ]),
  };
  for (const rsv of [1, 2, 4, 7]) broken[`reserved bits ${rsv}`] = frame(text, 'hello', { rsv });
  broken['a reserved bit on a ping'] = frame(ping, '', { rsv: 4 });
  for (const opcode of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15])
    broken[`opcode ${opcode}`] = frame(opcode, 'hello');
  for (const [what, bytes] of Object.entries(broken))
    assert.equal(await closeCodeAfter(bytes), 1002, what);
});

test('a message before a violation is still answered, one after it is not', async () => {
  const socket = await rawWebSocket(server);
  socket.send(Buffer.concat([frame(text, 'before'), frame(3, ''), frame(text, 'behind')]));
  await expectEcho(socket, text, 'before');
  assert.equal(await socket.closeCode(), 1002);
  await socket.end();
  assert.equal(socket.received.length, 0);
});

test('a valid close frame is answered with its code', async () => {
  for (const code of [1000, 1001, 1003, 1007, 1008, 1011, 1012, 1014, 3000, 3999, 4000, 4999])
    assert.equal(await closeCodeAfter(closeFrame(code, 'good bye')), code);
  const empty = await closeCodeAfter(frame(close));
  assert.ok(empty === undefined || empty === 1000, `${empty} for a close without a code`);
});

test('an invalid close frame is refused', async () => {
  for (const code of [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535])
    assert.equal(await closeCodeAfter(closeFrame(code)), 1002, `code ${code}`);
  assert.equal(await closeCodeAfter(frame(close, Buffer.from([3]))), 1002);
  assert.equal(await closeCodeAfter(frame(close, Buffer.from([0x03, 0xe8, 0xce, 0xff]))), 1007);
});

test('nothing is read after a close frame, even inside a message', async () => {
  const socket = await rawWebSocket(server);
  socket.send(frame(text, 'never finished', { fin: false }));
  socket.send(Buffer.concat([closeFrame(1000), frame(text, 'too late')]));
  assert.equal(await socket.closeCode(), 1000);
  await socket.end();
  assert.equal(socket.received.length, 0);
});

test('a ping is answered with its payload, an unsolicited pong is ignored', async () => {
  const socket = await rawWebSocket(server);
  const payload = Buffer.from(Array.from({ length: 125 }, (_, n) => 255 - n));
  socket.send(frame(pong, 'unasked'), frame(ping, payload));
  await expectEcho(socket, pong, payload);
  socket.send(frame(ping));
  await expectEcho(socket, pong, '');
});

test('each of ten pings gets its own pong, in order, in one packet and byte by byte', async () => {
  const payloads = Array.from({ length: 10 }, (_, n) => `payload ${n}`);
  const pings = Buffer.concat(payloads.map((payload) => frame(ping, payload)));
  for (const pieces of [[pings], Array.from(pings, (_, n) => pings.subarray(n, n + 1))]) {
    const socket = await rawWebSocket(server);
    socket.send(...pieces);
    for (const payload of payloads) await expectEcho(socket, pong, payload);
  }
});

test('a flood of pings costs bounded memory, and is answered or closed', async () => {
  const socket = await rawWebSocket(server);
  const bystander = await rawWebSocket(server);
  socket.socket.pause();
  const beforeBytes = await residentBytes(server);
  const chunk = Buffer.concat(
    Array.from({ length: 2000 }, (_, n) => frame(ping, String(n).padEnd(125))),
  );
  for (let n = 0; n < 40; n += 1) {
    const isFlowing = socket.socket.write(chunk);
    if (!isFlowing)
      await Promise.race([
        new Promise((resolve) => socket.socket.once('drain', resolve)),
        new Promise((resolve) => setTimeout(resolve, 100)),
      ]);
  }
  bystander.send(frame(text, 'still here?'));
  await expectEcho(bystander, text, 'still here?');
  const grownBytes = (await residentBytes(server)) - beforeBytes;
  assert.ok(grownBytes < 32 << 20, `grew by ${grownBytes} bytes`);

  socket.socket.resume();
  socket.send(frame(ping, 'the last'));
  const answered = async () => {
    for (;;) if ((await socket.frame()).payload.toString() === 'the last') return;
  };
  await within(3 * SOON_MS, answered(), 'answer to the last ping').catch(({ message }) =>
    assert.match(message, /the connection ended/),
  );
});

test('a client that disconnects in the middle of a frame does no harm', async () => {
  for (const bytes of [frame(text, 'x', { length: 100 }), frame(text, 'x', { fin: false })]) {
    const socket = await rawWebSocket(server);
    socket.send(bytes);
    socket.socket.resetAndDestroy();
  }
  await eventually(async () => (await fetch(`${server.url}healthz`)).ok, 'the server is healthy');
});
