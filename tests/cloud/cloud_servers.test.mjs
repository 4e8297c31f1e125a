/** The servers of the other tests here: they start, and a restart after a kill finds what it must. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from '../e2e/support/client.mjs';
import { startDynamodb, startKafka } from './support/cloud_servers.mjs';

const execute = promisify(execFile);
const TOOL = fileURLToPath(new URL('../../tools/cloud-servers', import.meta.url));

const brokersOf = (kafka) =>
  execute('kcat', ['-b', kafka.addresses, '-L', '-m', '2']).then(
    ({ stdout }) => Number(/^ (\d+) brokers:$/m.exec(stdout)[1]),
    () => 0,
  );

test('DynamoDB Local answers, and again after it was killed', async (t) => {
  const dynamodb = await startDynamodb({ durable: true });
  t.after(() => dynamodb.stop());
  assert.equal((await fetch(dynamodb.endpoint)).status, 400); // a request that names no operation
  await dynamodb.kill();
  await assert.rejects(fetch(dynamodb.endpoint));
  await dynamodb.start();
  assert.equal((await fetch(dynamodb.endpoint)).status, 400);
});

test('a broker answers, and again after it was killed', async (t) => {
  const kafka = await startKafka();
  t.after(() => kafka.stop());
  await eventually(async () => (await brokersOf(kafka)) === 1, 'the broker is registered');
  await kafka.each('kill');
  assert.equal(await brokersOf(kafka), 0);
  await kafka.each('start');
  await eventually(async () => (await brokersOf(kafka)) === 1, 'the broker is registered again');
});

test('without Maven, and without Java, it says what is missing and what installs it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bare-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const tool of ['bash', 'mkdir', 'mktemp', 'rm', 'env']) {
    const { stdout } = await execute('bash', ['-c', `command -v ${tool}`]);
    await symlink(stdout.trim(), join(folder, tool));
  }
  const refusal = (args, cache) =>
    execute(join(folder, 'bash'), [TOOL, ...args], { env: { PATH: folder, HOME: folder, XDG_CACHE_HOME: cache } }).then(
      () => assert.fail('it should fail'),
      ({ code, stderr }) => ({ code, stderr }),
    );
  const told = (program) => ({
    code: 1,
    stderr: `cloud-servers: there is no ${program} here; 'tools/install-deps cloud' installs it\n`,
  });
  assert.deepEqual(await refusal(['fetch'], join(folder, 'cache')), told('mvn'));
  const fetched = process.env.XDG_CACHE_HOME ?? join(process.env.HOME, '.cache');
  assert.deepEqual(await refusal(['dynamodb', '1'], fetched), told('java'));
});
