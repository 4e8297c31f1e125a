/** `rollcall tables`: makes the tables, and says in which way existing ones differ from what the server needs. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { createTables, operate, rollcallOn, startDynamodbWithProxy } from './support/dynamodb_gateway.mjs';
import { faults } from './support/dynamodb_proxy.mjs';

let dynamodb;
let proxy;
before(async () => {
  ({ dynamodb, proxy } = await startDynamodbWithProxy());
});

const check = (prefix) => rollcallOn(proxy, prefix, 'tables', 'check', '--ledger', 'URL');
const create = (prefix) => rollcallOn(proxy, prefix, 'tables', 'create', '--ledger', 'URL');

async function dropTable(name) {
  await operate(dynamodb, 'UpdateTable', { TableName: name, DeletionProtectionEnabled: false });
  await operate(dynamodb, 'DeleteTable', { TableName: name });
}

const table = (name, ...keys) => ({
  TableName: name,
  AttributeDefinitions: keys.map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
  KeySchema: keys.map(([AttributeName], index) => ({ AttributeName, KeyType: index === 0 ? 'HASH' : 'RANGE' })),
});

test('tables are made as described; a second time nothing is left to do', async () => {
  await createTables(proxy, 'new-');
  const { Table: messages } = await operate(dynamodb, 'DescribeTable', { TableName: 'new-messages' });
  assert.equal(messages.BillingModeSummary.BillingMode, 'PAY_PER_REQUEST');
  assert.equal(messages.DeletionProtectionEnabled, true);
  const expiry = await operate(dynamodb, 'DescribeTimeToLive', { TableName: 'new-users' });
  assert.equal(expiry.TimeToLiveDescription.TimeToLiveStatus, 'ENABLED');
  proxy.forget();
  const again = await create('new-');
  assert.deepEqual([again.code, again.stdout], [0, 'all tables are as they must be\n']);
  assert.deepEqual(proxy.requests.filter(({ target }) => !target.startsWith('Describe')), []);
  const { code, stdout } = await check('new-');
  assert.deepEqual([code, stdout], [0, 'all tables are as they must be\n']);
});

test('check names each difference and has exit status 1', async () => {
  assert.match((await check('none-')).stdout, /^none-messages: it does not exist$/m);
  await createTables(proxy, 'other-');
  await dropTable('other-chat_counters');
  await dropTable('other-messages');
  await operate(dynamodb, 'CreateTable', {
    ...table('other-messages', ['chat_id', 'S'], ['sequence', 'S']),
    BillingMode: 'PROVISIONED',
    ProvisionedThroughput: { ReadCapacityUnits: 5, WriteCapacityUnits: 5 },
  });
  const { code, stdout } = await check('other-');
  assert.equal(code, 1);
  assert.deepEqual(stdout.trim().split('\n'), [
    'other-messages: the key is (chat_id S, sequence S), expected (chat_id S, sequence N)',
    'other-messages: its capacity is provisioned, expected on demand',
    'other-messages: it is not protected from deletion',
    'other-chat_counters: it does not exist',
  ]);
});

test('create adds what an existing table lacks', async () => {
  await operate(dynamodb, 'CreateTable', {
    ...table('half-users', ['user_id', 'S'], ['part_key', 'S']), BillingMode: 'PAY_PER_REQUEST',
  });
  const { code, stdout } = await create('half-');
  assert.deepEqual([code, stdout], [0, 'all tables are as they must be\n']);
});

test('recovery is turned on where the endpoint has it, as soon as it may be', async () => {
  const answer = (body) => ({ kind: 'answer', status: 200, body: () => JSON.stringify(body) });
  const described = (PointInTimeRecoveryStatus) => answer({
    ContinuousBackupsDescription: { PointInTimeRecoveryDescription: { PointInTimeRecoveryStatus } },
  });
  const notYet = {
    kind: 'answer', status: 400, body: () => JSON.stringify({ __type: 'x#ContinuousBackupsUnavailableException', message: 'later' }),
  };
  proxy.inject('DescribeContinuousBackups', described('DISABLED'), 6);
  proxy.inject('DescribeContinuousBackups', described('ENABLED'));
  proxy.inject('UpdateContinuousBackups', notYet, 1);
  proxy.inject('UpdateContinuousBackups', answer({}));
  proxy.forget();
  const { code, stdout } = await create('recovery-');
  assert.equal(code, 0, stdout);
  assert.equal(proxy.count('UpdateContinuousBackups'), 7);
  proxy.restore();
  proxy.inject('DescribeContinuousBackups', described('DISABLED'));
  assert.match((await check('recovery-')).stdout, /^recovery-messages: point-in-time recovery is off$/m);
  proxy.restore();
});

test('a refusal is explained: wrong rights, and a server that does not answer', async () => {
  proxy.inject('DescribeTable', {
    kind: 'answer', status: 400, body: () => JSON.stringify({ __type: 'x#AccessDeniedException', Message: 'no right' }),
  });
  const denied = await create('denied-');
  assert.equal(denied.code, 1);
  assert.match(denied.stderr, /denied-messages: DescribeTable failed: status 400 .*AccessDeniedException/);
  proxy.restore();
  proxy.inject('DescribeTable', faults.unavailable);
  const unavailable = await check('denied-');
  assert.equal(unavailable.code, 1);
  assert.match(unavailable.stderr, /status 503/);
  proxy.restore();
});
