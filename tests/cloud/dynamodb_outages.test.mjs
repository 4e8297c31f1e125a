/** DynamoDB fails for a while: errors are fast, presence and connections go on, and afterwards everything is as before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { history, makeChat, sendMessage } from '../e2e/support/chats.mjs';
import { connect, eventually, metric, sleep } from '../e2e/support/client.mjs';
import { befriend } from '../e2e/support/contacts.mjs';
import { createTables, isAppend, startDynamodbWithProxy, startOnDynamodb } from './support/dynamodb_gateway.mjs';
import { faults } from './support/dynamodb_proxy.mjs';

const FAILURES = 5;
const LIMIT_MS = 5000;
/** Delay that a busy machine may add to any time. */
const SLACK_MS = 3000;
const RECOVERY_MS = 60000;
/** DynamoDB Local, unlike DynamoDB, answers a moment before a kill can no longer undo a write. */
const LOCAL_COMMIT_MS = 2000;

/** Sends a message whose body is its id, since stored messages do not show the id. */
const send = (client, id) => sendMessage(client, 'c', id, id);

async function expectDense(server, chat, acknowledged) {
  const { body } = await history(server, 'alice', chat, '?limit=500');
  const stored = body.messages.map(({ body: id }) => id);
  assert.deepEqual(body.messages.map(({ sequence }) => sequence), stored.map((_, index) => index + 1));
  assert.equal(new Set(stored).size, stored.length);
  for (const id of acknowledged) assert.ok(stored.includes(id), `${id} was acknowledged and is not stored`);
}

test('five failures open the breaker; then errors are immediate and DynamoDB is left alone', async () => {
  const { proxy } = await startDynamodbWithProxy();
  await createTables(proxy, 'breaker-');
  const server = await startOnDynamodb(proxy, {
    prefix: 'breaker-', settings: { 'gateway.circuit_breaker.open_duration_seconds': 3 },
  });
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  assert.equal((await send(alice, 'm-0')).type, 'message_ack');

  proxy.inject(isAppend, faults.unavailable);
  for (let n = 1; n <= FAILURES; n += 1) {
    assert.equal((await send(alice, `m-${n}`)).code, 'SERVICE_UNAVAILABLE');
  }
  assert.ok((await metric(server, 'gateway_circuit_breaker_open')) > 0);
  proxy.forget();
  const startedMs = performance.now();
  const refused = await send(alice, 'm-refused');
  assert.equal(refused.code, 'SERVICE_UNAVAILABLE');
  assert.ok(refused.retry_after_seconds >= 1 && refused.retry_after_seconds <= 3);
  assert.ok(performance.now() - startedMs < 1000);
  assert.equal(proxy.requests.filter(isAppend).length, 0);

  proxy.restore();
  await eventually(
    async () => (await send(alice, 'm-after')).type === 'message_ack', 'the breaker closes', RECOVERY_MS);
  await eventually(async () => (await metric(server, 'gateway_circuit_breaker_open')) === 0, 'the metric says so');
  await expectDense(server, 'c', ['m-0', 'm-after']);
});

test('DynamoDB is killed: errors are fast, presence and connections go on; started again, nothing is lost', async () => {
  const { dynamodb, proxy } = await startDynamodbWithProxy({ durable: true });
  await createTables(proxy, 'killed-');
  const server = await startOnDynamodb(proxy, {
    prefix: 'killed-', settings: { 'gateway.circuit_breaker.open_duration_seconds': 2 },
  });
  await befriend(server, 'alice', 'bob');
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  const bob = await connect(server, 'bob');
  await alice.subscribe('bob');
  const acknowledged = [];
  for (let n = 0; n < 5; n += 1) {
    const ack = await send(alice, `before-${n}`);
    assert.equal(ack.type, 'message_ack');
    acknowledged.push(`before-${n}`);
  }
  await eventually(async () => (await metric(server, 'durability_dynamodb_available')) === 1, 'the metric says so');

  await sleep(LOCAL_COMMIT_MS);
  await dynamodb.kill();
  for (let n = 0; n < 2 * FAILURES; n += 1) {
    const startedMs = performance.now();
    const answer = await send(alice, `during-${n}`);
    assert.equal(answer.code, 'SERVICE_UNAVAILABLE', JSON.stringify(answer));
    assert.ok(performance.now() - startedMs < LIMIT_MS + SLACK_MS);
  }
  await eventually(async () => (await metric(server, 'durability_dynamodb_available')) === 0, 'the metric says so');
  assert.equal((await alice.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await bob.close();
  await alice.nextChange('bob', 'offline');
  const bobAgain = await connect(server, 'bob');
  await alice.nextChange('bob', 'online');
  assert.equal((await bobAgain.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');

  await dynamodb.start();
  await eventually(
    async () => (await send(alice, 'after')).type === 'message_ack', 'messages are stored again', RECOVERY_MS);
  await bobAgain.next(({ type, body }) => type === 'message' && body === 'after', RECOVERY_MS);
  await eventually(async () => (await metric(server, 'durability_dynamodb_available')) === 1, 'the metric says so');
  await expectDense(server, 'c', [...acknowledged, 'after']);
});

test('DynamoDB hangs: each request ends within its limit, then errors are immediate; it goes on, and nothing is stored twice', async () => {
  const { dynamodb, proxy } = await startDynamodbWithProxy();
  await createTables(proxy, 'paused-');
  const server = await startOnDynamodb(proxy, {
    prefix: 'paused-', settings: { 'gateway.circuit_breaker.open_duration_seconds': 2 },
  });
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  assert.equal((await send(alice, 'before')).type, 'message_ack');

  dynamodb.pause();
  const startedMs = performance.now();
  const answers = await Promise.all(Array.from({ length: FAILURES }, (_, n) => send(alice, `hanging-${n}`)));
  const tookMs = performance.now() - startedMs;
  for (const { code } of answers) assert.equal(code, 'SERVICE_UNAVAILABLE');
  assert.ok(tookMs < LIMIT_MS + SLACK_MS, `${tookMs} ms`);
  const refusedMs = performance.now();
  assert.ok((await send(alice, 'refused')).retry_after_seconds >= 1);
  assert.ok(performance.now() - refusedMs < 1000);
  assert.equal((await alice.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');

  dynamodb.resume();
  const again = [...answers.keys()].map((n) => `hanging-${n}`);
  for (const id of again)
    await eventually(async () => (await send(alice, id)).type === 'message_ack', `${id} is stored`, RECOVERY_MS);
  await expectDense(server, 'c', ['before', ...again]);
});
