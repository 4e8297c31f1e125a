/** API keys: made, listed and revoked while the server runs and while it does not; what they open. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, eventually, refusal, rest, sleep } from '../support/client.mjs';
import { rollcall, startServer } from '../support/server.mjs';

const REVOKED_WITHIN_MS = 2000;
/** A gateway that has just read the list does not know a newer key before it reads again. */
const KNOWN_WITHIN_MS = 200;

let dataDir;
let server;

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'rollcall-keys-'));
});
after(async () => {
  await server?.stop();
  await rm(dataDir, { recursive: true, force: true });
});
afterEach(closeAll);

const key = (...args) => rollcall('key', ...args, '--data-dir', dataDir);

async function createKey(name, ...options) {
  const { code, stdout, stderr } = await key('create', name, ...options);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^rk_[\w-]{43}\n$/);
  await sleep(KNOWN_WITHIN_MS);
  return stdout.trim();
}

const online = (token) => rest(server, 'GET', '/v1/service/online', { token });

test('a key that was made before the first start opens the service API', async () => {
  const early = await createKey('early');
  server = await startServer({ dataDir, args: ['--workers', '2'] });
  assert.equal((await online(early)).status, 200);
  await connect(server, 'alice');
  const delivered = await rest(server, 'POST', '/v1/service/deliver', {
    token: early,
    body: { to: { users: ['alice'] }, data: 1 },
  });
  assert.deepEqual(delivered.body, { accepted: 1 });
});

test('a key works at once that was made while the server runs, and not any more 2 s after it was revoked', async () => {
  const token = await createKey('shop', '--scope', 'service');
  await sleep(REVOKED_WITHIN_MS); // the list that gateways have is from before
  assert.equal((await online(token)).status, 200);
  const { code, stderr } = await key('revoke', 'shop');
  assert.equal(code, 0, stderr);
  await sleep(REVOKED_WITHIN_MS);
  for (let i = 0; i < 20; i += 1) {
    const { status, body } = await online(token); // on both workers
    assert.deepEqual([status, body.error.code], [401, 'UNAUTHENTICATED']);
  }
  assert.equal((await key('revoke', 'shop')).code, 1, 'it is gone');
});

test('each scope opens its own routes and no others, and none acts as a user', async () => {
  const routes = {
    service: ['GET', '/v1/service/online'],
    admin: ['GET', '/admin/v1/gateways'],
    deliver: ['POST', '/v1/users/bob/deliver'],
  };
  for (const scope of Object.keys(routes)) {
    const token = await createKey(`only-${scope}`, '--scope', scope);
    for (const [other, [method, path]] of Object.entries(routes)) {
      const { status } = await rest(server, method, path, { token, body: method === 'POST' ? 1 : undefined });
      assert.equal(status === 403, other !== scope, `${scope} at ${path}: ${status}`);
    }
    for (const [method, path] of [['GET', '/v1/me'], ['GET', '/v1/friends'], ['POST', '/v1/chats']])
      assert.equal((await rest(server, method, path, { token, body: method === 'POST' ? {} : undefined })).status, 403);
    assert.equal((await refusal(new URL(`v1/ws?access_token=${token}`, server.url.replace('http', 'ws')).href)).status, 401);
    const inQuery = await fetch(new URL(`v1/service/online?access_token=${token}`, server.url));
    assert.equal(inQuery.status, 401, 'a key is taken from the header only');
  }
});

test('wrong keys get 401 and tell nothing', async () => {
  const texts = ['rk_', 'rk_x', `rk_${'A'.repeat(43)}`, `rk_${'A'.repeat(44)}`, `rk_${'A'.repeat(4000)}`];
  for (const token of texts) {
    const { status, body } = await online(token);
    assert.deepEqual([status, body.error.code], [401, 'UNAUTHENTICATED'], token.slice(0, 10));
  }
});

test('the list shows names, scopes and the last use, and neither the keys nor their hashes are anywhere else', async () => {
  const token = await createKey('listed', '--scope', 'deliver service');
  const unused = await createKey('unused');
  assert.equal((await online(token)).status, 200);
  const lines = await eventually(async () => {
    const { stdout } = await key('list');
    return /^listed\tdeliver service\t\S+Z\t\S+Z$/m.test(stdout) && stdout;
  }, 'the use is listed');
  assert.match(lines, /^unused\tservice\t\S+Z\tnever$/m);
  for (const secret of [token, unused]) {
    assert.ok(!lines.includes(secret.slice(3, 20)));
    assert.ok(!server.log().includes(secret.slice(3, 20)), 'no key is in the log');
    for (const name of ['ledger.db', 'ledger.db-wal']) {
      const bytes = await readFile(join(dataDir, name)).catch(() => Buffer.alloc(0));
      assert.ok(!bytes.includes(secret.slice(3, 20)), 'the ledger has its hash only');
    }
  }
  assert.equal((await stat(join(dataDir, 'control.sock'))).mode & 0o777, 0o600);
});

test('a name is used once, and bad arguments are refused', async () => {
  await createKey('once');
  const again = await key('create', 'once');
  assert.equal(again.code, 1);
  assert.match(again.stderr, /there is a key of this name/);
  for (const args of [[], ['create'], ['create', 'a b'], ['create', 'x'.repeat(65)], ['create', 'y', '--scope', 'root'],
    ['create', 'y', '--scope', ''], ['create', 'a', 'b'], ['list', 'x'], ['revoke'], ['rename', 'x']])
    assert.equal((await key(...args)).code, 2, args.join(' '));
});

test('a killed server leaves no socket in the way, and keys survive', async () => {
  const token = await createKey('survivor');
  await server.stop('SIGKILL');
  assert.match((await key('list')).stdout, /^survivor\tservice\t/m);
  server = await startServer({ dataDir });
  assert.equal((await online(token)).status, 200);
  assert.match((await key('list')).stdout, /^survivor\tservice\t/m);
});
