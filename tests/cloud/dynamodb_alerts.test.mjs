/**
 * A real Prometheus scrapes a server whose ledger is DynamoDB. DynamoDBUnavailable fires while DynamoDB is dead and ends
 * when it is back, without any request of a client; CounterCorruption and DuplicateSequence fire for a damaged counter.
 * The rules are those that are shipped, with every duration a tenth.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { makeChat, sendMessage } from '../e2e/support/chats.mjs';
import { connect } from '../e2e/support/client.mjs';
import { startPrometheus } from '../e2e/support/prometheus.mjs';
import { createTables, endLater, operate, rollcallOn, startDynamodbWithProxy, startOnDynamodb } from './support/dynamodb_gateway.mjs';

/** DynamoDBUnavailable fires after 10 s of evaluations every 5 s. */
const PENDING_EVALUATIONS = 10 / 5;
/** A call waits for its time limit, and a busy machine takes its time. */
const NOTICE_MS = 60000;

let dynamodb;
let proxy;
let server;
let prometheus;

before(async () => {
  ({ dynamodb, proxy } = await startDynamodbWithProxy({ durable: true }));
  await createTables(proxy, 'alerts-');
  server = await startOnDynamodb(proxy, { prefix: 'alerts-' });
  prometheus = await startPrometheus([server]);
  endLater(() => prometheus.stop());
});

test('DynamoDBUnavailable fires while DynamoDB is dead, and ends when it is back', async (context) => {
  await prometheus.waitForAlert('DynamoDBUnavailable', []);
  await dynamodb.kill();
  const ms = await prometheus.waitForAlert('DynamoDBUnavailable', [server], NOTICE_MS);
  context.diagnostic(`fires ${ms} ms after the death of DynamoDB`);
  const [{ severity, runbook }] = (await prometheus.alerts()).filter(({ alertname }) => alertname === 'DynamoDBUnavailable');
  assert.deepEqual({ severity, runbook }, { severity: 'SEV-1', runbook: 'circuit-breaker-open' });
  assert.deepEqual(await prometheus.instances('LedgerUnavailable'), []);
  const pending = await prometheus.query('min(count_over_time(ALERTS{alertname="DynamoDBUnavailable",alertstate="pending"}[5m]))');
  assert.ok(pending >= PENDING_EVALUATIONS - 1, `it was pending for its duration: ${pending} evaluations`);

  await dynamodb.start();
  await prometheus.waitForAlert('DynamoDBUnavailable', [], NOTICE_MS);
});

test('CounterCorruption and DuplicateSequence fire for a counter that lags; repair restores it', async () => {
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  for (const sequence of [1, 2]) assert.equal((await sendMessage(alice, 'c', 'text')).sequence, sequence);
  await operate(dynamodb, 'UpdateItem', {
    TableName: 'alerts-chat_counters',
    Key: { chat_id: { S: 'c' } },
    UpdateExpression: 'SET sequence_counter = :old',
    ExpressionAttributeValues: { ':old': { N: '1' } },
  });
  assert.equal((await sendMessage(alice, 'c', 'refused')).code, 'CHAT_HALTED');
  await prometheus.waitForAlert('CounterCorruption', [server], NOTICE_MS);
  await prometheus.waitForAlert('DuplicateSequence', [server], NOTICE_MS);

  const { code, stdout, stderr } = await rollcallOn(proxy, 'alerts-', 'repair', '--ledger', 'URL', 'c');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /is set to 2; the next message gets 3/);
  assert.equal((await sendMessage(alice, 'c', 'goes on')).sequence, 3);
});
