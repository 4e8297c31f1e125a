/**
 * A real Prometheus scrapes two gateways and their ledger. Each failure fires its alert, and the alert ends when the
 * failure is mended. The rules are those that are shipped, with every duration a tenth.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { AMPLE_RATES, makeChat, sendMessage } from '../support/chats.mjs';
import { closeAll, connect, eventually, SOON_MS } from '../support/client.mjs';
import { joinFleet, QUICK, sendUntilAcked, startFleet } from '../support/fleet.mjs';
import { sql } from '../support/ledger.mjs';
import { accelerateRules, SPEED, startPrometheus } from '../support/prometheus.mjs';
import { startRedis } from '../support/redis.mjs';
import { rollcall } from '../support/server.mjs';

/** CounterCorruption ends 15 minutes after the last refused message. */
const CORRUPTION_MS = (15 * 60000) / SPEED;
/** CircuitBreakerOpen fires after a minute of evaluations every 5 s. */
const PENDING_EVALUATIONS = 60 / 5;

let redis;
let fleet;
let prometheus;
let alice;

before(async () => {
  redis = await startRedis();
  fleet = await startFleet({
    redis,
    settings: { ...QUICK, ...AMPLE_RATES, 'gateway.circuit_breaker.open_duration_seconds': 30 / SPEED },
  });
  await makeChat(fleet.gateways[0], 'c', 'alice', 'bob');
  await makeChat(fleet.gateways[0], 'd', 'alice', 'bob');
  alice = await joinFleet(fleet.gateways[0], 'alice');
  prometheus = await startPrometheus([...fleet.gateways, fleet.ledger.pages]);
});
after(async () => {
  closeAll();
  await prometheus?.stop();
  await fleet?.stop();
  await redis.stop();
});

test('the accelerated rules differ from the shipped ones in durations only', async () => {
  const shipped = await readFile(new URL('../../../deploy/prometheus_rules.yaml', import.meta.url), 'utf8');
  const accelerated = accelerateRules(shipped);
  const withoutDurations = (text) => text.replace(/\b\d+(ms|s|m|h|d)\b/g, 'DURATION');
  assert.equal(withoutDurations(accelerated), withoutDurations(shipped));
  assert.match(accelerated, /for: 1000ms\n/);
  assert.doesNotMatch(accelerated, /(for: |interval: |\[|offset )\d+(s|m|h|d)\b/);
});

test('nothing fires while the fleet is healthy', async () => {
  for (let n = 1; n <= 3; n += 1) assert.equal((await sendMessage(alice, 'c', `text ${n}`, `first-${n}`)).sequence, n);
  await eventually(async () => (await prometheus.query('sum(rollcall_durability_messages_persisted)')) === 3, 'a scrape after it');
  assert.deepEqual(await prometheus.alerts(), []);
});

let refusedAtMs;

test('CounterCorruption fires for the gateway that was refused; after `rollcall repair` the chat goes on', async (context) => {
  await sql(fleet.ledger.path, "UPDATE chat_counters SET sequence = 1 WHERE chat_id = 'c'");
  assert.equal((await sendMessage(alice, 'c', 'refused', 'refused')).code, 'CHAT_HALTED');
  refusedAtMs = Date.now();
  const ms = await prometheus.waitForAlert('CounterCorruption', [fleet.gateways[0]]);
  context.diagnostic(`fires ${ms} ms after the refusal`);
  await prometheus.waitForAlert('LedgerDuplicateSequence', [fleet.ledger.pages]);
  const [{ severity, runbook }] = (await prometheus.alerts()).filter(({ alertname }) => alertname === 'CounterCorruption');
  assert.deepEqual({ severity, runbook }, { severity: 'SEV-1', runbook: 'counter-corruption' });

  await fleet.ledger.stop();
  const repaired = await rollcall('repair', '--ledger', `sqlite:${fleet.ledger.path}`, 'c');
  assert.match(repaired.stdout, /is set to 3; the next message gets 4/, repaired.stderr);
  await fleet.ledger.start();
  assert.equal((await sendUntilAcked(alice, 'c', 'goes on')).sequence, 4);
  assert.deepEqual(await prometheus.instances('CounterCorruption'), prometheus.targets.slice(0, 1), 'it still fires');
});

test('LedgerUnavailable and CircuitBreakerOpen fire while the ledger is dead, and end with the first send', async (context) => {
  await fleet.ledger.stop('SIGKILL');
  const failing = setInterval(() => alice.send({ type: 'send_message', chat_id: 'd', client_message_id: 'x', body: 'x' }), 200);
  context.after(() => clearInterval(failing));
  await prometheus.waitForAlert('LedgerUnavailable', fleet.gateways);
  const ms = await prometheus.waitForAlert('CircuitBreakerOpen', [fleet.gateways[0]], 2 * SOON_MS);
  context.diagnostic(`CircuitBreakerOpen fires ${ms} ms after LedgerUnavailable`);
  const pending = await prometheus.query('sum(count_over_time(ALERTS{alertname="CircuitBreakerOpen",alertstate="pending"}[5m]))');
  assert.ok(pending >= PENDING_EVALUATIONS - 1, `it was pending for its duration: ${pending} evaluations`);

  clearInterval(failing);
  await fleet.ledger.start();
  await sendUntilAcked(alice, 'd', 'stored again');
  await prometheus.waitForAlert('CircuitBreakerOpen', []);
  await prometheus.waitForAlert('LedgerUnavailable', []);
});

test('RedisUnavailable fires for both gateways while Redis is dead, and ends when it is back', async (context) => {
  await redis.kill();
  const ms = await prometheus.waitForAlert('RedisUnavailable', fleet.gateways);
  context.diagnostic(`fires ${ms} ms after the death of Redis`);
  const [{ severity }] = (await prometheus.alerts()).filter(({ alertname }) => alertname === 'RedisUnavailable');
  assert.equal(severity, 'SEV-1');
  await redis.start();
  await prometheus.waitForAlert('RedisUnavailable', []);
});

test('CounterCorruption ends when no message was refused for its window', async () => {
  await prometheus.waitForAlert('CounterCorruption', [], CORRUPTION_MS + 2 * SOON_MS);
  const lastedMs = Date.now() - refusedAtMs;
  assert.ok(lastedMs > CORRUPTION_MS - 5000, `it fired for ${lastedMs} ms`);
  await prometheus.waitForAlert('LedgerDuplicateSequence', []);
  assert.equal((await sendMessage(await connect(fleet.gateways[1], 'bob'), 'c', 'and on')).sequence, 5);
});
