/**
 * Runs examples/quickstart-$QUICKSTART as its README says: the commands of its `sh` blocks in order, with free ports in
 * place of 8080 and 8000 and $ROLLCALL_BIN in place of build/rollcall.
 */
import { execFile, spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { launchBrowser } from '../e2e/support/browser.mjs';
import { eventually } from '../e2e/support/client.mjs';
import { openContext, waitForText } from '../e2e/support/page.mjs';
import { ROLLCALL_BIN } from '../e2e/support/server.mjs';

const language = process.env.QUICKSTART ?? 'node';
const START_MS = 120000; // a first `go run` compiles
const folder = fileURLToPath(new URL(`../../examples/quickstart-${language}`, import.meta.url));
const { ROLLCALL_BIN: _ours, ...environment } = process.env;

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => listener.once('listening', resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

/** Runs a command in a process group of its own, because `go run` starts the program as a child. */
function start(command) {
  const child = spawn('sh', ['-c', command], { cwd: folder, env: environment, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  const output = { text: '' };
  child.stdout.on('data', (data) => {
    output.text += data;
  });
  const exited = new Promise((resolve) => child.on('exit', resolve));
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGTERM');
    await exited;
  };
  after(stop);
  return { output, stop };
}

const answers = (url) => eventually(() => fetch(url).then(() => true, () => false), url, START_MS);

test(`the README of quickstart-${language} leads to presence`, async () => {
  const [rollcallPort, backendPort] = [await freePort(), await freePort()];
  const page = await readFile(join(folder, 'README.md'), 'utf8');
  const commands = [...page.matchAll(/```sh\n([^]*?)```/g)].map(([, block]) =>
    block.replaceAll('8080', rollcallPort).replaceAll('8000', backendPort).replaceAll('../../build/rollcall', ROLLCALL_BIN),
  );
  const [prepare, serve, backend, befriend, watchAlice, watchBob] = commands;
  after(() => rm(join(folder, 'data'), { recursive: true, force: true }));
  after(() => rm(join(folder, 'secret'), { force: true }));

  await promisify(execFile)('sh', ['-ec', prepare], { cwd: folder, env: environment });
  start(`exec ${serve}`);
  await answers(`http://127.0.0.1:${rollcallPort}/healthz`);
  start(backend);
  await answers(`http://127.0.0.1:${backendPort}/token?user=alice`);
  await promisify(execFile)('sh', ['-ec', befriend], { cwd: folder, env: environment });
  await (language === 'node' ? seeInPages(backendPort) : seeInTerminals(watchAlice, watchBob));
});

async function seeInTerminals(watchAlice, watchBob) {
  const alice = start(watchAlice);
  await eventually(() => alice.output.text.includes('bob is offline\n'), 'alice sees bob offline', START_MS);
  const bob = start(watchBob);
  await eventually(() => alice.output.text.includes('bob is online\n'), 'alice sees bob online', START_MS);
  await eventually(() => bob.output.text.includes('alice is online\n'), 'bob sees alice', START_MS);
  await bob.stop();
  await eventually(() => alice.output.text.endsWith('bob is offline\n'), 'alice sees bob leave');
}

async function seeInPages(port) {
  const browser = await launchBrowser();
  after(() => browser.close());
  const context = await openContext(browser);
  const [alice, bob] = [await context.newPage(), await context.newPage()];
  await alice.goto(`http://127.0.0.1:${port}/?user=alice`);
  await waitForText(alice.locator('#friends li'), 'bob is offline');
  await bob.goto(`http://127.0.0.1:${port}/?user=bob`);
  await waitForText(alice.locator('#friends li'), 'bob is online');
  await waitForText(bob.locator('#friends li'), 'alice is online');
  await bob.close();
  await waitForText(alice.locator('#friends li'), 'bob is offline');
}
