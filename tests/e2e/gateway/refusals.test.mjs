/** What cannot work is refused at the start, in words that say what is wrong, where, and what to do. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { makeCertificate } from '../support/certificate.mjs';
import { eventually, rest } from '../support/client.mjs';
import { freePorts, startRedis } from '../support/redis.mjs';
import { rollcall, startServer } from '../support/server.mjs';

let directory;
const servers = [];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-refusals-'));
});

after(() => rm(directory, { recursive: true, force: true }));

afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop('SIGKILL'))));

async function serve(options) {
  const server = await startServer(options);
  servers.push(server);
  return server;
}

const refused = (options, words) => assert.rejects(startServer(options), words);

/** A ledger of a server that has ended; returns the path of its file. */
async function makeLedgerFile(name) {
  const dataDir = join(directory, name);
  const server = await startServer({ dataDir });
  assert.equal(await server.stop(), 0);
  return join(dataDir, 'ledger.db');
}

/** Marks the file as written by a newer SQLite, which makes it read-only for everybody, root included. */
async function forbidWriting(path) {
  const file = await open(path, 'r+');
  await file.write(Buffer.from([3]), 0, 1, 18);
  await file.close();
}

test('a ledger that may only be read prevents the start', async () => {
  const path = await makeLedgerFile('read-only');
  await forbidWriting(path);
  await refused(
    { args: ['--ledger', `sqlite:${path}`] },
    /ledger: .*ledger\.db: attempt to write a readonly database .*needs write access to the file and its folder; or name another place with --ledger/,
  );
});

test('permissions that forbid writing prevent the start', { skip: process.getuid() === 0 && 'root may write everywhere' }, async () => {
  const path = await makeLedgerFile('forbidden');
  await chmod(path, 0o444);
  await refused({ args: ['--ledger', `sqlite:${path}`] }, /needs write access to the file and its folder/);
  await chmod(path, 0o644);
  const folder = join(directory, 'closed');
  await mkdir(folder, { mode: 0o555 });
  await refused(
    { args: ['--ledger', `sqlite:${join(folder, 'ledger.db')}`] },
    /Permission denied: give the user that runs rollcall write access to the folder, or name another place/,
  );
});

test('a folder of the ledger that does not exist prevents the start', () =>
  refused(
    { args: ['--ledger', `sqlite:${join(directory, 'missing', 'ledger.db')}`] },
    /cannot open .*missing\/ledger\.db\.lock: No such file or directory: create the folder, or name another place with --ledger/,
  ));

test('a file that is no ledger prevents the start', async () => {
  const path = join(directory, 'letter.txt');
  await writeFile(path, 'Dear Sir or Madam, this is a letter and not a database.\n'.repeat(100));
  await refused({ args: ['--ledger', `sqlite:${path}`] }, /letter\.txt: .*it is no ledger, or it is damaged/);
});

test('a data directory that cannot be made prevents the start', async () => {
  const { code, stderr } = await rollcall('serve', '--dev', '--listen', '127.0.0.1:0', '--data-dir', '/proc/rollcall');
  assert.equal(code, 1);
  assert.match(stderr, /cannot create the data directory: \/proc\/rollcall: .*: create it, or name another one with --data-dir/);
});

test('a second process on a port starts only if both are to share it', async () => {
  const one = await serve({ args: ['--workers', '2'] });
  const words = /listen: another process has 127\.0\.0\.1:\d+: choose another address with --listen .*gateway\.share_port=true/;
  await refused({ port: one.port, args: ['--workers', '2'] }, words);
  await refused({ port: one.port, args: ['--workers', '1'] }, words);
  const single = await serve({ args: ['--workers', '1'] });
  await refused({ port: single.port, settings: { 'gateway.share_port': true } }, words);
  const shared = { 'gateway.share_port': true };
  const three = await serve({ args: ['--workers', '1'], settings: shared });
  await serve({ port: three.port, args: ['--workers', '2'], settings: shared });
  await refused({ port: three.port }, words);
});

test('a server that was killed leaves its port to the next', async () => {
  const one = await serve({});
  await one.stop('SIGKILL');
  await serve({ port: one.port });
});

test('a Redis out of reach is reported once, and once more when it is there', async () => {
  const [port] = await freePorts(1);
  const server = await serve({ args: ['--workers', '2', '--state', `redis://:secret-word@127.0.0.1:${port}`] });
  const lines = (event) => server.log().split('\n').filter((line) => line.includes(`event=${event} `));
  assert.equal(lines('waiting_for_redis').length, 1, server.log());
  assert.match(
    lines('waiting_for_redis')[0],
    new RegExp(`server=127\\.0\\.0\\.1:${port} problem=unreachable because="no connection can be made" detail="Connection refused" hint="it is tried again until it answers; .*state\\.url`),
  );
  assert.equal((await rest(server, 'GET', '/readyz')).status, 503);
  const redis = await startRedis({ port, args: ['--requirepass', 'secret-word'] });
  try {
    await eventually(async () => (await rest(server, 'GET', '/readyz')).status === 200, 'it is ready');
    assert.equal(lines('redis_available').length, 1, server.log());
    assert.doesNotMatch(server.log(), /secret-word/);
  } finally {
    await redis.stop();
  }
});

test('a Redis URL without a port is refused with an example', async () => {
  await refused(
    { args: ['--state', 'redis://127.0.0.1'] },
    /state\.url \(--state\): expected one HOST:PORT with its port, such as redis:\/\/127\.0\.0\.1:6379/,
  );
  await refused({ args: ['--state', 'redis-cluster://127.0.0.1'] }, /such as redis-cluster:\/\/10\.0\.0\.1:6379,10\.0\.0\.2:6379/);
});

test('a key of another certificate is refused with both files', async () => {
  const [one, two] = [join(directory, 'one'), join(directory, 'two')];
  await Promise.all([one, two].map((folder) => mkdir(folder)));
  await makeCertificate(one, 'one');
  await makeCertificate(two, 'two');
  const tls = (certificate, key) => ({
    settings: {
      'gateway.tls.certificate_file': join(certificate, 'certificate.pem'),
      'gateway.tls.key_file': join(key, 'key.pem'),
    },
  });
  await refused(
    tls(one, two),
    /TLS \(gateway\.tls\.certificate_file, key_file\): private key .*two\/key\.pem does not belong to certificate .*one\/certificate\.pem: name the key/,
  );
  await refused(tls(join(directory, 'nowhere'), two), /certificate .*nowhere\/certificate\.pem: No such file or directory/);
});

test('check says that --state is missing, and which Redis does not answer', async () => {
  const without = await rollcall('check');
  assert.equal(without.code, 2);
  assert.match(without.stderr, /--state is missing: name the Redis of the gateways, such as --state redis:\/\/127\.0\.0\.1:6379/);
  const [port] = await freePorts(1);
  const away = await rollcall('check', '--state', `redis://:secret-word@127.0.0.1:${port}`);
  assert.equal(away.code, 2);
  assert.match(away.stderr, new RegExp(`Redis at 127\\.0\\.0\\.1:${port}: no connection can be made .*is --state right\\?`));
  assert.doesNotMatch(away.stderr, /secret-word/);
});

test('a wrong method is answered with the right ones', async () => {
  const server = await serve({});
  for (const [method, path, allowed] of [
    ['DELETE', '/v1/me', 'GET, HEAD, PATCH'],
    ['GET', '/dev/token', 'POST'],
    ['POST', '/healthz', 'GET, HEAD'],
    ['POST', '/openapi.json', 'GET, HEAD'],
    ['POST', '/asyncapi.json', 'GET, HEAD'],
  ]) {
    const answer = await rest(server, method, path);
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get('allow'), allowed);
    assert.deepEqual(answer.body, { error: { code: 'INVALID_MESSAGE', message: `this path takes ${allowed}` } });
  }
});
