/**
 * A real Prometheus scrapes a server whose ledger is DynamoDB. DynamoDBUnavailable fires while DynamoDB is dead and ends
 * when it is back, without any request of a client. The rules are those that are shipped, with every duration a tenth.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { SPEED, startPrometheus } from '../e2e/support/prometheus.mjs';
import { createTables, endLater, startDynamodbWithProxy, startOnDynamodb } from './support/dynamodb_gateway.mjs';

/** DynamoDBUnavailable fires after 10 s; Prometheus evaluates every second. */
const PENDING_EVALUATIONS = 10 / SPEED;
/** A call waits for its time limit, and a busy machine takes its time. */
const NOTICE_MS = 60000;

let dynamodb;
let server;
let prometheus;

before(async () => {
  let proxy;
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
  assert.ok(pending >= PENDING_EVALUATIONS, `it was pending for its duration: ${pending} evaluations`);

  await dynamodb.start();
  await prometheus.waitForAlert('DynamoDBUnavailable', [], NOTICE_MS);
});
