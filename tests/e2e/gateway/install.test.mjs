/** What `make install` brings, below a DESTDIR of its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ROLLCALL_BIN } from '../support/server.mjs';

const run = promisify(execFile);
const source = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

let destination;
let prefix;

before(async () => {
  destination = await mkdtemp(join(tmpdir(), 'rollcall-install-'));
  await run('meson', ['install', '-C', dirname(ROLLCALL_BIN), '--no-rebuild', '--destdir', destination]);
  prefix = join(destination, 'usr/local');
});
after(() => rm(destination, { recursive: true, force: true }));

const read = (path) => readFile(join(prefix, path), 'utf8');

test('the installed program runs', async () => {
  const { stdout } = await run(join(prefix, 'bin/rollcall'), ['--version']);
  assert.match(stdout, /^rollcall \d/);
});

test('the systemd unit starts the program where it is installed', async () => {
  assert.match(await read('lib/systemd/system/rollcall.service'), /^ExecStart=\/usr\/local\/bin\/rollcall /m);
});

test('the manual page, the C client and the examples are installed', async () => {
  await access(join(prefix, 'share/man/man1/rollcall.1'));
  await access(join(prefix, 'include/rollcall.h'));
  await access(join(prefix, 'include/rollcall_api.h'));
  for (const name of ['rollcall.yaml', 'haproxy.cfg', 'fleet/gateway.yaml'])
    await access(join(prefix, 'share/doc/rollcall/examples', name));
});

test('the licence is installed with the documents and with the JavaScript client', async () => {
  const licence = await readFile(source('LICENSE'), 'utf8');
  assert.equal(await read('share/doc/rollcall/LICENSE'), licence);
  assert.equal(await read('share/rollcall/clients/js/LICENSE'), licence);
});

test('the installed JavaScript client is complete, without its tests', async () => {
  const folder = join(prefix, 'share/rollcall/clients/js');
  const { Rollcall } = await import(pathToFileURL(join(folder, 'rollcall.js')).href);
  assert.equal(typeof Rollcall.prototype.connect, 'function');
  const installed = await readdir(folder);
  const wanted = (await readdir(source('clients/js'))).filter((name) => name !== 'test' && name !== 'node_modules');
  assert.deepEqual(installed.sort(), [...wanted, 'LICENSE'].sort());
});
