/** docs/AUTH.md does what it says: its commands run, its programs sign tokens and answer, and its settings are accepted. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { closeAll, connect, eventually, refusal, rest } from '../support/client.mjs';
import { freePorts } from '../support/redis.mjs';
import { ROLLCALL_BIN } from '../support/server.mjs';

const run = promisify(execFile);
const page = await readFile(new URL('../../../docs/AUTH.md', import.meta.url), 'utf8');
const [secretCommands, keyCommands, hookCommand] = [...page.matchAll(/```sh\n([^]*?)```/g)].map(([, block]) => block.trim().split('\n'));
const [signing, , hook] = [...page.matchAll(/```js\n([^]*?)```/g)].map(([, block]) => block);

let folder;
const children = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rollcall-auth-'));
  await symlink(dirname(resolve(ROLLCALL_BIN)), join(folder, 'build'));
});
after(async () => {
  closeAll();
  for (const { child, exited } of children) {
    child.kill();
    await exited;
  }
  await rm(folder, { recursive: true, force: true });
});

function start(command, env = {}) {
  const child = spawn('sh', ['-c', `exec ${command}`], { cwd: folder, env: { ...process.env, ...env }, stdio: 'ignore' });
  children.push({ child, exited: new Promise((done) => child.on('exit', done)) });
}

/** Runs all commands but the last, and starts the last one, the server, on a port of its own. */
async function serve(commands) {
  for (const command of commands.slice(0, -1)) await run('sh', ['-ec', command], { cwd: folder });
  const [port] = await freePorts(1);
  start(`${commands.at(-1).replace('--data-dir data', `--data-dir data-${port}`)} --listen 127.0.0.1:${port}`);
  const server = { url: `http://127.0.0.1:${port}/` };
  await eventually(() => fetch(`${server.url}readyz`).then(({ ok }) => ok, () => false), 'the server is ready');
  return server;
}

const whoIs = async (server, token) => (await rest(server, 'GET', '/v1/me', { token })).body.user_id;
const messageOf = async (server, token) => (await rest(server, 'GET', '/v1/me', { token })).body.error.message;

test('the program signs tokens that a server with the same secret accepts', async () => {
  const server = await serve(secretCommands);
  await writeFile(join(folder, 'sign.mjs'), signing);
  const { signToken } = await import(pathToFileURL(join(folder, 'sign.mjs')).href);
  const secret = (await readFile(join(folder, 'secret'), 'utf8')).trim();
  assert.equal(await whoIs(server, signToken('alice', secret)), 'alice');
  assert.equal((await rest(server, 'GET', '/v1/me', { token: signToken('alice', 'guess') })).status, 401);
});

test('a key pair works, and the connect hook decides', async () => {
  const server = await serve(keyCommands);
  const sign = async (user, ...options) =>
    (await run(resolve(ROLLCALL_BIN), ['token', user, '--key', 'private.pem', ...options], { cwd: folder })).stdout.trim();
  assert.equal(await whoIs(server, await sign('alice')), 'alice');

  const [port] = await freePorts(1);
  await writeFile(join(folder, 'hook.mjs'), hook);
  start('node hook.mjs', { PORT: String(port) });
  const hooked = await serve([hookCommand[0].replace('127.0.0.1:3000', `127.0.0.1:${port}`)]);
  await eventually(() => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{"user_id":"x"}' }).then(({ ok }) => ok, () => false), 'the hook');
  const alice = await connect(hooked, 'alice', { token: await sign('alice') });
  assert.equal(alice.established.display_name, 'ALICE');
  const url = `${hooked.url.replace('http', 'ws')}v1/ws?access_token=${await sign('mallory')}`;
  const { status, error } = await refusal(url);
  assert.deepEqual([status, error.message], [403, 'this account is closed']);

  const expired = await sign('alice', '--ttl', '0.001');
  const quoted = `"${await sign('alice')}"`;
  for (const [token, message] of [[undefined, 'a bearer token is needed'], [quoted, 'token is not three base64url parts'], [expired, 'token has expired']]) {
    assert.equal(await messageOf(server, token), message);
    assert.ok(page.includes(`| \`${message}\` |`), message);
  }
});

test('every reason in the table is one that the server gives', async () => {
  const source = await readFile(new URL('../../../src/auth/jwt.h', import.meta.url), 'utf8');
  const reasons = [...source.matchAll(/"(token [^"]+)"/g)].map(([, text]) => text.replaceAll('`', ''));
  const table = page.slice(page.indexOf('| `message` |'));
  const named = [...table.matchAll(/^\| (`token .*?`) \|/gm)].flatMap(([, cell]) => cell.split('`, `')).map((text) => text.replaceAll('`', ''));
  assert.ok(named.length >= 8);
  for (const text of named) assert.ok(reasons.includes(text), text);
});

test('the settings are accepted', async () => {
  const [, yaml] = /```yaml\n([^]*?)```/.exec(page);
  await writeFile(join(folder, 'rollcall.yaml'), yaml);
  const [port] = await freePorts(1);
  start(`build/rollcall serve --config rollcall.yaml --data-dir data-${port} --listen 127.0.0.1:${port}`);
  await eventually(() => fetch(`http://127.0.0.1:${port}/healthz`).then(({ ok }) => ok, () => false), 'the server runs');
  assert.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 503, 'not ready before it has keys');
});
