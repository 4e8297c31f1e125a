/** The example runs as its README says, word by word. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/client.mjs';
import { freePorts } from '../support/redis.mjs';
import { ROLLCALL_BIN } from '../support/server.mjs';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The commands of the README's blocks, with free ports in place of those that another program may have. */
async function readCommands(ports) {
  const text = await readFile(join(root, 'examples/push-notifications/README.md'), 'utf8');
  const replace = (line) =>
    line
      .replaceAll('127.0.0.1:3000', `127.0.0.1:${ports.app}`)
      .replaceAll('127.0.0.1:3001', `127.0.0.1:${ports.push}`)
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${ports.rollcall}`);
  return [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block.trim().split('\n').map(replace));
}

test('a message to somebody who is not there becomes a push notification', async () => {
  const [app, push, rollcall] = await freePorts(3);
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-push-'));
  await symlink(join(root, 'examples'), join(directory, 'examples'));
  await symlink(resolve(dirname(ROLLCALL_BIN)), join(directory, 'build'));
  const children = [];
  after(async () => {
    for (const { child } of children)
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        /* it has ended */
      }
    await rm(directory, { recursive: true, force: true });
  });
  const run = (command, env = {}) => {
    const child = spawn('bash', ['-c', command], { cwd: directory, env: { ...process.env, ...env }, detached: true });
    const started = { child, output: '', ended: new Promise((resolve) => child.on('exit', resolve)) };
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (started.output += text));
    children.push(started);
    return started;
  };
  const [start, send] = await readCommands({ app, push, rollcall });
  await run(start[0]).ended;
  const pushService = run(start[1], { PORT: push });
  await eventually(() => pushService.output.includes('push service on port'), 'the push service');
  const application = run(start[2], { PORT: app });
  await eventually(() => application.output.includes('webhooks on port'), 'the application');
  const server = run(`${start[3]} --listen 127.0.0.1:${rollcall}`);
  await eventually(() => server.output.includes(`port=${rollcall}`), 'the server');

  const made = run(`${send[0]}; ${send[1]}`);
  await made.ended;
  const chatId = JSON.parse(made.output).chat_id;
  const sent = run(`${send[0]}; ${send[2].replace('CHAT_ID', chatId)}`);
  await sent.ended;
  assert.match(sent.output, /"sequence":1/);
  await eventually(() => pushService.output.includes('to bob: ann: Lunch?'), 'the notification');
  assert.equal(application.output.split('\n').length, 2, application.output);

  // Somebody else cannot make the application send notifications.
  const forged = await fetch(`http://127.0.0.1:${app}/`, {
    method: 'POST',
    headers: { 'webhook-id': 'x', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)), 'webhook-signature': 'v1,AAAA' },
    body: '{"events":[]}',
  });
  assert.equal(forged.status, 401);
});
