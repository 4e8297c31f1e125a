/** What a message costs in write units, measured, is what docs/AWS.md computes prices from. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, test } from 'node:test';
import { makeChat, sendMessage } from '../e2e/support/chats.mjs';
import { connect, eventually, metric } from '../e2e/support/client.mjs';
import { createTables, operate, startDynamodbWithProxy, startOnDynamodb } from './support/dynamodb_gateway.mjs';
import { countUnits, itemBytes } from './support/dynamodb_units.mjs';

const PREFIX = 'costs-';
const BODY = 'x'.repeat(200);
/** As many as a connection may have open. */
const AT_ONCE = 100;
/** By how much a measurement may differ: how many messages are gathered depends on the machine. */
const TOLERANCE = 0.25;

let dynamodb;
let proxy;
let server;
before(async () => {
  ({ dynamodb, proxy } = await startDynamodbWithProxy());
  await createTables(proxy, PREFIX);
  server = await startOnDynamodb(proxy, { prefix: PREFIX });
});

const find = async (TableName, Key) => (await operate(dynamodb, 'GetItem', { TableName, Key })).Item;

/** What stays: messages and the records of their ids; DynamoDB adds 100 bytes to each item. */
const storedBytes = (requests) =>
  requests.flatMap(({ body }) => body.TransactItems ?? [])
    .filter(({ Put }) => /-(messages|sends)$/.test(Put?.TableName))
    .reduce((sum, { Put }) => sum + itemBytes(Put.Item) + 100, 0);

/** Units of a message while `send` sends `count` of them; the first ones, which also read, do not count. */
async function measure(t, name, members, count, send, body = BODY) {
  await makeChat(server, name, ...members);
  const alice = await connect(server, members[0]);
  for (let n = 0; n < 3; n += 1) assert.equal((await sendMessage(alice, name, body)).type, 'message_ack');
  const isSettled = () => metric(server, 'fanout_kafka_consumer_lag').then((lag) => lag === 0);
  await eventually(isSettled, 'all is fanned out');
  proxy.forget();
  await send(alice, name, count, body);
  await eventually(isSettled, 'all is fanned out');
  await eventually(() => proxy.requests.at(-1).atMs < performance.now() - 1000, 'DynamoDB is left alone');
  const seen = proxy.requests.filter(({ target, body }) => target !== 'Query' || JSON.stringify(body).includes(name));
  const total = await countUnits(seen, find);
  const each = {
    writeUnits: total.writeUnits / count, readUnits: total.readUnits / count, storedBytes: storedBytes(seen) / count,
  };
  const parts = Object.entries(total.writes).map(([table, units]) => `${table} ${(units / count).toFixed(2)}`);
  t.diagnostic(`${name}: ${each.writeUnits.toFixed(2)} write units a message (${parts.join(', ')}), ${each.readUnits.toFixed(2)} read units, `
    + `${each.storedBytes.toFixed(0)} bytes kept`);
  return each;
}

async function oneByOne(client, chat, count, body) {
  for (let n = 0; n < count; n += 1) assert.equal((await sendMessage(client, chat, body)).type, 'message_ack');
}

async function together(client, chat, count, body) {
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => sendMessage(client, chat, body)));
    for (const { type, code } of answers) assert.equal(type, 'message_ack', code);
  }
}

async function documented(row) {
  const page = await readFile(new URL('../../docs/AWS.md', import.meta.url), 'utf8');
  const match = new RegExp(`^\\| ${row} \\| (\\d+(?:\\.\\d+)?) \\|`, 'm').exec(page);
  assert.ok(match, `docs/AWS.md has no row "${row}"`);
  return Number(match[1]);
}

const expectDocumented = async (row, { writeUnits }) => {
  const expected = await documented(row);
  assert.ok(Math.abs(writeUnits - expected) <= TOLERANCE * expected, `${row}: ${writeUnits} measured, ${expected} documented`);
};

test('a message in a chat of two, one at a time', async (t) => {
  await expectDocumented('chat of two, one message at a time', await measure(t, 'two', ['alice', 'bob'], 20, oneByOne));
});

test('a message of 2,000 bytes in a chat of two', async (t) => {
  const measured = await measure(t, 'large', ['alice', 'bob'], 20, oneByOne, 'x'.repeat(2000));
  await expectDocumented('chat of two, bodies of 2,000 bytes', measured);
});

test('a message in a group, one at a time', async (t) => {
  const members = ['alice', ...Array.from({ length: 9 }, (_, n) => `member-${n}`)];
  await expectDocumented('group, one message at a time', await measure(t, 'ten', members, 20, oneByOne));
});

test('messages of a busy group, gathered', async (t) => {
  const members = ['alice', ...Array.from({ length: 9 }, (_, n) => `member-${n}`)];
  await expectDocumented('busy group, gathered', await measure(t, 'busy', members, 200, together));
});
