/** The commands of docs/CONTACTS.md work as they stand there, one after the other. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { friends } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

const execute = promisify(execFile);

let server;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

test('every command of the document succeeds and does what the text says', async () => {
  const document = await readFile(new URL('../../../docs/CONTACTS.md', import.meta.url), 'utf8');
  const commands = [...document.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, command]) => command);
  assert.equal(commands.length, 5);
  const URL_AND_KEY = {
    URL: server.url.replace(/\/$/, ''),
    KEY: await server.token('backend', { scope: 'service' }),
  };
  const printed = [];
  for (const command of commands) {
    const options = { cwd: server.dataDir, env: { ...process.env, ...URL_AND_KEY } };
    printed.push((await execute('sh', ['-euc', command], options)).stdout.trim());
  }
  assert.deepEqual(printed, ['', printed[1], printed[2], '', '']);
  assert.ok(document.includes(`\`${printed[1]}\``), printed[1]);
  assert.ok(document.includes(`\`${printed[2]}\``), printed[2]);
  const contacts = (await friends(server, 'alice')).map(({ user_id: id }) => id);
  assert.deepEqual(contacts.sort(), ['bob', 'dave']);
});
