/**
 * A real Prometheus scrapes two gateways with Kafka between them. KafkaUnavailable fires while the broker is dead and
 * ends when it is back. The rules are those that are shipped, with every duration a tenth.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AMPLE_RATES, makeChat, sendMessage } from '../e2e/support/chats.mjs';
import { closeAll } from '../e2e/support/client.mjs';
import { joinFleet, QUICK, sendUntilAcked, startFleet } from '../e2e/support/fleet.mjs';
import { startPrometheus } from '../e2e/support/prometheus.mjs';
import { startRedis } from '../e2e/support/redis.mjs';
import { rollcall } from '../e2e/support/server.mjs';
import { startKafka } from './support/cloud_servers.mjs';

/** KafkaUnavailable fires after 30 s of evaluations every 5 s. */
const PENDING_EVALUATIONS = 30 / 5;
/** The gateway asks the brokers every two seconds, and a busy machine takes its time. */
const NOTICE_MS = 60000;
/** A broker that was killed waits for its old registration to expire. */
const RESTART_MS = 120000;

let kafka;
let redis;
let fleet;
let prometheus;
let alice;

before(async () => {
  [kafka, redis] = await Promise.all([startKafka(), startRedis()]);
  const settings = { 'durability.kafka.partitions': 2, 'durability.kafka.replication': 1 };
  const set = Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const created = await rollcall('topics', 'create', '--feed', kafka.url, ...set);
  assert.equal(created.code, 0, created.stderr);
  fleet = await startFleet({ redis, settings: { ...QUICK, ...AMPLE_RATES, 'feed.url': kafka.url } });
  await makeChat(fleet.gateways[0], 'c', 'alice', 'bob');
  alice = await joinFleet(fleet.gateways[0], 'alice');
  await sendUntilAcked(alice, 'c', 'before', NOTICE_MS);
  prometheus = await startPrometheus(fleet.gateways);
});
after(async () => {
  closeAll();
  await prometheus?.stop();
  await fleet?.stop();
  await redis?.stop();
  await kafka?.stop();
});

test('KafkaUnavailable fires on every gateway while the broker is dead, and ends when it is back', async (context) => {
  await prometheus.waitForAlert('KafkaUnavailable', []);
  await kafka.each('kill');
  const ms = await prometheus.waitForAlert('KafkaUnavailable', fleet.gateways, NOTICE_MS);
  context.diagnostic(`fires ${ms} ms after the death of the broker`);
  const [{ severity, runbook }] = (await prometheus.alerts()).filter(({ alertname }) => alertname === 'KafkaUnavailable');
  assert.deepEqual({ severity, runbook }, { severity: 'SEV-2', runbook: 'kafka-out-of-reach' });
  assert.deepEqual(await prometheus.instances('FeedUnavailable'), []);
  const pending = await prometheus.query('min(count_over_time(ALERTS{alertname="KafkaUnavailable",alertstate="pending"}[5m]))');
  assert.ok(pending >= PENDING_EVALUATIONS - 1, `it was pending for its duration: ${pending} evaluations`);
  assert.equal((await sendMessage(alice, 'c', 'refused', 'refused')).code, 'SERVICE_UNAVAILABLE');

  await kafka.each('start');
  await sendUntilAcked(alice, 'c', 'after', RESTART_MS);
  await prometheus.waitForAlert('KafkaUnavailable', [], NOTICE_MS);
});
