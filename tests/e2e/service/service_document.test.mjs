/** The examples of docs/SERVICE_API.md work as they stand there. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { closeAll, connect } from '../support/client.mjs';
import { rollcall, startServer } from '../support/server.mjs';

const execute = promisify(execFile);

let server;

before(async () => {
  server = await startServer();
});
after(async () => {
  closeAll();
  await server.stop();
});

/** Runs a command of the document; returns what it prints. */
async function run(command, env) {
  const { stdout } = await execute('sh', ['-euc', command], { env: { ...process.env, ...env } });
  return stdout;
}

test('every curl command of the document succeeds', async () => {
  const document = await readFile(new URL('../../../docs/SERVICE_API.md', import.meta.url), 'utf8');
  const blocks = [...document.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block);
  const commands = blocks.flatMap((block) => block.split(/^(?=curl )/m)).filter((one) => one.startsWith('curl '));
  assert.ok(commands.length > 0, 'the document has commands');
  for (const user of ['alice', 'bob']) await connect(server, user);
  const env = {
    URL: server.url.replace(/\/$/, ''),
    KEY: (await rollcall('key', 'create', 'shop', '--scope', 'service', '--data-dir', server.dataDir)).stdout.trim(),
  };
  for (const command of commands) {
    const printed = await run(command, env);
    const answer = printed === '' ? {} : JSON.parse(printed);
    assert.equal(answer.error, undefined, `${command}\n${printed}`);
  }
});
