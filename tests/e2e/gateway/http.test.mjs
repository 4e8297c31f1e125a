/** HTTP/1.1: malformed requests, slow and half-open clients, and proper requests. */
import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, devToken, rest } from '../support/client.mjs';
import { destroyAll, rawConnect, rawWebSocket, request } from '../support/raw.mjs';
import { residentBytes, startServer } from '../support/server.mjs';

const HEADER_TIMEOUT_MS = 1000;
const HOST = 'Host: localhost';

let server;
let bystander;

before(async () => {
  server = await startServer({
    args: ['--workers', '1'],
    settings: {
      'gateway.http.header_timeout_seconds': HEADER_TIMEOUT_MS / 1000,
      'gateway.timeouts.message_seconds': HEADER_TIMEOUT_MS / 1000,
      'gateway.http.idle_timeout_seconds': 1.5,
      'gateway.close_timeout_seconds': 1,
    },
  });
  bystander = await connect(server, 'bystander');
});
after(async () => {
  closeAll();
  await server.stop();
});
afterEach(async () => {
  destroyAll();
  await bystander.settle(); // other clients are served throughout
});

/** Sends bytes on a new connection, which the server must end after one answer; returns its status. */
async function statusOfRefusal(bytes) {
  const socket = rawConnect(server);
  socket.send(bytes);
  const answer = await socket.response();
  await socket.end();
  assert.equal(socket.received.length, 0, 'there is no second answer');
  return answer.status;
}

/** Sends a request; returns the answer, which must have this status. */
async function exchange(socket, bytes, status = 200) {
  socket.send(bytes);
  const answer = await socket.response();
  assert.equal(answer.status, status);
  return answer;
}

const lines = (...all) => `${all.join('\r\n')}\r\n\r\n`;
const GET = 'GET /healthz HTTP/1.1';
const POST = 'POST /dev/token HTTP/1.1';
const LENGTH_4 = 'Content-Length: 4';
const CHUNKED = 'Transfer-Encoding: chunked';

test('a malformed request, which could smuggle another, is refused, and the connection is closed', async () => {
  const smuggled = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const bad = {
    'both lengths': `${lines(POST, HOST, LENGTH_4, CHUNKED)}0\r\n\r\n${smuggled}`,
    'both lengths, in reverse order': `${lines(POST, HOST, CHUNKED, LENGTH_4)}0\r\n\r\n${smuggled}`,
    'two lengths': `${lines(POST, HOST, LENGTH_4, 'Content-Length: 40')}{  }${smuggled}`,
    'a list of lengths': `${lines(POST, HOST, 'Content-Length: 2, 40')}{}${smuggled}`,
    'a length with a sign': `${lines(POST, HOST, 'Content-Length: +2')}{}`,
    'a negative length': `${lines(POST, HOST, 'Content-Length: -2')}{}`,
    'a length in hexadecimal': `${lines(POST, HOST, 'Content-Length: 0x2')}{}`,
    'an empty length': lines(POST, HOST, 'Content-Length:'),
    'an endless length': lines(POST, HOST, `Content-Length: ${'9'.repeat(40)}`),
    'a folded header': lines(GET, HOST, 'X-Folded: one', ' two'),
    'a folded first header': lines(GET, ' X: folded', HOST),
    'a bare LF after a header': 'GET /healthz HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n',
    'bare LFs throughout': 'GET /healthz HTTP/1.1\nHost: localhost\n\n',
    'a bare CR': 'GET /healthz HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n',
    'a NUL in a value': lines(GET, HOST, 'X-Nul: a\0b'),
    'a NUL in the target': lines('GET /heal\0thz HTTP/1.1', HOST),
    'a NUL in a name': lines(GET, HOST, 'X\0: b'),
    'a space before the colon': lines(GET, HOST, 'Content-Length : 0'),
    'no colon': lines(GET, HOST, 'nonsense'),
    'an empty name': lines(GET, HOST, ': nothing'),
    'no host': lines(GET, 'X: y'),
    'two hosts': lines(GET, HOST, 'Host: elsewhere'),
    'the same host twice': lines(GET, HOST, HOST),
    'an invalid host': lines(GET, 'Host: a b'),
    'two spaces': lines('GET  /healthz HTTP/1.1', HOST),
    'a method with a control character': lines('GE\x01T /healthz HTTP/1.1', HOST),
    'no version': lines('GET /healthz', HOST),
    'a version in small letters': lines('GET /healthz http/1.1', HOST),
    'a TLS handshake': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
  };
  for (const [what, bytes] of Object.entries(bad)) assert.equal(await statusOfRefusal(bytes), 400, what);
});

test('any transfer coding other than `chunked` is refused', async () => {
  for (const coding of ['gzip', 'chunked, gzip', 'xchunked', 'chunked, chunked', 'identity', '']) {
    const status = await statusOfRefusal(lines(POST, HOST, `Transfer-Encoding: ${coding}`));
    assert.ok(status === 400 || status === 501, `${status} for "${coding}"`);
  }
});

test('a chunked body that is not well-formed is refused', async () => {
  const head = lines(POST, HOST, CHUNKED);
  for (const body of [
    'x\r\n',
    '-1\r\n',
    '0x2\r\n{}\r\n0\r\n\r\n',
    '2\n{}\r\n0\r\n\r\n',
    '2\r\n{}0\r\n\r\n',
    ' 2\r\n{}\r\n0\r\n\r\n',
  ])
    assert.equal(await statusOfRefusal(head + body), 400, JSON.stringify(body));
  assert.equal(await statusOfRefusal(`${head}${'f'.repeat(17)}\r\n`), 413);
});

test('another major version of HTTP is refused with 505', async () => {
  assert.equal(await statusOfRefusal(lines('GET /healthz HTTP/2.0', HOST)), 505);
});

test('a head that is too large, or endless, is refused with 431', async () => {
  assert.equal(await statusOfRefusal(lines(GET, HOST, `X-Large: ${'x'.repeat(17000)}`)), 431);
  const many = Array.from({ length: 3000 }, (_, n) => `X-${n}: y`);
  assert.equal(await statusOfRefusal(lines(GET, HOST, ...many)), 431);
  assert.ok([414, 431].includes(await statusOfRefusal(lines(`GET /${'x'.repeat(17000)} HTTP/1.1`, HOST))));

  const endless = rawConnect(server);
  endless.send(`${GET}\r\n${HOST}\r\n`);
  for (let n = 0; n < 40; n += 1) endless.send(`X-${n}: ${'y'.repeat(1000)}\r\n`);
  assert.equal((await endless.response()).status, 431);
  await endless.end();
});

test('a head that comes too slowly is answered 408, and the connection is closed', async () => {
  const slow = rawConnect(server);
  const startedMs = Date.now();
  slow.send('GET /healthz HTTP/1.1\r\nHos');
  const trickle = setInterval(() => slow.send('t'), 200); // a further byte does not extend the time limit
  try {
    assert.equal((await slow.response()).status, 408);
    await slow.end();
  } finally {
    clearInterval(trickle);
  }
  assert.ok(Date.now() - startedMs >= HEADER_TIMEOUT_MS / 2);
});

test('a body that comes too slowly is answered 408', async () => {
  const slow = rawConnect(server);
  slow.send(lines('POST /dev/token HTTP/1.1', HOST, 'Content-Length: 10'), '{');
  assert.equal((await slow.response()).status, 408);
  await slow.end();
});

test('a connection that sends nothing is closed without an answer', async () => {
  const silent = rawConnect(server);
  await silent.end();
  assert.equal(silent.received.length, 0);
});

test('an idle connection is closed after the idle timeout', async () => {
  const idle = rawConnect(server);
  await exchange(idle, request('GET', '/healthz'));
  await idle.end();
});

test('a client that has closed its sending side still gets its answer', async () => {
  const token = await devToken(server, 'half');
  for (const bytes of [
    request('GET', '/healthz'),
    request('GET', '/v1/me', [`Authorization: Bearer ${token}`]),
    request('POST', '/dev/token', ['Content-Length: 15'], '{"user":"half"}'),
    request('GET', '/healthz') + request('GET', '/readyz'),
  ]) {
    const half = rawConnect(server, { allowHalfOpen: true });
    half.socket.end(bytes);
    assert.equal((await half.response()).status, 200, bytes);
    await half.end();
  }
});

test('a client that disconnects during a request gets no answer', async () => {
  for (const bytes of ['GET /hea', lines(POST, HOST, 'Content-Length: 100'), '']) {
    const closing = rawConnect(server, { allowHalfOpen: true });
    closing.socket.end(bytes);
    await closing.end();
    assert.equal(closing.received.length, 0);
  }
});

test('pipelined requests are answered in order, however many', async () => {
  const socket = rawConnect(server);
  const count = 3000;
  const paths = Array.from({ length: count }, (_, n) => (n % 3 === 1 ? `/none/${n}` : '/healthz'));
  socket.send(paths.map((path) => request('GET', path)).join(''));
  for (const path of paths)
    assert.equal((await socket.response()).status, path === '/healthz' ? 200 : 404);
  assert.equal(socket.received.length, 0);
});

test('a request pipelined behind one that takes longer is answered after it', async () => {
  const socket = rawConnect(server);
  const token = await devToken(server, 'pipeliner');
  const me = request('GET', '/v1/me', [`Authorization: Bearer ${token}`]);
  socket.send(me + request('GET', '/healthz') + me);
  assert.match((await socket.response()).body, /pipeliner/);
  assert.match((await socket.response()).body, /ok/);
  assert.match((await socket.response()).body, /pipeliner/);
});

test('a client that pipelines requests and reads nothing costs bounded memory', async () => {
  const greedy = rawConnect(server);
  await greedy.connected;
  greedy.socket.pause();
  const startBytes = await residentBytes(server);
  for (let n = 0; n < 1000; n += 1) {
    greedy.send(request('GET', '/metrics'));
    await new Promise(setImmediate); // one packet each
  }
  await bystander.settle();
  const grownBytes = (await residentBytes(server)) - startBytes;
  assert.ok(grownBytes < 16 << 20, `grew by ${grownBytes} bytes`);
});

test('HTTP/1.1 keeps the connection open by default; `Connection: close` and HTTP/1.0 close it', async () => {
  const kept = rawConnect(server);
  for (let n = 0; n < 3; n += 1) {
    const { headers } = await exchange(kept, request('GET', '/healthz'));
    assert.notEqual(headers.connection, 'close');
  }
  const last = await exchange(kept, request('GET', '/healthz', ['Connection: close']));
  assert.equal(last.headers.connection, 'close');
  await kept.end();

  const old = rawConnect(server);
  await exchange(old, 'GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n');
  await old.end();
});

test('Node’s HTTP client reuses one connection for all requests', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ports = new Set();
  const get = () =>
    new Promise((resolve, reject) => {
      httpRequest(`${server.url}healthz`, { agent }, (response) => {
        ports.add(response.socket.localPort);
        response.resume().on('end', () => resolve(response.statusCode));
      })
        .on('error', reject)
        .end();
    });
  for (let n = 0; n < 5; n += 1) assert.equal(await get(), 200);
  assert.equal(ports.size, 1);
  agent.destroy();
});

test('HEAD has the headers of GET and no body', async () => {
  const socket = rawConnect(server);
  for (const path of ['/healthz', '/', '/metrics', '/nothing-here']) {
    socket.send(request('HEAD', path));
    const head = await socket.response({ head: true });
    socket.send(request('GET', path));
    const get = await socket.response();
    assert.equal(head.status, get.status, path);
    assert.equal(head.headers['content-type'], get.headers['content-type']);
    assert.ok(Number(head.headers['content-length']) > 0);
  }
});

test('every answer has a Date, except a protocol switch', async () => {
  const socket = rawConnect(server);
  for (const [method, path] of [
    ['GET', '/healthz'], ['HEAD', '/healthz'], ['OPTIONS', '/v1/me'], ['GET', '/v1/me'],
    ['GET', '/no/such/path'], ['PUT', '/v1/me'], ['GET', '/v1/ws'],
  ]) {
    const sentMs = Date.now();
    socket.send(request(method, path));
    const { headers } = await socket.response({ head: method === 'HEAD' });
    assert.match(headers.date, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, `${method} ${path}`);
    const madeMs = Date.parse(headers.date);
    assert.ok(madeMs > sentMs - 2000 && madeMs <= Date.now(), `${method} ${path}: ${headers.date}`);
  }
  const garbage = rawConnect(server);
  garbage.send('NONSENSE\r\n\r\n');
  assert.ok((await garbage.response()).headers.date);
  const { handshake } = await rawWebSocket(server, '/socket.io/?EIO=4&transport=websocket');
  assert.equal(handshake.headers.date, undefined);
});

test('404 and 405 have an error object, and 405 an Allow header', async () => {
  const missing = await rest(server, 'GET', '/v1/nothing');
  assert.equal(missing.status, 404);
  assert.equal(missing.body.error.code, 'NOT_FOUND');
  assert.equal(typeof missing.body.error.message, 'string');
  const wrong = await rest(server, 'DELETE', '/v1/me', { user: 'ann' });
  assert.equal(wrong.status, 405);
  assert.deepEqual(wrong.headers.get('allow').split(', ').sort(), ['GET', 'HEAD', 'PATCH']);
  assert.equal(typeof wrong.body.error.code, 'string');
  assert.equal((await rest(server, 'POST', '/v1/nothing')).status, 404);
});

test('a body over the limit is refused with 413, with Content-Length and chunked', async () => {
  const announced = rawConnect(server);
  announced.send(lines(POST, HOST, 'Content-Length: 65537'));
  const { status, body } = await announced.response();
  assert.deepEqual([status, JSON.parse(body).error.code], [413, 'MESSAGE_TOO_LARGE']);
  await announced.end();

  const chunked = rawConnect(server);
  chunked.send(lines(POST, HOST, CHUNKED));
  for (let n = 0; n < 5; n += 1) chunked.send(`4000\r\n${'x'.repeat(0x4000)}\r\n`);
  assert.equal((await chunked.response()).status, 413);
  await chunked.end();
});

test('a chunked body with extensions and trailers is accepted', async () => {
  const socket = rawConnect(server);
  const body = '7;why="not"\r\n{"user"\r\n4\r\n:"ca\r\n4\r\nrl"}\r\n0\r\nX-Trailer: seen\r\n\r\n';
  const { body: answer } = await exchange(socket, lines(POST, HOST, CHUNKED) + body);
  assert.equal(typeof JSON.parse(answer).token, 'string');
  await exchange(socket, request('GET', '/healthz'));
});

test('a request that arrives byte by byte is parsed like any other', async () => {
  const socket = rawConnect(server);
  for (const character of request('POST', '/dev/token', ['Content-Length: 14'], '{"user":"dora"'))
    socket.send(character);
  assert.equal((await socket.response()).status, 400); // the closing brace is missing
  for (const character of request('POST', '/dev/token', ['Content-Length: 15'], '{"user":"dora"}'))
    socket.send(character);
  assert.equal((await socket.response()).status, 200);
});

test('a client that expects 100-continue gets it before the answer', async () => {
  const socket = rawConnect(server);
  socket.send(lines(POST, HOST, 'Content-Length: 15', 'Expect: 100-continue'));
  assert.equal((await socket.response()).status, 100);
  await exchange(socket, '{"user":"dora"}');
});

test('CORS headers allow requests of other origins', async () => {
  const origin = 'http://localhost:5173';
  const preflight = await fetch(`${server.url}v1/me`, {
    method: 'OPTIONS',
    headers: { Origin: origin, 'Access-Control-Request-Method': 'PATCH' },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-origin'), origin);
  assert.match(preflight.headers.get('access-control-allow-methods'), /PATCH/);
  assert.match(preflight.headers.get('access-control-allow-headers'), /authorization/i);
  const answer = await fetch(`${server.url}v1/me`, { headers: { Origin: origin } });
  assert.equal(answer.status, 401);
  assert.equal(answer.headers.get('access-control-allow-origin'), origin);
  assert.match(answer.headers.get('vary'), /origin/i);
  assert.equal(answer.headers.get('access-control-allow-credentials'), null);
});

test('an absolute request target is treated like its path', async () => {
  await exchange(rawConnect(server), request('GET', `${server.url}healthz`));
});

test('a body that is not the expected JSON gets 400', async () => {
  for (const body of ['', '{', '[]', '{"user":1}', '{"user":""}', '{"user":"a\\u0000"}', '{} {}']) {
    const response = await fetch(`${server.url}dev/token`, { method: 'POST', body });
    assert.equal(response.status, 400, body);
    assert.equal((await response.json()).error.code, 'INVALID_MESSAGE');
  }
});
