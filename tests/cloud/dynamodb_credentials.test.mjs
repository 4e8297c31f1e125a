/** Keys and certificates: renewed while messages are sent, refused when wrong, and never in a log. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { makeCertificate } from '../e2e/support/certificate.mjs';
import { eventually, rest, setVisibility, sleep } from '../e2e/support/client.mjs';
import { startContainerCredentials } from './support/container_credentials.mjs';
import { createTables, endLater, startDynamodbWithProxy, startOnDynamodb } from './support/dynamodb_gateway.mjs';
import { KEYS, keyEnvironment, startDynamodbProxy } from './support/dynamodb_proxy.mjs';

const PREFIX = 'keys-';
let dynamodb;
let proxy;
before(async () => {
  ({ dynamodb, proxy } = await startDynamodbWithProxy());
  await createTables(proxy, PREFIX);
});

/** The shortest way to DynamoDB and back. */
const readSettings = (server) => rest(server, 'GET', '/v1/me', { user: 'alice' });

test('keys that end while the server works are renewed in time', async () => {
  const lastingMs = 8000;
  const credentials = await startContainerCredentials(proxy, lastingMs);
  endLater(() => credentials.close());
  const server = await startOnDynamodb(proxy, { prefix: PREFIX, env: credentials.env });
  proxy.forget();
  for (const endMs = Date.now() + 3 * lastingMs; Date.now() < endMs; await sleep(100))
    await setVisibility(server, 'alice', Date.now() % 2 === 0 ? 'everyone' : 'nobody');
  assert.deepEqual(proxy.requests.filter(({ refused }) => refused !== undefined), []);
  assert.ok(new Set(proxy.requests.filter(credentials.hasSigned).map(({ accessKeyId }) => accessKeyId)).size >= 4);
  assert.ok(credentials.issued() >= 4 && credentials.issued() <= 12, `${credentials.issued()} pairs of keys`);
  assert.match(server.log(), /event=aws_credentials_renewed source=container ends_in_seconds=\d+/);
  assert.doesNotMatch(server.log(), /secret-\d|session-\d|token-of-the-tests/);
});

test('keys that could not be renewed sign nothing; with new ones the server goes on', async () => {
  const credentials = await startContainerCredentials(proxy, 4000);
  endLater(() => credentials.close());
  const server = await startOnDynamodb(proxy, { prefix: PREFIX, env: credentials.env });
  assert.equal((await readSettings(server)).status, 200);
  credentials.refuse(true);
  await eventually(async () => (await readSettings(server)).status === 503, 'the keys have ended', 60000);
  proxy.forget();
  assert.equal((await readSettings(server)).status, 503);
  assert.equal(proxy.requests.filter(credentials.hasSigned).length, 0);
  assert.match(server.log(), /level=error event=aws_credentials_(ending|missing) source=container/);
  credentials.refuse(false);
  await eventually(async () => (await readSettings(server)).status === 200, 'new keys are used', 60000);
});

test('wrong keys are an error for the sender and a line in the log, without the keys', async () => {
  const env = keyEnvironment({ ...KEYS, secretAccessKey: 'mistaken-secret' });
  const server = await startOnDynamodb(proxy, { prefix: PREFIX, env });
  assert.equal((await readSettings(server)).status, 503);
  assert.match(server.log(), /InvalidSignatureException/);
  assert.doesNotMatch(server.log(), /mistaken-secret/);
});

/* ---- TLS ---- */

async function startTlsProxy() {
  const folder = await mkdtemp(join(tmpdir(), 'rollcall-tls-'));
  endLater(() => rm(folder, { recursive: true, force: true }));
  await makeCertificate(folder, 'dynamodb');
  const certificate = join(folder, 'certificate.pem');
  const tls = { cert: await readFile(certificate), key: await readFile(join(folder, 'key.pem')) };
  const tlsProxy = await startDynamodbProxy(dynamodb.endpoint, { tls });
  endLater(() => tlsProxy.close());
  return { tlsProxy, certificate };
}

test('an endpoint over TLS is used if a trusted certificate signs it, whichever way it is named', async () => {
  const { tlsProxy, certificate } = await startTlsProxy();
  const byUrl = await startOnDynamodb(tlsProxy, { url: tlsProxy.ledgerUrl(PREFIX, `&ca=${certificate}`) });
  assert.equal((await readSettings(byUrl)).status, 200);
  for (const name of ['AWS_CA_BUNDLE', 'SSL_CERT_FILE']) {
    const env = { ...keyEnvironment(), [name]: certificate };
    const server = await startOnDynamodb(tlsProxy, { prefix: PREFIX, env });
    assert.equal((await readSettings(server)).status, 200, name);
  }
  assert.ok(tlsProxy.connections < tlsProxy.requests.length, 'connections are kept');
});

test('an endpoint with a certificate of its own making is refused', async () => {
  const { tlsProxy } = await startTlsProxy();
  const server = await startOnDynamodb(tlsProxy, { prefix: PREFIX });
  assert.equal((await readSettings(server)).status, 503);
  assert.equal(tlsProxy.requests.length, 0);
});
