/** Alert rules, runbooks and dashboard agree with each other, and name only metrics that the server exports. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { metric, rest } from '../support/client.mjs';
import { makeLedger } from '../support/ledger_server.mjs';
import { startServer } from '../support/server.mjs';

/** The service level objectives and their targets. */
const OBJECTIVES = {
  availability: 0.999,
  durability: 0.99999,
  persist_latency_seconds: 0.5,
  delivery_lag_seconds: 2,
  forced_resync: 0.01,
};

/** The metrics of the specification under their names there, by type. */
const SPECIFIED = {
  counter: [
    'redis.keyspace_hits', 'redis.keyspace_misses', 'redis.expired_keys', 'redis.evicted_keys',
    'gateway.connection.timeout', 'gateway.slow_consumer.disconnects', 'gateway.redis.connection_errors',
    'durability.dynamodb.throttle_count', 'durability.counter.corruption', 'durability.duplicate.sequence',
    'fanout.retry.count', 'fanout.consumer.restarts',
  ],
  gauge: [
    'redis.available', 'redis.used_memory_pct', 'redis.connected_clients', 'redis.pubsub_channels', 'redis.pubsub_patterns',
    'routing.lookup_errors_rate', 'routing.keys_count', 'routing.multi_device_users', 'heartbeat.qps', 'heartbeat.latency_p99',
    'presence.stale_entries', 'presence.transitions_per_sec', 'gateway.redis.available', 'gateway.instances.healthy',
    'gateway.circuit_breaker.open', 'gateway.connections.active', 'gateway.connections.rate',
    'durability.dynamodb.available', 'durability.transaction.conflict_rate', 'durability.kafka.available',
    'durability.kafka.produce_latency_p99', 'durability.idempotency.hit_rate', 'durability.persist.latency_p99',
    'durability.messages.persisted_rate', 'fanout.kafka.consumer_lag', 'fanout.delivery.skip_rate',
    'fanout.messages.delivered_rate', 'fanout.dlq.depth', 'client.resync.forced_rate',
    'presence.update_latency_p99', 'presence.subscription_fanout_count', 'presence.stale_ratio', 'typing.delivery_time_p99',
  ],
  histogram: ['durability.kafka.produce_latency_seconds', 'durability.persist.latency_seconds', 'heartbeat.latency_seconds'],
};

/** A threshold that is not the default. */
const DEAD_LETTERS_MAX = 7;

/** Functions over a range, and the type that each of them needs. */
const RANGE_FUNCTIONS = { increase: 'counter', rate: 'counter', avg_over_time: 'gauge', max_over_time: 'gauge' };

const run = promisify(execFile);
const read = (path) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');

let server;
let ledger;
let exported;
let types;
let rules;
let runbooks;

/** Parses the rules: one for each `- record:` or `- alert:`. */
function parseRules(text) {
  return text.split(/^ {6}- /m).slice(1).map((rule) => ({
    record: /^record: (\S+)$/m.exec(rule)?.[1],
    alert: /^alert: (\S+)$/m.exec(rule)?.[1],
    expression: /^ *expr: (.+)$/m.exec(rule)?.[1],
    severity: /severity: (SEV-[123])/.exec(rule)?.[1],
    runbook: /runbook: ([a-z-]+)/.exec(rule)?.[1],
  }));
}

before(async () => {
  server = await startServer({ settings: { 'fanout.dlq.alert_threshold_per_hour': DEAD_LETTERS_MAX } });
  ledger = await makeLedger();
  await ledger.start();
  const pages = await Promise.all([server, ledger.pages].map((target) => rest(target, 'GET', '/metrics')));
  exported = new Set(pages.flatMap(({ body }) => body.match(/^rollcall_\w+/gm)));
  types = new Map(pages.flatMap(({ body }) => [...body.matchAll(/^# TYPE rollcall_(\w+) (\w+)$/gm)].map(([, name, type]) => [name, type])));
  rules = parseRules(await read('deploy/prometheus_rules.yaml'));
  runbooks = await read('docs/RUNBOOKS.md');
});
after(() => Promise.all([server.stop(), ledger.remove()]));

test('every metric and every recorded figure that a rule names exists', () => {
  const recorded = new Set(rules.map(({ record }) => record));
  for (const { record, alert, expression } of rules) {
    const name = record ?? alert;
    assert.ok(expression, name);
    assert.equal(expression.split('(').length, expression.split(')').length, name);
    const metrics = expression.match(/\brollcall_\w+/g) ?? [];
    for (const metric of metrics) assert.ok(exported.has(metric), `${metric} of ${name}`);
    const figures = expression.match(/\brollcall:[\w:]+/g) ?? [];
    for (const figure of figures) assert.ok(recorded.has(figure), `${figure} of ${name}`);
    assert.ok(metrics.length + figures.length > 0 || /^vector\(/.test(expression), name);
  }
});

test('every metric of the specification is exported with its type', () => {
  for (const [type, names] of Object.entries(SPECIFIED))
    for (const name of names.map((dotted) => dotted.replaceAll('.', '_'))) {
      assert.equal(types.get(name), type, name);
      assert.ok(exported.has(`rollcall_${name}${type === 'histogram' ? '_bucket' : ''}`), name);
    }
});

/** Fails if a function over a range is used on a metric of the wrong type, or a range without such a function. */
function assertTypesFit(expression) {
  for (const [, range, name, isRange] of expression.matchAll(/(?:(\w+)\()?\brollcall_(\w+)(\[)?/g)) {
    const [, histogram] = /^(\w+)_bucket$/.exec(name) ?? [];
    const type = types.get(histogram) === 'histogram' ? 'counter' : types.get(name);
    assert.ok(type, `${name} of ${expression}`);
    if (isRange) assert.equal(type, RANGE_FUNCTIONS[range], expression);
  }
}

test('every rule uses its metrics as what they are: growth of counters, values of gauges', () => {
  for (const { expression } of rules) assertTypesFit(expression);
  assert.throws(() => assertTypesFit('increase(rollcall_fanout_dlq_depth[5m]) > 0'));
  assert.throws(() => assertTypesFit('max_over_time(rollcall_fanout_retry_count[5m]) > 0'));
});

test('every metric and figure of the dashboard exists', async () => {
  const { panels } = JSON.parse(await read('deploy/grafana_dashboard.json'));
  const recorded = new Set(rules.map(({ record }) => record));
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  assert.ok(expressions.length > 0);
  for (const expression of expressions) {
    const names = expression.match(/\brollcall[_:][\w:]+/g) ?? [];
    assert.ok(names.length > 0, expression);
    for (const name of names) assert.ok(exported.has(name) || recorded.has(name), expression);
    assertTypesFit(expression);
  }
});

test('the dashboard shows every objective, and whatever an alert of the highest severity reads', async () => {
  const dashboard = await read('deploy/grafana_dashboard.json');
  for (const objective of Object.keys(OBJECTIVES)) assert.match(dashboard, new RegExp(`rollcall:slo_${objective}\\b`));
  for (const { alert, expression } of rules.filter(({ severity }) => severity === 'SEV-1'))
    assert.ok(expression.match(/\brollcall[_:]\w+/g).some((name) => new RegExp(`${name}\\b`).test(dashboard)), alert);
});

test('every objective is recorded with its target, and an alert fires when it is missed', () => {
  for (const [objective, target] of Object.entries(OBJECTIVES)) {
    const name = `rollcall:slo_${objective}`;
    const find = (wanted) => rules.find(({ record }) => record === wanted);
    assert.match(find(name).expression, /rollcall_/, name);
    assert.equal(find(`${name}:target`).expression, `vector(${target})`);
    const uses = ({ alert, expression }) => alert && expression.includes(`${name}:target`);
    assert.ok(rules.some(uses), name);
  }
});

test('every alert has the severity and the runbook that docs/RUNBOOKS.md lists', () => {
  const anchor = (heading) => heading.toLowerCase().replaceAll(' ', '-');
  const headings = [...runbooks.matchAll(/^## (.+)$/gm)].map(([, heading]) => anchor(heading));
  const row = /^\| ([A-Z]\w+) \| .* \| \**(SEV-[123])\** \| \[.+\]\(#([a-z-]+)\) \|$/gm;
  const table = [...runbooks.matchAll(row)].map(([, alert, severity, runbook]) => ({
    alert,
    severity,
    runbook,
  }));
  const alerts = rules
    .filter(({ alert }) => alert)
    .map(({ alert, severity, runbook }) => ({ alert, severity, runbook }));
  const byName = (one, other) => (one.alert < other.alert ? -1 : 1);
  assert.deepEqual(table.sort(byName), alerts.sort(byName));
  for (const { alert, runbook } of alerts) assert.ok(headings.includes(runbook), `${alert}: ${runbook}`);
});

/** Evaluates a rule on the server if it only compares metrics with numbers; undefined for other rules. */
async function holds(expression) {
  const terms = expression.split(' and ').map((term) => /^rollcall_(\w+) (==|>) ([\d.]+)$/.exec(term));
  if (terms.includes(null)) return undefined;
  const compared = await Promise.all(
    terms.map(async ([, name, operator, limit]) => {
      const value = await metric(server, name);
      return operator === '>' ? value > Number(limit) : value === Number(limit);
    }),
  );
  return compared.every(Boolean);
}

test('a single server has no Redis, DynamoDB or Kafka, and no alert fires because of that', async () => {
  const named = ['redis_available', 'gateway_redis_available', 'durability_dynamodb_available', 'durability_kafka_available'];
  for (const name of named) assert.equal(await metric(server, name), 0, name);
  for (const name of ['state_available', 'durability_ledger_available', 'durability_feed_available'])
    assert.equal(await metric(server, name), 1, name);
  const firing = new Map();
  for (const { alert, expression } of rules) if (alert) firing.set(alert, await holds(expression));
  for (const alert of ['RedisUnavailable', 'LedgerUnavailable', 'FeedUnavailable']) assert.equal(firing.get(alert), false, alert);
  assert.deepEqual([...firing].filter(([, fires]) => fires), []);
});

test('promtool accepts the configuration of deploy/fleet/README.md, which scrapes often enough for every window', async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-promtool-'));
  context.after(() => rm(directory, { recursive: true }));
  const [, configuration] = /```yaml\n(.*?)```/s.exec(await read('deploy/fleet/README.md'));
  await writeFile(join(directory, 'prometheus.yml'), configuration);
  await writeFile(join(directory, 'prometheus_rules.yaml'), await read('deploy/prometheus_rules.yaml'));
  await run('promtool', ['check', 'config', join(directory, 'prometheus.yml')]);
  const seconds = Number(/scrape_interval: (\d+)s/.exec(configuration)[1]);
  for (const { expression } of rules)
    for (const [, minutes] of expression.matchAll(/\[(\d+)m\]/g)) assert.ok(4 * seconds <= 60 * minutes, expression);
});

test('the threshold of DeadLettersPileUp is the setting', async () => {
  assert.equal(await metric(server, 'fanout_dlq_alert_threshold_per_hour'), DEAD_LETTERS_MAX);
});

test('the runbooks name only existing metrics, and their table only existing alerts', () => {
  for (const [metric] of runbooks.matchAll(/\brollcall_\w+/g)) assert.ok(exported.has(metric), metric);
  const expressions = new Map(rules.map(({ alert, expression }) => [alert, expression]));
  for (const [row, alert] of runbooks.matchAll(/^\| ([A-Z]\w+) \| .*$/gm))
    for (const [metric] of row.matchAll(/\brollcall_\w+/g))
      assert.match(expressions.get(alert), new RegExp(`\\b${metric}\\b`), alert);
});
