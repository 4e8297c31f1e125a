/** Read marks and receipts: over WebSocket, Socket.IO and REST, as the reader wants, and never across a block. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, rest } from '../support/client.mjs';
import { fillChat } from '../support/chats.mjs';
import { block, expectRest, uniqueUsers } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo } from '../support/socketio.mjs';

let server;
before(async () => {
  server = await startServer({ args: ['--workers', '2'] });
});
after(() => server.stop());
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

const readTo = (user, chat, sequence) =>
  rest(server, 'POST', `/v1/chats/${chat}/read`, { user, body: { sequence } });
const chatOf = (user, chat) => expectRest(server, 200, 'GET', `/v1/chats/${chat}`, user);

/** A group with five messages of the first user, who has it open; returns its id and that user's client. */
async function filledChat(...members) {
  const { chat_id: chat } = await expectRest(server, 201, 'POST', '/v1/chats', members[0], { members });
  const client = await connect(server, members[0]);
  await fillChat(client, chat, 5);
  await client.ask({ type: 'open_chat', chat_id: chat });
  return { chat, client };
}

test('an ack and a REST request move the mark, and others with the chat open get a receipt', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const { chat, client } = await filledChat(alice, bob);
  const sio = await connectSocketIo(server, alice);
  await sio.ask('open_chat', { chat_id: chat });
  const phone = await connect(server, bob, { device: 'phone' });
  await phone.ask({ type: 'open_chat', chat_id: chat });
  phone.send({ type: 'ack', chat_id: chat, sequence: 2 });
  const receipt = { chat_id: chat, user_id: bob, sequence: 2 };
  assert.deepEqual(await client.next('receipt'), { type: 'receipt', ...receipt });
  assert.deepEqual(await sio.next('receipt'), receipt);
  assert.deepEqual((await readTo(bob, chat, 4)).body, { chat_id: chat, sequence: 4 });
  assert.equal((await client.next('receipt')).sequence, 4);
  assert.equal((await sio.next('receipt')).sequence, 4);
  assert.deepEqual((await readTo(bob, chat, 3)).body, { chat_id: chat, sequence: 4 }, 'never back');
  assert.deepEqual((await readTo(bob, chat, 99)).body, { chat_id: chat, sequence: 5 }, 'clamped');
  assert.equal((await client.next('receipt')).sequence, 5, 'the read below the mark sent nothing');
  assert.deepEqual(await phone.settle(), [], 'the reader gets none');
  const { read, unread } = await chatOf(alice, chat);
  assert.deepEqual({ read, unread }, { read: { [bob]: 5 }, unread: 0 });
  assert.equal((await chatOf(bob, chat)).unread, 0);
});

test('who hides reads sends no receipt and shows no mark', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const { chat, client } = await filledChat(alice, bob);
  await expectRest(server, 200, 'PATCH', '/v1/me', bob, { read_receipts: false });
  assert.equal((await readTo(bob, chat, 3)).status, 200);
  assert.deepEqual(await client.settle(), []);
  assert.deepEqual((await chatOf(alice, chat)).read, {});
  assert.deepEqual((await chatOf(bob, chat)).read, { [bob]: 3 });
  assert.equal((await chatOf(bob, chat)).unread, 2);
});

test('no receipt crosses a block, in either direction', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  const { chat, client } = await filledChat(alice, bob, carol);
  const carols = await connect(server, carol);
  await carols.ask({ type: 'open_chat', chat_id: chat });
  await block(server, carol, bob);
  const bobs = await connect(server, bob);
  await bobs.ask({ type: 'open_chat', chat_id: chat });
  await readTo(bob, chat, 1);
  await readTo(carol, chat, 2);
  assert.equal((await client.next((push) => push.user_id === bob && push.type === 'receipt')).sequence, 1);
  assert.equal((await client.next((push) => push.user_id === carol && push.type === 'receipt')).sequence, 2);
  const receipts = async (one) => (await one.settle()).filter(({ type }) => type === 'receipt');
  assert.deepEqual([await receipts(bobs), await receipts(carols)], [[], []]);
  assert.deepEqual((await chatOf(carol, chat)).read, { [carol]: 2 });
});

test('who has the chat closed gets no receipt', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const { chat, client } = await filledChat(alice, bob);
  await client.ask({ type: 'close_chat', chat_id: chat });
  await readTo(bob, chat, 3);
  assert.deepEqual(await client.settle(), []);
});

test('invalid reads are refused', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const { chat } = await filledChat(alice, bob);
  for (const sequence of [-1, 1.5, '1', null, undefined])
    assert.equal((await readTo(bob, chat, sequence)).status, 400, `${sequence}`);
  assert.equal((await readTo('mallory', chat, 1)).status, 404);
});
