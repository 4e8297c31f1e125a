/** Alert rules, runbooks and dashboard agree with each other, and name only metrics that the server exports. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
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

const read = (path) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');

let server;
let ledger;
let exported;
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
  server = await startServer();
  ledger = await makeLedger();
  await ledger.start();
  const pages = await Promise.all([server, ledger.pages].map((target) => rest(target, 'GET', '/metrics')));
  exported = new Set(pages.flatMap(({ body }) => body.match(/^rollcall_\w+/gm)));
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

test('every metric and figure of the dashboard exists', async () => {
  const { panels } = JSON.parse(await read('deploy/grafana_dashboard.json'));
  const recorded = new Set(rules.map(({ record }) => record));
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  assert.ok(expressions.length > 0);
  for (const expression of expressions) {
    const [name] = expression.match(/\brollcall[_:][\w:]+/) ?? [];
    assert.ok(exported.has(name) || recorded.has(name), expression);
  }
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

test('the runbooks name only existing metrics, and their table only existing alerts', () => {
  for (const [metric] of runbooks.matchAll(/\brollcall_\w+/g)) assert.ok(exported.has(metric), metric);
  const expressions = new Map(rules.map(({ alert, expression }) => [alert, expression]));
  for (const [row, alert] of runbooks.matchAll(/^\| ([A-Z]\w+) \| .*$/gm))
    for (const [metric] of row.matchAll(/\brollcall_\w+/g))
      assert.match(expressions.get(alert), new RegExp(`\\b${metric}\\b`), alert);
});
