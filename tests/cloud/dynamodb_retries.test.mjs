/**
 * The failure table of the durability plane, on a real server with DynamoDB Local behind the fault proxy: what is tried
 * again, how often, after which wait; what is not; and that nothing is stored twice or acknowledged early.
 */
import assert from 'node:assert/strict';
import { before, beforeEach, test } from 'node:test';
import { history, makeChat, sendMessage } from '../e2e/support/chats.mjs';
import { connect, eventually, metric } from '../e2e/support/client.mjs';
import { createTables, growth, isAppend, NO_BREAKER, startDynamodbWithProxy, startOnDynamodb } from './support/dynamodb_gateway.mjs';
import { faults } from './support/dynamodb_proxy.mjs';

/** A try is never early; a busy machine may make it late. */
const EARLY_MS = 5;
const LATE_MS = 3000;
const THROTTLED_TRIES = 3;
const CONFLICT_TRIES = 5;
const LIMIT_MS = 5000;

let proxy;
let server;
let alice;
before(async () => {
  ({ proxy } = await startDynamodbWithProxy());
  await createTables(proxy, 'retries-');
  server = await startOnDynamodb(proxy, { prefix: 'retries-', settings: NO_BREAKER });
  alice = await connect(server, 'alice');
});

let chats = 0;
let chat;
beforeEach(async () => {
  proxy.restore();
  chats += 1;
  chat = `chat-${chats}`;
  await makeChat(server, chat, 'alice', 'bob');
  proxy.forget();
});

const appends = () => proxy.requests.filter((request) => request.refused === undefined && isAppend(request));
const waits = () => appends().slice(1).map(({ atMs }, index) => atMs - appends()[index].atMs);
/** Sends a message whose body is its id, since stored messages do not show the id. */
const send = (id) => sendMessage(alice, chat, id, id);

/** Exactly these messages are stored, in a dense order. */
async function expectStored(...ids) {
  const { body } = await history(server, 'alice', chat);
  assert.deepEqual(body.messages.map(({ body: text }) => text), ids);
  assert.deepEqual(body.messages.map(({ sequence }) => sequence), ids.map((_, index) => index + 1));
}

function expectWait(ms, leastMs, mostMs = leastMs) {
  assert.ok(ms >= leastMs - EARLY_MS && ms <= mostMs + LATE_MS, `waited ${ms} ms, expected ${leastMs} to ${mostMs}`);
}

/* ---- throttling ---- */

for (const name of ['throttled', 'throttling', 'requestLimit', 'throttledItem', 'throttledTransaction'])
  test(`${name}: tried three times, after 100 and 200 ms, and counted`, async () => {
    proxy.inject(isAppend, faults[name], THROTTLED_TRIES - 1);
    const { result: ack, grown } = await growth(server, ['durability_dynamodb_throttle_count'], () => send('m'));
    assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
    assert.equal(appends().length, THROTTLED_TRIES);
    expectWait(waits()[0], 100);
    expectWait(waits()[1], 200);
    assert.equal(grown.durability_dynamodb_throttle_count, THROTTLED_TRIES - 1);
    await expectStored('m');
  });

test('throttling that goes on is an error after the third try, and nothing is stored', async () => {
  proxy.inject(isAppend, faults.throttled);
  const answer = await send('m');
  assert.equal(answer.code, 'SERVICE_UNAVAILABLE');
  assert.equal(appends().length, THROTTLED_TRIES);
  await expectStored();
});

/* ---- conflicts ---- */

for (const name of ['conflict', 'inProgress'])
  test(`${name}: tried five times after jittered waits of 50 to 500 ms, and counted`, async () => {
    proxy.inject(isAppend, faults[name], CONFLICT_TRIES - 1);
    const { result: ack, grown } = await growth(server, ['durability_transaction_conflicts'], () => send('m'));
    assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
    assert.equal(appends().length, CONFLICT_TRIES);
    for (const ms of waits()) expectWait(ms, 50, 500);
    assert.equal(grown.durability_transaction_conflicts, CONFLICT_TRIES - 1);
    await eventually(async () => (await metric(server, 'durability_transaction_conflict_rate')) > 0, 'the rate shows it');
    await expectStored('m');
  });

test('conflicts that go on are an error after the fifth try, and nothing is stored', async () => {
  proxy.inject(isAppend, faults.conflict);
  assert.equal((await send('m')).code, 'SERVICE_UNAVAILABLE');
  assert.equal(appends().length, CONFLICT_TRIES);
  await expectStored();
});

/* ---- no second try ---- */

test('a message that is sent again is answered with the stored result', async () => {
  const first = await send('same');
  const { result: second, grown } = await growth(server, ['durability_idempotency_hits'], () => send('same'));
  assert.deepEqual([second.type, second.sequence, second.message_id], ['message_ack', first.sequence, first.message_id]);
  assert.equal(grown.durability_idempotency_hits, 1);
  await expectStored('same');
});

for (const name of ['unavailable', 'validation'])
  test(`${name}: an error at once, without a second try`, async () => {
    proxy.inject(isAppend, faults[name]);
    const startedMs = performance.now();
    const answer = await send('m');
    assert.equal(answer.code, 'SERVICE_UNAVAILABLE');
    assert.ok(performance.now() - startedMs < LATE_MS);
    assert.equal(appends().length, 1);
    proxy.restore();
    await expectStored();
    assert.equal((await send('m')).type, 'message_ack');
    await expectStored('m');
  });

/* ---- unknown outcomes ---- */

for (const name of ['resetAfter', 'cutAnswer', 'internalAfter', 'silence', 'resetBefore', 'internal'])
  test(`${name}: the same bytes are sent again with the same token, and nothing is stored twice`, async () => {
    assert.equal((await send('first')).type, 'message_ack');
    proxy.forget();
    proxy.inject(isAppend, faults[name], 1);
    const ack = await send('second');
    assert.deepEqual([ack.type, ack.sequence], ['message_ack', 2], JSON.stringify(ack));
    const tries = appends();
    assert.ok(tries.length >= 2, `${tries.length} tries`);
    assert.match(tries[0].body.ClientRequestToken, /^.{16,36}$/);
    for (const { body } of tries) assert.deepEqual(body, tries[0].body);
    assert.equal((await send('third')).sequence, 3);
    await expectStored('first', 'second', 'third');
  });

test('a request without an answer ends within five seconds; sent again it is stored once', async () => {
  proxy.inject(isAppend, faults.silence);
  const startedMs = performance.now();
  const answer = await alice.ask(
    { type: 'send_message', chat_id: chat, client_message_id: 'm', body: 'm' }, 4 * LIMIT_MS);
  expectWait(performance.now() - startedMs, 0, LIMIT_MS);
  assert.equal(answer.code, 'SERVICE_UNAVAILABLE');
  proxy.restore();
  assert.deepEqual((await send('m')).sequence, 1);
  await expectStored('m');
});

/* ---- acknowledgement ---- */

test('no message is acknowledged before DynamoDB has answered', async () => {
  proxy.inject(isAppend, faults.slow(1000), 1);
  const startedMs = performance.now();
  const ack = await send('m');
  assert.equal(ack.type, 'message_ack');
  assert.ok(performance.now() - startedMs >= 1000 - EARLY_MS);
  assert.deepEqual(appends().map(({ status }) => status), [200]);
});

test('every request had a right signature', () => {
  assert.deepEqual(proxy.refusals, []);
});
