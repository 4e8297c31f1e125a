/**
 * Messages of a chat share transactions. A batch whose answer is lost is sent again as a whole: each of its messages is stored
 * once, and the sequences of a chat have no gaps.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeChat } from '../e2e/support/chats.mjs';
import { connect, eventually } from '../e2e/support/client.mjs';
import {
  appendedCount, createTables, isAppend, NO_BREAKER, operate, startDynamodbWithProxy, startOnDynamodb,
} from './support/dynamodb_gateway.mjs';
import { faults } from './support/dynamodb_proxy.mjs';

const TEST_MS = 300000;
const SENDERS = 4;
const IN_FLIGHT = 20;
const CHATS = ['x', 'y'];

/** What the storm has sent: acknowledgements by client_message_id, the ids without an answer, and the errors. */
class Record {
  acked = new Map();
  pending = new Set();
  errors = [];
}

/** Keeps messages in flight until the connection ends or `record.isOver`. */
function startStorm(client, name, record) {
  let sent = 0;
  const sendOne = () => {
    if (record.isOver) return;
    const id = `${name}-${(sent += 1)}`;
    const chatId = CHATS[sent % CHATS.length];
    record.pending.add(id);
    client.send({ id, type: 'send_message', chat_id: chatId, client_message_id: id, body: id });
  };
  client.socket.on('message', (data) => {
    const message = JSON.parse(data);
    if (message.type === 'message_ack') record.acked.set(message.client_message_id, message);
    else if (message.type === 'error') record.errors.push(message.code);
    else return;
    record.pending.delete(message.id);
    sendOne();
  });
  for (let i = 0; i < IN_FLIGHT; i += 1) sendOne();
}

async function startStorms(server, name, record) {
  for (let i = 0; i < SENDERS; i += 1)
    startStorm(await connect(server, 'alice', { device: `${name}-${i}` }), `${name}-s${i}`, record);
}

async function readMessages(dynamodb, prefix, chatId) {
  const stored = [];
  for (let start; ;) {
    const { Items: items, LastEvaluatedKey: last } = await operate(dynamodb, 'Query', {
      TableName: `${prefix}messages`,
      KeyConditionExpression: 'chat_id = :c',
      ExpressionAttributeValues: { ':c': { S: chatId } },
      ConsistentRead: true,
      ...(start === undefined ? {} : { ExclusiveStartKey: start }),
    });
    stored.push(...items);
    if (last === undefined) return stored;
    start = last;
  }
}

/** Compares what is stored with what was acknowledged; returns how many messages of the chat were. */
async function checkStored(dynamodb, prefix, chatId, { acked }) {
  const stored = await readMessages(dynamodb, prefix, chatId);
  stored.forEach(({ sequence }, i) => assert.equal(Number(sequence.N), i + 1, 'sequences are dense from 1'));
  const byId = new Map(stored.map((item) => [item.client_message_id.S, [Number(item.sequence.N), item.message_id.S]]));
  assert.equal(byId.size, stored.length, 'each client_message_id is stored once');
  const acks = [...acked.values()].filter(({ chat_id: id }) => id === chatId);
  for (const ack of acks) assert.deepEqual(byId.get(ack.client_message_id), [ack.sequence, ack.message_id]);
  const { Item: counter } = await operate(dynamodb, 'GetItem', {
    TableName: `${prefix}chat_counters`, Key: { chat_id: { S: chatId } }, ConsistentRead: true,
  });
  assert.equal(Number(counter.sequence_counter.N), stored.length, 'the counter is the sequence of the last message');
  return acks.length;
}

async function checkAll(dynamodb, prefix, record) {
  let checked = 0;
  for (const chatId of CHATS) checked += await checkStored(dynamodb, prefix, chatId, record);
  assert.equal(checked, record.acked.size);
}

async function prepare(prefix) {
  const servers = await startDynamodbWithProxy();
  await createTables(servers.proxy, prefix);
  const gateway = await startOnDynamodb(servers.proxy, { prefix, settings: NO_BREAKER });
  for (const chatId of CHATS) await makeChat(gateway, chatId, 'alice', 'bob');
  return { ...servers, gateway };
}

test('a batch whose answer is lost is sent again and stores nothing twice', { timeout: TEST_MS }, async () => {
  const record = new Record();
  const { dynamodb, proxy, gateway } = await prepare('lost-');
  const appends = () => proxy.requests.filter(isAppend);
  await startStorms(gateway, 'storm', record);
  await eventually(() => record.acked.size > 50, 'messages are acknowledged');
  for (const fault of ['resetAfter', 'cutAnswer', 'internalAfter', 'resetBefore']) {
    const before = record.acked.size;
    proxy.inject('TransactWriteItems', faults[fault], 1);
    /* More than all that are in flight, so that the chat whose answer was lost has gone on. */
    await eventually(() => record.acked.size > before + 2 * SENDERS * IN_FLIGHT, `messages are acknowledged after ${fault}`);
  }
  record.isOver = true;
  await eventually(() => record.pending.size === 0, 'every message is answered');
  assert.deepEqual(record.errors, []);
  await checkAll(dynamodb, 'lost-', record);
  const tokens = appends().map(({ body }) => body.ClientRequestToken);
  assert.ok(new Set(tokens).size < tokens.length, 'the same transaction is sent again');
});

test('messages of a chat share transactions, and a steady stream needs no reads', { timeout: TEST_MS }, async () => {
  const record = new Record();
  const { proxy, gateway } = await prepare('gather-');
  const alice = await connect(gateway, 'alice');
  const send = (id) => alice.ask({ type: 'send_message', chat_id: 'x', client_message_id: id, body: id });
  assert.equal((await send('first')).type, 'message_ack');
  proxy.forget();
  for (let i = 0; i < 5; i += 1) assert.equal((await send(`s${i}`)).type, 'message_ack');
  const appends = proxy.requests.filter(isAppend);
  assert.deepEqual(appends.map(appendedCount), [1, 1, 1, 1, 1]);
  /* Fan-out reads the chat; only an append reads whether somebody is a member, and earlier sends. */
  const isReadOfAppend = ({ target, body }) => /GetItem/.test(target) && /"member#|-sends"/.test(JSON.stringify(body));
  assert.deepEqual(proxy.requests.filter(isReadOfAppend), []);
  await startStorms(gateway, 'storm', record);
  await eventually(() => record.acked.size > 300, 'messages are acknowledged');
  record.isOver = true;
  const gathered = proxy.requests.filter(isAppend).slice(5).map(appendedCount);
  assert.ok(Math.max(...gathered) >= 10, `at most ${Math.max(...gathered)} messages in one transaction`);
});
