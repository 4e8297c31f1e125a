/** The example chats, started by the commands of examples/README.md and opened at the addresses that it names. */
import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launchBrowser } from '../e2e/support/browser.mjs';
import { eventually } from '../e2e/support/client.mjs';
import { openContext, waitForText } from '../e2e/support/page.mjs';
import { freePorts } from '../e2e/support/redis.mjs';
import { ROLLCALL_BIN } from '../e2e/support/server.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const START_MS = 120000; // npm may be slow

/** A copy of what the page needs of the repository, so that `npm install` leaves nothing in it. */
async function copyRepository() {
  const folder = await mkdtemp(join(tmpdir(), 'rollcall-chats-'));
  after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const filter = (path) => !path.includes('node_modules');
  await cp(join(root, 'examples'), join(folder, 'examples'), { recursive: true, filter });
  await cp(join(root, 'clients/js'), join(folder, 'clients/js'), { recursive: true, filter });
  await symlink(dirname(resolve(ROLLCALL_BIN)), join(folder, 'build'));
  return folder;
}

function start(folder, command) {
  const { ROLLCALL_BIN: _ours, ...env } = process.env;
  const child = spawn('sh', ['-c', command], { cwd: folder, env, detached: true, stdio: 'ignore' });
  const exited = new Promise((resolve) => child.on('exit', resolve));
  after(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGTERM');
    await exited;
  });
  return exited;
}

test('the README of the examples leads to two chats that talk to each other', async () => {
  const [rollcallPort, filesPort] = await freePorts(2);
  const folder = await copyRepository();
  const page = (await readFile(join(root, 'examples/README.md'), 'utf8'))
    .replaceAll('8080', rollcallPort)
    .replaceAll('8000', filesPort);
  const [serve, install, files] = /```sh\n([^]*?)```/.exec(page)[1].trim().split('\n');
  const [socketio, rollcall] = [...page.matchAll(/`(http:\/\/localhost:\d+\/examples\/[^`]*)`/g)].map(([, address]) => address);

  start(folder, `exec ${serve}`);
  if ((await start(folder, install)) !== 0) throw new Error(`${install} failed`);
  start(folder, `exec ${files}`);
  const answers = (url) => eventually(() => fetch(url).then(() => true, () => false), url, START_MS);
  await answers(`http://127.0.0.1:${rollcallPort}/healthz`);
  await answers(`http://127.0.0.1:${filesPort}/`);

  const browser = await launchBrowser();
  after(() => browser.close());
  const context = await openContext(browser);
  const [ann, bob] = [await context.newPage(), await context.newPage()];
  const server = encodeURIComponent(`http://127.0.0.1:${rollcallPort}`); // as the page says, for another port
  await ann.goto(`${socketio}&server=${server}`);
  await bob.goto(`${rollcall}&server=${server}`);
  await waitForText(ann.locator('#peer'), 'bob is online');
  await bob.locator('#body').fill('hello');
  await bob.getByRole('button', { name: 'Send' }).click();
  await waitForText(ann.locator('#messages li').last(), 'bob hello');
});
