/** https and wss, with certificates made at test time. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { certificateSettings, makeCertificate } from '../support/certificate.mjs';
import { closeAll, connect, eventually, openSocket, SOON_MS, within } from '../support/client.mjs';
import { destroyAll, HANDSHAKE, rawConnect, RawSocket, request } from '../support/raw.mjs';
import { startServer } from '../support/server.mjs';

/** An OpenSSL policy that allows old protocols, so that only the server's own minimum can refuse them. */
const LAX_POLICY = `openssl_conf = main
[main]
ssl_conf = ssl
[ssl]
system_default = lax
[lax]
MinProtocol = TLSv1
CipherString = DEFAULT@SECLEVEL=0
`;

let directory;
let server;
let token;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-tls-'));
  await makeCertificate(directory, 'first');
  const policy = join(directory, 'openssl.cnf');
  await writeFile(policy, LAX_POLICY);
  server = await startServer({
    args: ['--workers', '1'],
    env: { OPENSSL_CONF: policy },
    settings: {
      ...certificateSettings(directory),
      'limits.connections_per_user': 0,
      'gateway.http.header_timeout_seconds': 8, // a hundred handshakes on a busy machine take seconds
      'gateway.max_frame_bytes': 4 << 20,
      'gateway.backpressure.outbound.max_buffer_bytes': 16 << 20,
      'debug.echo': true,
    },
  });
  token = await server.token('tess');
});
after(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});
afterEach(() => {
  closeAll();
  destroyAll();
});

const certificate = () => readFile(join(directory, 'certificate.pem'));

/** Opens a TLS connection. */
async function connectTls(options = {}) {
  const socket = tlsConnect({
    host: '127.0.0.1',
    port: server.port,
    rejectUnauthorized: false,
    ...options,
  });
  const raw = new RawSocket(socket);
  await raw.connected;
  return raw;
}

const certificateName = (raw) => raw.socket.getPeerCertificate().subject.CN;

async function get(path) {
  const ca = await certificate();
  return new Promise((resolve, reject) => {
    httpsRequest(new URL(path, server.url), { ca, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode, text }));
    })
      .on('error', reject)
      .end();
  });
}

const openSecure = async (user) =>
  connect(server, user, { token, ws: { ca: await certificate() } });

test('https and wss are served with a certificate that clients can verify', async () => {
  assert.match(server.url, /^https:/);
  assert.equal((await get('/healthz')).status, 200);
  const client = await openSecure('tess');
  assert.equal((await client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  assert.match(client.socket._socket.getProtocol(), /^TLSv1\.[23]$/);
  await client.close();
});

test('TLS 1.2 is spoken only with forward secrecy and authenticated encryption', async () => {
  const version = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' };
  for (const ciphers of ['AES128-GCM-SHA256', 'ECDHE-RSA-AES128-SHA', 'ECDHE-ECDSA-AES128-SHA'])
    await assert.rejects(connectTls({ ...version, ciphers: `${ciphers}:@SECLEVEL=0` }), /handshake failure/);
  const raw = await connectTls(version);
  assert.match(raw.socket.getCipher().name, /^ECDHE-.*(GCM|CHACHA20)/);
});

test('HTTP/1.1 is negotiated, and clients that offer nothing or only another protocol are served', async () => {
  for (const [offered, chosen] of [
    [['h2', 'http/1.1'], 'http/1.1'],
    [['http/1.1'], 'http/1.1'],
    [['h2'], false],
    [undefined, false],
  ]) {
    const raw = await connectTls({ ALPNProtocols: offered });
    assert.equal(raw.socket.alpnProtocol, chosen);
    raw.send(request('GET', '/healthz'));
    assert.equal((await raw.response()).status, 200);
  }
});

test('TLS 1.2 and 1.3 are accepted, 1.0 and 1.1 are not', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    const raw = await connectTls({ minVersion: version, maxVersion: version });
    assert.equal(raw.socket.getProtocol(), version);
    raw.send(request('GET', '/healthz'));
    assert.equal((await raw.response()).status, 200);
  }
  for (const version of ['TLSv1', 'TLSv1.1'])
    await assert.rejects(
      connectTls({ minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' }),
      { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' },
      version,
    );
});

test('a plain HTTP request to the TLS port is closed without a plain answer', async () => {
  const plain = rawConnect(server);
  plain.send(request('GET', '/healthz'));
  await plain.end();
  assert.doesNotMatch(plain.received.toString('latin1'), /HTTP/);
  assert.equal((await get('/healthz')).status, 200);
});

test('a client that does not finish its TLS handshake is closed in time', async () => {
  const silent = rawConnect(server);
  const partial = rawConnect(server);
  partial.send(Buffer.from('16030100a5010000a10303', 'hex'));
  await Promise.all([silent.end(), partial.end()]);
});

test('large messages arrive complete in both directions', async () => {
  const ca = await certificate();
  const echo = openSocket(`${server.url.replace('https', 'wss')}v1/echo`, [], { ca });
  await within(SOON_MS, new Promise((resolve) => echo.socket.once('open', resolve)), 'open');
  for (const bytes of [16384, 16385, 1 << 20, 3 << 20]) {
    echo.send(JSON.stringify('x'.repeat(bytes)));
    assert.equal((await echo.next((value) => typeof value === 'string')).length, bytes);
  }
  for (let n = 0; n < 200; n += 1) echo.send(JSON.stringify({ n, text: 'y'.repeat(2000) }));
  for (let n = 0; n < 200; n += 1) assert.equal((await echo.next(() => true)).n, n);
});

test('a WebSocket handshake in pieces of one byte succeeds', async () => {
  const raw = await connectTls();
  const head = request('GET', '/v1/ws', [...HANDSHAKE, `Authorization: Bearer ${token}`]);
  for (const character of head) raw.send(character);
  assert.equal((await raw.response()).status, 101);
  assert.match((await raw.frame()).payload.toString(), /connection_established/);
});

test('a TLS session can be resumed', async () => {
  const first = await connectTls({ maxVersion: 'TLSv1.3' });
  const session = await within(
    SOON_MS,
    new Promise((resolve) => first.socket.once('session', resolve)),
    'session ticket',
  );
  const second = await connectTls({ session });
  assert.equal(second.socket.isSessionReused(), true);
  second.send(request('GET', '/healthz'));
  assert.equal((await second.response()).status, 200);
});

async function reload(logged) {
  const seen = server.log().split(logged).length;
  process.kill(server.pid, 'SIGHUP');
  await eventually(() => server.log().split(logged).length > seen, `${logged} in the log`);
}

test('SIGHUP loads a new certificate for new connections and closes none', async () => {
  const before = await connectTls();
  assert.equal(certificateName(before), 'first');
  const client = await openSecure('tess');

  await makeCertificate(directory, 'second');
  await reload('event=reloaded');
  await eventually(async () => certificateName(await connectTls()) === 'second', 'the second certificate is served');
  assert.equal((await client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  before.send(request('GET', '/healthz'));
  assert.equal((await before.response()).status, 200);
  await openSecure('tess');

  await writeFile(join(directory, 'certificate.pem'), 'nonsense');
  await reload('tls_not_reloaded');
  assert.equal(certificateName(await connectTls()), 'second');
  assert.equal((await client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await makeCertificate(directory, 'third');
  await reload('event=reloaded');
  await eventually(async () => certificateName(await connectTls()) === 'third', 'the third certificate is served');
});

test('a key that does not match the certificate prevents the start, with the reason', async () => {
  await assert.rejects(
    startServer({
      settings: {
        'gateway.tls.certificate_file': join(directory, 'certificate.pem'),
        'gateway.tls.key_file': join(directory, 'certificate.pem'),
      },
    }),
    /TLS \(gateway\.tls\.certificate_file, key_file\): private key .*certificate\.pem/,
  );
});

test('many simultaneous connections are all served', async () => {
  const ca = await certificate();
  const clients = await Promise.all(
    Array.from({ length: 100 }, () => connect(server, 'tess', { token, ws: { ca } })),
  );
  await Promise.all(clients.map((client) => client.settle()));
});
