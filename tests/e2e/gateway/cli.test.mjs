/** The command line: help, settings, errors at the start, tokens. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { closeAll, connect } from '../support/client.mjs';
import { rollcall, rollcallWith, startServer } from '../support/server.mjs';

let directory;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-cli-'));
});
after(() => rm(directory, { recursive: true, force: true }));

async function fileWith(name, text) {
  const path = join(directory, name);
  await writeFile(path, text);
  return path;
}

/** Expects that the server does not start: exit code 2, nothing on stdout, the reason on stderr. */
async function expectRefused(args, ...patterns) {
  const { code, stdout, stderr } = await rollcall(
    'serve',
    '--dev',
    '--data-dir',
    directory,
    ...args,
  );
  assert.equal(code, 2, stderr);
  assert.equal(stdout, '');
  for (const pattern of patterns) assert.match(stderr, pattern);
}

const claims = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));

test('--help names every command, serve --help every option, --version the version', async () => {
  for (const help of ['--help', '-h', 'help']) {
    const { code, stdout } = await rollcall(help);
    assert.equal(code, 0);
    for (const command of ['serve', 'token']) assert.match(stdout, new RegExp(`^ +${command}\\b`, 'm'));
  }
  const serve = await rollcall('serve', '--help');
  assert.equal(serve.code, 0);
  for (const option of `--config --dev --listen --node-id --workers --state --ledger --jwt-keys
    --data-dir --set --print-config`.split(/\s+/))
    assert.ok(serve.stdout.includes(option), option);
  const { code, stdout } = await rollcall('--version');
  assert.equal(code, 0);
  assert.match(stdout, /^rollcall \d+\.\d+\.\d+\n$/);
});

test('unknown commands and options are reported with exit code 2', async () => {
  for (const args of [[], ['sever'], ['serve', '--devv'], ['serve', '--listen'], ['token']]) {
    const { code, stderr, stdout } = await rollcall(...args);
    assert.equal(code, 2, args.join(' '));
    assert.equal(stdout, '');
    assert.notEqual(stderr, '');
  }
  assert.match((await rollcall('serve', '--devv')).stderr, /--dev\b/);
});

test('an invalid setting prevents the start, and the error names what was expected', async () => {
  await expectRefused(['--set', 'gateway.lisen=x'], /gateway\.lisen/, /gateway\.listen/);
  await expectRefused(['--set', 'presence.idle_seconds=soon'], /presence\.idle_seconds/, /soon/);
  await expectRefused(['--set', 'timing.profile=quick'], /realtime/, /standard/, /relaxed/);
  await expectRefused(['--set', 'debug.echo=maybe'], /true/, /false/);
  await expectRefused(['--set', 'nonsense'], /nonsense/);
  await expectRefused(['--workers', '-1'], /workers/);
  await expectRefused(['--listen', 'nowhere'], /nowhere/);
  await expectRefused(['--listen', '0.0.0.0:0'], /loopback/i);
});

test('an error in the configuration file is reported with its line number', async () => {
  const path = await fileWith(
    'wrong.yaml',
    'gateway:\n  max_frame_bytes: 70000\n  timeouts:\n    heartbeat_interval_seconds: often\n',
  );
  await expectRefused(['--config', path], /wrong\.yaml/, /\b4\b/, /heartbeat_interval_seconds/);
  const unknown = await fileWith('unknown.yaml', '# comment\npresence:\n  idle_secconds: 5\n');
  await expectRefused(['--config', unknown], /\b3\b/, /idle_secconds/, /idle_seconds/);
  await expectRefused(['--config', await fileWith('broken.yaml', 'a: [\n')], /broken\.yaml/);
  await expectRefused(['--config', join(directory, 'missing.yaml')], /missing\.yaml/);
});

test('an unknown ROLLCALL_ variable prevents the start', async () => {
  await assert.rejects(
    startServer({ env: { ROLLCALL_PRESENCE__IDLE_SECONDZ: '5' } }),
    /IDLE_SECONDZ/,
  );
});

test('--print-config shows which source wins, as a file that can be read again', async () => {
  const path = await fileWith(
    'layers.yaml',
    'gateway:\n  workers: 2\n  max_frame_bytes: 1000\n  max_connections: 10\n' +
      'typing:\n  ttl_seconds: 9\n',
  );
  const args = ['serve', '--dev', '--config', path, '--print-config'];
  const sets = ['--set', 'gateway.workers=4', '--set', 'gateway.max_frame_bytes=3000'];
  const env = {
    ROLLCALL_GATEWAY__WORKERS: '3',
    ROLLCALL_GATEWAY__MAX_FRAME_BYTES: '2000',
    ROLLCALL_GATEWAY__MAX_CONNECTIONS: '20',
  };
  const { stdout } = await rollcallWith(env, ...args, ...sets, '--workers', '5');
  const shows = (name, value) => assert.match(stdout, new RegExp(`^\\s+${name}: ${value}\\b`, 'm'));
  shows('workers', 5);
  shows('max_frame_bytes', 3000);
  shows('max_connections', 20);
  shows('ttl_seconds', 9);
  shows('idle_seconds', 300);

  const again = await fileWith('again.yaml', stdout);
  const repeated = await rollcall('serve', '--config', again, '--print-config');
  assert.equal(repeated.code, 0, repeated.stderr);
  const settings = (text) => text.replaceAll(/\s*#.*$/gm, '');
  assert.equal(settings(repeated.stdout), settings(stdout));
});

test('without keys the server does not start, and the error names the options that provide them', async () => {
  const { code, stderr } = await rollcall('serve', '--data-dir', directory);
  assert.equal(code, 2);
  assert.match(stderr, /--jwt-keys/);
  assert.match(stderr, /--dev/);
  const missing = await rollcall('serve', '--data-dir', directory, '--jwt-keys', '/nowhere/keys');
  assert.notEqual(missing.code, 0);
  assert.match(missing.stderr, /\/nowhere\/keys/);
});

test('a port that is in use is reported', async () => {
  const other = createServer();
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address();
  try {
    await assert.rejects(startServer({ port }), new RegExp(`${port}`));
  } finally {
    other.close();
  }
});

test('`rollcall token` prints one token or many, with a time to live and scopes', async () => {
  const server = await startServer();
  try {
    const options = ['--data-dir', server.dataDir];
    const one = await rollcall('token', 'alice', ...options, '--ttl', '60', '--scope', 'a b');
    assert.equal(one.code, 0);
    const claimed = claims(one.stdout.trim());
    assert.equal(claimed.sub, 'alice');
    assert.equal(claimed.scope, 'a b');
    assert.ok(Math.abs(claimed.exp - Date.now() / 1000 - 60) < 10);

    const many = await rollcall('token', 'user', '--count', '3', ...options);
    const tokens = many.stdout.trimEnd().split('\n');
    assert.deepEqual(
      tokens.map((token) => claims(token).sub),
      ['user0', 'user1', 'user2'],
    );
    const { established } = await connect(server, 'user2', { token: tokens[2] });
    assert.equal(established.user_id, 'user2');
    for (const wrong of [
      ['--ttl', '-5'],
      ['--ttl', 'x'],
      ['--count', '0'],
      ['--key', '/none'],
    ])
      assert.notEqual(
        (await rollcall('token', 'a', ...options, ...wrong)).code,
        0,
        wrong.join(' '),
      );
    assert.notEqual((await rollcall('token', 'x'.repeat(129), ...options)).code, 0);
  } finally {
    closeAll();
    await server.stop();
  }
});

test('the private key of a data directory is readable by its owner only', async () => {
  const server = await startServer();
  try {
    assert.equal((await stat(server.dataDir)).mode & 0o077, 0);
    let secrets = 0;
    for (const name of await readdir(server.dataDir)) {
      const path = join(server.dataDir, name);
      if (!(await stat(path)).isFile()) {
        assert.equal((await stat(path)).mode & 0o077, 0, `${name}, by which commands reach the server`);
        continue;
      }
      if (!/PRIVATE KEY/.test(await readFile(path, 'latin1'))) continue;
      assert.equal((await stat(path)).mode & 0o077, 0, name);
      secrets += 1;
    }
    assert.equal(secrets, 1);
  } finally {
    await server.stop();
  }
});
