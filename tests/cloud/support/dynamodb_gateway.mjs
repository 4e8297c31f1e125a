/** A real server whose ledger is DynamoDB Local behind the fault proxy. Everything ends after the test file. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { AMPLE_RATES } from '../../e2e/support/chats.mjs';
import { closeAll, metric } from '../../e2e/support/client.mjs';
import { rollcallWith, startServer } from '../../e2e/support/server.mjs';
import { startDynamodb } from './cloud_servers.mjs';
import { callDynamodb } from './dynamodb_call.mjs';
import { KEYS, keyEnvironment, startDynamodbProxy } from './dynamodb_proxy.mjs';

/** A breaker that stays closed, for tests of what happens behind it. */
export const NO_BREAKER = { 'gateway.circuit_breaker.failure_threshold': 10000 };

/** No other keys and certificates than those that a test gives, whatever the tests' own environment has. */
const INHERITED = Object.keys(process.env).filter((name) => /^AWS_|^SSL_CERT_FILE$/.test(name));
const NO_CREDENTIALS = {
  ...Object.fromEntries(INHERITED.map((name) => [name, ''])),
  AWS_EC2_METADATA_DISABLED: 'true',
  HOME: '/nonexistent',
};

/** The transaction that stores a message, or several. */
export const isAppend = ({ target, body }) =>
  target === 'TransactWriteItems' && body.TransactItems.some(({ Put }) => /-messages$/.test(Put?.TableName));

/** How many messages that transaction stores. */
export const appendedCount = ({ body }) =>
  body.TransactItems.filter(({ Put }) => /-messages$/.test(Put?.TableName)).length;

const endings = [];
after(async () => {
  closeAll();
  for (const end of endings.splice(0).reverse()) await end();
});

/** Ends something after the test file, before what was started earlier. */
export const endLater = (end) => endings.push(end);

/** Starts DynamoDB Local and a proxy before it. */
export async function startDynamodbWithProxy({ durable = false, ...options } = {}) {
  const dynamodb = await startDynamodb({ durable });
  endLater(() => dynamodb.stop());
  const proxy = await startDynamodbProxy(dynamodb.endpoint, options);
  endLater(() => proxy.close());
  return { dynamodb, proxy };
}

/** Runs a command of the program on a ledger. */
export const rollcallOn = (proxy, prefix, ...args) =>
  rollcallWith({ ...NO_CREDENTIALS, ...keyEnvironment() }, ...args.map((arg) => (arg === 'URL' ? proxy.ledgerUrl(prefix) : arg)));

export async function createTables(proxy, prefix) {
  const { code, stderr } = await rollcallOn(proxy, prefix, 'tables', 'create', '--ledger', 'URL');
  assert.equal(code, 0, stderr);
}

/** Starts a server on tables of this prefix. */
export async function startOnDynamodb(proxy, { prefix, env = keyEnvironment(), settings = {}, url, args = [] }) {
  const server = await startServer({
    args: ['--ledger', url ?? proxy.ledgerUrl(prefix), ...args],
    env: { ...NO_CREDENTIALS, ...env },
    settings: { ...AMPLE_RATES, ...settings },
  });
  endLater(() => server.stop('SIGKILL'));
  return server;
}

/** An operator's call, past the proxy's faults. */
export async function operate(dynamodb, target, body) {
  const result = await callDynamodb(dynamodb.endpoint, target, body, { keys: KEYS });
  assert.equal(result.status, 200, JSON.stringify(result.answer));
  return result.answer;
}

/** Runs `work`; returns its result and by how much each of the metrics grew. */
export async function growth(server, names, work) {
  const read = () => Promise.all(names.map((name) => metric(server, name)));
  const before = await read();
  const result = await work();
  const grown = (await read()).map((value, index) => value - before[index]);
  return { result, grown: Object.fromEntries(names.map((name, index) => [name, grown[index]])) };
}
