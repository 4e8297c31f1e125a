/** The servers of the other tests here: they start, and a restart after a kill finds what it must. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { eventually } from '../e2e/support/client.mjs';
import { startDynamodb, startKafka } from './support/cloud_servers.mjs';

const execute = promisify(execFile);

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
