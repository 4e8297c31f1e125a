/** The PROXY protocol before TLS: a proxy that passes TLS on names its client in clear text first. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { certificateSettings, makeCertificate } from '../support/certificate.mjs';
import { startServer } from '../support/server.mjs';

const TRUSTED = '127.0.0.2';
const OTHER = '127.0.0.3';

let directory;
let server;
const sockets = [];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-proxy-tls-'));
  await makeCertificate(directory, 'proxied');
  server = await startServer({
    args: ['--workers', '1'],
    settings: {
      ...certificateSettings(directory),
      'limits.connections_per_address': 1,
      'gateway.trusted_proxies': TRUSTED,
    },
  });
});
after(async () => {
  assert.equal(await server.stop(), 0);
  await rm(directory, { recursive: true, force: true });
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Sends these pieces in clear text, then a request over TLS. Returns the status; 0: the server closed instead. */
async function statusAfter(localAddress, ...pieces) {
  const socket = connectTcp({ host: '127.0.0.1', port: server.port, localAddress });
  sockets.push(socket);
  await once(socket, 'connect');
  socket.on('error', () => {});
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, () => setTimeout(resolve, 20)));
  if (socket.destroyed) return 0;
  const secure = connectTls({ socket, rejectUnauthorized: false });
  sockets.push(secure);
  secure.on('secureConnect', () => secure.write('GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n'));
  return new Promise((resolve) => {
    secure.on('data', (answer) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(answer.toString())[1])));
    for (const stream of [socket, secure])
      for (const end of ['end', 'error', 'close']) stream.on(end, () => resolve(0));
  });
}

const line = (address) => `PROXY TCP4 ${address} 127.0.0.1 1000 2000\r\n`;
const binary = (address) =>
  Buffer.from([
    ...Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'),
    0x21, 0x11, 0, 12, ...address.split('.').map(Number), 127, 0, 0, 1, 0x10, 0, 0x01, 0xbb,
  ]);

for (const [version, header, first, second] of [
  [1, line, '192.0.2.1', '192.0.2.2'],
  [2, binary, '192.0.2.3', '192.0.2.4'],
])
  test(`a client behind TLS is known by the address in a header of version ${version}`, async () => {
    assert.equal(await statusAfter(TRUSTED, header(first)), 200);
    assert.equal(await statusAfter(TRUSTED, header(first)), 429, 'the address has its connection');
    assert.equal(await statusAfter(TRUSTED, header(second)), 200);
  });

test('a header may arrive in pieces', async () => {
  const whole = line('192.0.2.5');
  assert.equal(await statusAfter(TRUSTED, whole.slice(0, 3), whole.slice(3, 20), whole.slice(20)), 200);
  assert.equal(await statusAfter(TRUSTED, whole), 429);
});

test('TLS without a header is served, and the proxy is not limited', async () => {
  for (let n = 0; n < 3; n += 1) assert.equal(await statusAfter(TRUSTED), 200);
});

test('a header from somebody else is no TLS, and names nobody', async () => {
  assert.equal(await statusAfter(OTHER, line('192.0.2.6')), 0);
  assert.equal(await statusAfter(TRUSTED, line('192.0.2.6')), 200, 'the address has no connection yet');
});
