/** A chat on DynamoDB whose counter is wrong is halted but readable; `rollcall repair` restores it while servers run. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { makeChat } from '../e2e/support/chats.mjs';
import { connect } from '../e2e/support/client.mjs';
import { createTables, growth, operate, rollcallOn, startDynamodbWithProxy, startOnDynamodb } from './support/dynamodb_gateway.mjs';

const PREFIX = 'repair-';
const HALTED = 'durability_counter_corruption';

let dynamodb;
let proxy;
let server;
let alice;
before(async () => {
  ({ dynamodb, proxy } = await startDynamodbWithProxy());
  await createTables(proxy, PREFIX);
  server = await startOnDynamodb(proxy, { prefix: PREFIX });
  alice = await connect(server, 'alice');
});

const send = (chatId, id) => alice.ask({ type: 'send_message', chat_id: chatId, client_message_id: id, body: id });
const repair = (...args) => rollcallOn(proxy, PREFIX, 'repair', '--ledger', 'URL', ...args);
const counterOf = (chatId) => ({ TableName: `${PREFIX}chat_counters`, Key: { chat_id: { S: chatId } } });
const setCounter = (chatId, value) => operate(dynamodb, 'UpdateItem', {
  ...counterOf(chatId),
  UpdateExpression: 'SET sequence_counter = :v',
  ExpressionAttributeValues: { ':v': { N: String(value) } },
});

const CASES = [
  ['missing', (chatId) => operate(dynamodb, 'DeleteItem', counterOf(chatId)), /the counter is missing, the highest message 3: halted/],
  ['behind', (chatId) => setCounter(chatId, 1), /the counter is 1, the highest message 3: halted/],
  ['ahead', (chatId) => setCounter(chatId, 9), /the counter is 9, the highest message 3: halted/],
];

for (const [name, spoil, finding] of CASES) {
  test(`a counter that is ${name} halts the chat until it is repaired`, async () => {
    await makeChat(server, name, 'alice', 'bob');
    for (const id of ['1', '2', '3']) assert.equal((await send(name, id)).sequence, Number(id));
    await spoil(name);
    const { result, grown } = await growth(server, [HALTED], () => send(name, '4'));
    assert.deepEqual([result.type, result.code, grown[HALTED]], ['error', 'CHAT_HALTED', 1]);
    assert.equal((await send(name, '2')).sequence, 2, 'what was stored is known');
    const dry = await repair('--dry-run', name);
    assert.match(dry.stdout, finding);
    assert.match(dry.stdout, /would set the counter to 3/);
    assert.equal((await send(name, '4')).code, 'CHAT_HALTED');
    const done = await repair(name);
    assert.deepEqual([done.code, done.stdout.split('\n')[1]], [0, 'the counter is set to 3; the next message gets 4']);
    assert.equal((await send(name, '4')).sequence, 4);
    assert.match((await repair(name)).stdout, /nothing to do/);
  });
}

test('a chat that does not exist is not repaired', async () => {
  const { code, stderr } = await repair('nowhere');
  assert.equal(code, 1);
  assert.match(stderr, /^rollcall repair: nowhere: there is no such chat$/m);
});
