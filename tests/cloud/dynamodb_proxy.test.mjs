/** The proxy of the other tests: it knows a right signature from a wrong one, and injects what it is told to. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { computeSignature, parseAuthorization } from './support/aws_signature.mjs';
import { startDynamodb } from './support/cloud_servers.mjs';
import { callDynamodb } from './support/dynamodb_call.mjs';
import { faults, KEYS, startDynamodbProxy } from './support/dynamodb_proxy.mjs';

let dynamodb;
let proxy;
before(async () => {
  dynamodb = await startDynamodb();
  proxy = await startDynamodbProxy(dynamodb.endpoint);
});
after(async () => {
  await proxy?.close();
  await dynamodb?.stop();
});
beforeEach(() => {
  proxy.restore();
  proxy.forget();
});

const call = (target, body = {}, options = {}) =>
  callDynamodb(proxy.endpoint, target, body, { keys: KEYS, ...options });

test('the verifier computes the signatures of the published examples', () => {
  const secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
  const authorization = parseAuthorization('AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, '
    + `SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`);
  const headers = { host: 'example.amazonaws.com', 'x-amz-date': '20150830T123600Z' };
  assert.equal(computeSignature({ method: 'GET', path: '/', headers, body: '' }, authorization, secret),
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31');
  assert.equal(computeSignature({ method: 'POST', path: '/', headers, body: '' }, authorization, secret),
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b');
});

test('a rightly signed request is forwarded and counted', async () => {
  const { status, answer } = await call('ListTables');
  assert.equal(status, 200);
  assert.deepEqual(answer.TableNames, []);
  assert.equal(proxy.count('ListTables'), 1);
});

test('a wrong signature is refused as AWS refuses it', async () => {
  const stale = new Date(Date.now() - 6 * 60 * 1000);
  const cases = [
    ['InvalidSignatureException', { keys: { ...KEYS, secretAccessKey: 'other' } }],
    ['InvalidSignatureException', { region: 'us-east-1' }],
    ['InvalidSignatureException', { at: stale }],
    ['InvalidSignatureException', { change: (sent) => { sent.body = '{"Limit":1}'; } }],
    ['InvalidSignatureException', { change: ({ headers }) => { headers['x-amz-target'] = 'DynamoDB_20120810.DeleteTable'; } }],
    ['UnrecognizedClientException', { keys: { ...KEYS, accessKeyId: 'AKIDOTHER' } }],
    ['UnrecognizedClientException', { keys: { ...KEYS, sessionToken: 'unexpected' } }],
    ['MissingAuthenticationTokenException', { change: ({ headers }) => { delete headers.authorization; } }],
    ['IncompleteSignatureException', { change: ({ headers }) => { headers.authorization = 'Basic x'; } }],
  ];
  for (const [type, options] of cases) {
    const result = await call('ListTables', {}, options);
    assert.deepEqual([result.status, result.type], [400, type]);
  }
  assert.equal(proxy.requests.filter(({ refused }) => refused === undefined).length, 0);
});

test('keys are known with their session token until they end', async () => {
  const keys = { accessKeyId: 'ASIATEST', secretAccessKey: 's', sessionToken: 'a+b/c=' };
  proxy.addKey(keys);
  assert.equal((await call('ListTables', {}, { keys })).status, 200);
  assert.equal((await call('ListTables', {}, { keys: { ...keys, sessionToken: 'x' } })).type, 'UnrecognizedClientException');
  proxy.addKey({ ...keys, endsAtMs: Date.now() - 1 });
  assert.equal((await call('ListTables', {}, { keys })).type, 'ExpiredTokenException');
});

test('faults are answered as often as they were asked for', async () => {
  proxy.inject('ListTables', faults.throttled, 2);
  const types = [];
  for (let i = 0; i < 3; i += 1) types.push((await call('ListTables')).type);
  assert.deepEqual(types, ['ProvisionedThroughputExceededException', 'ProvisionedThroughputExceededException', undefined]);
  proxy.inject('ListTables', faults.unavailable, 1);
  assert.equal((await call('ListTables')).status, 503);
});

test('a cancelled transaction has one reason for each of its items', async () => {
  proxy.inject('TransactWriteItems', faults.conflict, 1);
  const { type, answer } = await call('TransactWriteItems', { TransactItems: [{}, {}, {}] });
  assert.equal(type, 'TransactionCanceledException');
  assert.deepEqual(answer.CancellationReasons.map(({ Code }) => Code), ['TransactionConflict', 'None', 'None']);
});

const TABLE = {
  TableName: 'proxy',
  AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
  KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
  BillingMode: 'PAY_PER_REQUEST',
};
const put = (id) => call('PutItem', { TableName: 'proxy', Item: { id: { S: id } } });
const isStored = async (id) =>
  (await call('GetItem', { TableName: 'proxy', Key: { id: { S: id } } })).answer.Item !== undefined;

test('a lost answer means that the request was executed, a reset before it that it was not', async () => {
  assert.equal((await call('CreateTable', TABLE)).status, 200);
  for (const [name, isExecuted] of [['resetBefore', false], ['resetAfter', true], ['cutAnswer', true]]) {
    proxy.inject('PutItem', faults[name], 10); // fetch may try again
    await assert.rejects(put(name));
    proxy.restore();
    assert.equal(await isStored(name), isExecuted, name);
  }
  proxy.inject('PutItem', faults.internalAfter, 1);
  assert.equal((await put('internal')).status, 500);
  assert.equal(await isStored('internal'), true);
});

test('a slow answer comes late, and a proxy that is down answers nothing until it is restored', async () => {
  proxy.inject('ListTables', faults.slow(300), 1);
  const startedMs = performance.now();
  assert.equal((await call('ListTables')).status, 200);
  assert.ok(performance.now() - startedMs >= 290);
  proxy.down();
  await assert.rejects(call('ListTables'));
  proxy.restore();
  assert.equal((await call('ListTables')).status, 200);
});
