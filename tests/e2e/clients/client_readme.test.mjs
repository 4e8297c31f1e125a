/** The first program in the README of the JavaScript client, run with the packed client as it stands there. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { CLIENT_SOURCE, installPackedClient } from '../support/client_package.mjs';
import { startServer } from '../support/server.mjs';

const run = promisify(execFile);
const require = createRequire(import.meta.url);

test('the program of the first five minutes does what it says', async () => {
  const readme = await readFile(join(CLIENT_SOURCE, 'README.md'), 'utf8');
  const [, program] = /```js\n([^]*?)```/.exec(readme);
  assert.match(program, /http:\/\/127\.0\.0\.1:8080/);
  const [server, { folder, remove }] = await Promise.all([startServer(), installPackedClient()]);
  try {
    await symlink(dirname(require.resolve('ws/package.json')), join(folder, 'node_modules/ws'));
    await writeFile(join(folder, 'hello.mjs'), program.replace('http://127.0.0.1:8080', server.url));
    const { stdout } = await run(process.execPath, ['hello.mjs'], { cwd: folder, timeout: 60000 });
    assert.match(stdout, /^bob is online$/m);
    assert.match(stdout, /^bob has 1 messages$/m);
    assert.match(stdout, /^bob is offline$/m);
  } finally {
    await server.stop();
    await remove();
  }
});
