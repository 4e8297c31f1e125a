/** Reading stored messages: pages over WebSocket and REST in both directions, cursors and unread counts. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { AMPLE_RATES, BODY_BYTES_MAX, fillChat, history, newChat } from '../support/chats.mjs';
import { closeAll, connect, eventually, rest, sleep } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

/** The server's defaults. */
const PAGE_DEFAULT = 100;
const PAGE_MAX = 500;

let server;

before(async () => {
  server = await startServer({ settings: { ...AMPLE_RATES, 'gateway.workers': 2 } });
});
after(() => server.stop());
afterEach(closeAll);

test('sync is paged without gaps while new messages arrive', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const alice = await connect(server, 'alice');
  const bob = await connect(server, 'bob');
  await fillChat(alice, chatId, 250);
  const first = await bob.ask({ type: 'sync_request', chat_id: chatId, after_sequence: 0 });
  assert.equal(first.messages.length, PAGE_DEFAULT);
  assert.equal(first.has_more, true);
  assert.equal(first.latest_sequence, 250);

  const arriving = fillChat(alice, chatId, 300);
  const sequences = first.messages.map(({ sequence }) => sequence);
  for (let page = first; page.has_more; ) {
    page = await bob.ask({
      type: 'sync_request',
      chat_id: chatId,
      after_sequence: sequences[sequences.length - 1],
      limit: 37,
    });
    sequences.push(...page.messages.map(({ sequence }) => sequence));
  }
  await arriving;
  assert.ok(sequences.length >= 250);
  assert.deepEqual(
    sequences,
    Array.from({ length: sequences.length }, (_, i) => i + 1),
  );
  const beyond = await bob.ask({ type: 'sync_request', chat_id: chatId, after_sequence: 1e15 });
  assert.deepEqual([beyond.messages, beyond.has_more, beyond.latest_sequence], [[], false, 550]);
  const most = await bob.ask({
    type: 'sync_request',
    chat_id: chatId,
    after_sequence: 0,
    limit: 100000,
  });
  assert.equal(most.messages.length, PAGE_MAX);
});

test('pages are bounded in bytes, and the next page continues without a gap', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const alice = await connect(server, 'alice');
  await fillChat(alice, chatId, 100, () => 'b'.repeat(BODY_BYTES_MAX));
  let after = 0;
  let pages = 0;
  for (let page = { has_more: true }; page.has_more; pages += 1) {
    page = await alice.ask({ type: 'sync_request', chat_id: chatId, after_sequence: after });
    assert.equal(page.messages[0].sequence, after + 1);
    after += page.messages.length;
  }
  assert.equal(after, 100);
  assert.ok(pages > 1);
  const newest = (await history(server, 'alice', chatId, '?before_sequence=101&limit=100')).body;
  assert.equal(newest.messages.at(-1).sequence, 100);
  assert.equal(newest.has_more, true);
});

test('REST reads the history in both directions', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  await fillChat(await connect(server, 'alice'), chatId, 10);
  const sequences = async (query) => {
    const { body } = await history(server, 'bob', chatId, query);
    return [body.messages.map(({ sequence }) => sequence), body.has_more, body.latest_sequence];
  };
  assert.deepEqual(await sequences('?after_sequence=3&limit=3'), [[4, 5, 6], true, 10]);
  assert.deepEqual(await sequences('?after_sequence=8&limit=3'), [[9, 10], false, 10]);
  assert.deepEqual(await sequences('?after_sequence=99'), [[], false, 10]);
  assert.deepEqual(await sequences('?before_sequence=4&limit=2'), [[2, 3], true, 10]);
  assert.deepEqual(await sequences('?before_sequence=3'), [[1, 2], false, 10]);
  assert.deepEqual(await sequences('?before_sequence=1'), [[], false, 10]);
  assert.deepEqual((await sequences('?limit=4'))[0], [1, 2, 3, 4]);
});

test('one\'s own messages are not unread, for the sender or after a reply', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const unread = async (user) => (await rest(server, 'GET', `/v1/chats/${chatId}`, { user })).body.unread;
  const bob = await connect(server, 'bob');
  await fillChat(await connect(server, 'alice'), chatId, 3);
  assert.equal(await unread('alice'), 0);
  await fillChat(bob, chatId, 2);
  assert.equal(await unread('alice'), 2);
  assert.equal(await unread('bob'), 3, 'a reply acknowledges nothing');
  bob.send({ type: 'ack', chat_id: chatId, sequence: 3 });
  await eventually(async () => (await unread('bob')) === 0, 'only own messages follow');
});

test('an ack moves the cursor forward only, at most to the end, and changes the unread count', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  await fillChat(await connect(server, 'alice'), chatId, 10);
  const unread = async () => {
    const { body } = await rest(server, 'GET', `/v1/chats/${chatId}`, { user: 'bob' });
    return body.unread;
  };
  const phone = await connect(server, 'bob', { device: 'phone' });
  const tablet = await connect(server, 'bob', { device: 'tablet' });
  assert.equal(await unread(), 10);
  for (let n = 1; n <= 6; n += 1) phone.send({ type: 'ack', chat_id: chatId, sequence: n });
  await eventually(async () => (await unread()) === 4, '4 unread messages');
  tablet.send({ type: 'ack', chat_id: chatId, sequence: 2 });
  await tablet.settle();
  await sleep(100);
  assert.equal(await unread(), 4, 'the device that has read furthest counts');
  tablet.send({ type: 'ack', chat_id: chatId, sequence: 1000 });
  await eventually(async () => (await unread()) === 0, 'no unread messages');
  await fillChat(await connect(server, 'alice'), chatId, 1);
  assert.equal(await unread(), 1, 'a message after an ack past the end is unread');
  assert.deepEqual(
    (await phone.settle()).filter(({ type }) => type === 'error'),
    [],
    'an ack is not answered',
  );
});

test('a user who was offline receives all messages by syncing', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const before = await connect(server, 'bob');
  await before.close();
  await fillChat(await connect(server, 'alice'), chatId, 30);
  const bob = await connect(server, 'bob');
  const page = await bob.ask({ type: 'sync_request', chat_id: chatId, after_sequence: 0 });
  assert.equal(page.messages.length, 30);
});
