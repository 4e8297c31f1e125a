/** Typing notices: who sees them, how long they last, and how they are limited. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, setVisibility, sleep } from '../support/client.mjs';
import { block } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

const TTL_MS = 3000;
const PER_SECOND = 1;
/** Typing is delivered within 200 ms; a busy machine may take longer. */
const AT_ONCE_MS = 10000;

/** Typing that is not renewed ends after TTL_MS on `hasty`; on `server` it outlasts every wait of a test. */
let server;
let hasty;

const serve = (ttlMs) =>
  startServer({ args: ['--workers', '1'], settings: { 'typing.ttl_seconds': ttlMs / 1000 } });

before(async () => {
  [server, hasty] = await Promise.all([serve(3 * AT_ONCE_MS), serve(TTL_MS)]);
});

after(() => Promise.all([server.stop(), hasty.stop()]));
afterEach(closeAll);

const sendStart = (client, chat) => client.send({ type: 'typing_start', chat_id: chat });
/** Waits for the acknowledgement: without an open chat the server first queries the ledger for the member. */
const startTyping = async (client, chat) =>
  assert.equal((await client.ask({ type: 'typing_start', chat_id: chat })).type, 'ok');
const sendStop = (client, chat) => client.send({ type: 'typing_stop', chat_id: chat });
const open = (client, chat) => client.ask({ type: 'open_chat', chat_id: chat });
const rateLimitErrors = (client) => client.messages.filter(({ code }) => code === 'RATE_LIMITED');

/** Creates a chat of users whom everybody may see, and connects each; the chat is not open yet. */
const connectMembers = (chat, ...users) => connectMembersTo(server, chat, ...users);

async function connectMembersTo(at, chat, ...users) {
  for (const user of users) await setVisibility(at, user, 'everyone');
  await makeChat(at, chat, ...users);
  return Promise.all(users.map((user) => connect(at, user)));
}

const nextTyping = (client, user, typing, timeoutMs = AT_ONCE_MS) =>
  client.next(
    (message) =>
      message.type === 'typing_changed' && message.user_id === user && message.typing === typing,
    timeoutMs,
  );

test('only other users with the chat open see who types', async () => {
  const [alice, bob, carol] = await connectMembers('seen', 'alice', 'bob', 'carol');
  await open(bob, 'seen');
  const typist = await connect(server, 'alice');
  await open(typist, 'seen');
  sendStart(alice, 'seen');
  assert.deepEqual(await nextTyping(bob, 'alice', true), {
    type: 'typing_changed',
    chat_id: 'seen',
    user_id: 'alice',
    typing: true,
  });
  sendStop(alice, 'seen');
  await nextTyping(bob, 'alice', false);
  assert.deepEqual(await carol.settle(), [], 'the chat is not open');
  assert.deepEqual(await typist.settle(), [], 'users do not see themselves typing');
  assert.deepEqual(await alice.settle(), []);
});

test('typing ends after the time to live without a renewal', async () => {
  const [alice, bob] = await connectMembersTo(hasty, 'silent', 'alice2', 'bob2');
  await open(bob, 'silent');
  sendStart(alice, 'silent');
  await nextTyping(bob, 'alice2', true);
  const startedMs = Date.now();
  await nextTyping(bob, 'alice2', false, TTL_MS + AT_ONCE_MS);
  assert.ok(Date.now() - startedMs > TTL_MS - 200);
});

test('renewing keeps typing alive and is not sent again', async () => {
  const [alice, bob] = await connectMembersTo(hasty, 'renewed', 'alice3', 'bob3');
  await open(bob, 'renewed');
  sendStart(alice, 'renewed');
  await nextTyping(bob, 'alice3', true);
  for (let passedMs = 0; passedMs < 1.3 * TTL_MS; passedMs += 1000 / PER_SECOND) {
    await sleep(1000 / PER_SECOND + 50);
    sendStart(alice, 'renewed');
  }
  assert.deepEqual(await bob.settle(), []);
  sendStop(alice, 'renewed');
  await nextTyping(bob, 'alice3', false);
});

test('excess starts are dropped with one error; stops are never dropped', async () => {
  const [alice, bob] = await connectMembers('excess', 'alice4', 'bob4');
  await open(bob, 'excess');
  for (let i = 0; i < 10; i += 1) sendStart(alice, 'excess');
  const error = await alice.next('error');
  assert.equal(error.code, 'RATE_LIMITED');
  assert.ok(error.retry_after_seconds > 0 && error.retry_after_seconds <= 1);
  await alice.settle();
  assert.equal(rateLimitErrors(alice).length, 0, 'one error');
  await nextTyping(bob, 'alice4', true);
  for (let i = 0; i < 200; i += 1) sendStop(alice, 'excess');
  await nextTyping(bob, 'alice4', false);
  assert.deepEqual(await bob.settle(), []);
  assert.equal(rateLimitErrors(alice).length, 0, 'no error for a stop');
  await sleep(1050);
  sendStart(alice, 'excess');
  await nextTyping(bob, 'alice4', true);
  sendStart(alice, 'excess');
  assert.equal((await alice.next('error')).code, 'RATE_LIMITED', 'one more error after an accepted start');
});

test('two devices share one limit, and typing ends when the last one stops', async () => {
  const [phone, bob] = await connectMembers('devices', 'alice5', 'bob5');
  const laptop = await connect(server, 'alice5');
  await open(bob, 'devices');
  sendStart(phone, 'devices');
  await nextTyping(bob, 'alice5', true);
  sendStart(laptop, 'devices');
  assert.equal((await laptop.next('error')).code, 'RATE_LIMITED');
  await sleep(1050);
  await startTyping(laptop, 'devices');
  sendStop(phone, 'devices');
  await phone.settle();
  assert.deepEqual(await bob.settle(), []);
  laptop.terminate();
  await nextTyping(bob, 'alice5', false);
});

test('closing the chat and disconnecting end typing', async () => {
  const [alice, bob] = await connectMembers('ending', 'alice6', 'bob6');
  await open(bob, 'ending');
  await open(alice, 'ending');
  sendStart(alice, 'ending');
  await nextTyping(bob, 'alice6', true);
  await alice.ask({ type: 'close_chat', chat_id: 'ending' });
  await nextTyping(bob, 'alice6', false);
  await sleep(1050);
  sendStart(alice, 'ending');
  await nextTyping(bob, 'alice6', true);
  alice.terminate();
  await nextTyping(bob, 'alice6', false);
});

test('a sent message ends typing on every device of its sender', async () => {
  const [phone, bob] = await connectMembers('sent', 'alice11', 'bob11');
  const laptop = await connect(server, 'alice11');
  await open(bob, 'sent');
  sendStart(phone, 'sent');
  await nextTyping(bob, 'alice11', true);
  const message = { type: 'send_message', chat_id: 'sent', client_message_id: '1', body: 'done' };
  assert.equal((await laptop.ask(message)).type, 'message_ack');
  await nextTyping(bob, 'alice11', false);
});

test('the chat snapshot lists who types, and the end is sent', async () => {
  const [alice, bob, shy] = await connectMembersTo(hasty, 'joined', 'alice7', 'bob7', 'shy7');
  await setVisibility(hasty, 'shy7', 'nobody');
  await startTyping(alice, 'joined');
  await startTyping(shy, 'joined');
  const snapshot = await open(bob, 'joined');
  assert.deepEqual(snapshot.typing, ['alice7']);
  await nextTyping(bob, 'alice7', false, TTL_MS + AT_ONCE_MS);
  assert.deepEqual(await bob.settle(), []);
});

test('only members may type', async () => {
  const [, bob] = await connectMembers('members', 'alice8', 'bob8');
  const mallory = await connect(server, 'mallory');
  await open(bob, 'members');
  const typing = { type: 'typing_start', chat_id: 'members' };
  const startCodes = {};
  for (const chat of ['members', 'nowhere'])
    startCodes[chat] = (await mallory.ask({ ...typing, chat_id: chat })).code;
  assert.equal(startCodes.nowhere, 'NOT_FOUND');
  assert.equal((await mallory.ask({ ...typing, chat_id: 7 })).code, 'INVALID_MESSAGE');
  for (const chat of ['members', 'nowhere'])
    for (const type of ['typing_start', 'typing_stop']) {
      const refused = await mallory.ask({ type, chat_id: chat });
      assert.deepEqual([type, refused.code], [type, startCodes[chat]]);
    }
  assert.deepEqual(await bob.settle(), []);
});

test('members who are no contacts see each other typing', async () => {
  const [alice, bob] = await connectMembers('unrelated', 'alice11', 'bob11');
  for (const user of ['alice11', 'bob11']) await setVisibility(server, user, 'contacts_only');
  await open(bob, 'unrelated');
  await startTyping(alice, 'unrelated');
  await nextTyping(bob, 'alice11', true);
  const late = await connect(server, 'bob11');
  assert.deepEqual((await open(late, 'unrelated')).typing, ['alice11']);
});

test('nobody sees typing across a block, in either direction', async () => {
  const [alice, bob, carol] = await connectMembers('blocks', 'alice12', 'bob12', 'carol12');
  await block(server, 'alice12', 'bob12');
  for (const client of [alice, bob, carol]) await open(client, 'blocks');
  await startTyping(alice, 'blocks');
  await startTyping(bob, 'blocks');
  await startTyping(carol, 'blocks');
  await nextTyping(alice, 'carol12', true);
  await nextTyping(bob, 'carol12', true);
  await nextTyping(carol, 'alice12', true);
  await nextTyping(carol, 'bob12', true);
  const typists = (client) => client.messages.map(({ user_id: user }) => user);
  assert.equal(typists(alice).includes('bob12'), false);
  assert.equal(typists(bob).includes('alice12'), false);
  const late = { alice: await connect(server, 'alice12'), bob: await connect(server, 'bob12') };
  assert.deepEqual((await open(late.alice, 'blocks')).typing, ['carol12']);
  assert.deepEqual((await open(late.bob, 'blocks')).typing, ['carol12']);
});

test('nobody sees a user typing who shows presence to nobody', async () => {
  const [alice, bob, carol] = await connectMembers('privacy', 'alice9', 'bob9', 'carol9');
  await setVisibility(server, 'alice9', 'nobody');
  await open(bob, 'privacy');
  await open(carol, 'privacy');
  sendStart(alice, 'privacy');
  await alice.settle();
  sendStart(carol, 'privacy');
  await nextTyping(bob, 'carol9', true);
  await sleep(200);
  const received = await bob.settle();
  assert.deepEqual(
    received.filter(({ user_id: user }) => user === 'alice9'),
    [],
  );
});

test('typing of a user who hides ends for viewers with the next renewal', async () => {
  const [alice, bob] = await connectMembers('changed', 'alice10', 'bob10');
  await open(bob, 'changed');
  sendStart(alice, 'changed');
  await nextTyping(bob, 'alice10', true);
  await setVisibility(server, 'alice10', 'nobody');
  const renewing = setInterval(() => sendStart(alice, 'changed'), 1020);
  await nextTyping(bob, 'alice10', false).finally(() => clearInterval(renewing));
  await setVisibility(server, 'alice10', 'everyone');
});

test('many users typing in one chat cause a bounded number of pushes', async () => {
  const count = 60;
  const users = Array.from({ length: count }, (_, i) => `crowd-${i}`);
  const [viewer, ...typists] = await connectMembersTo(hasty, 'crowd', 'viewer', ...users);
  await open(viewer, 'crowd');
  const startedMs = Date.now();
  for (const typist of typists) sendStart(typist, 'crowd');
  await sleep(1000);
  const pushes = (await viewer.settle()).filter(({ type }) => type === 'typing_changed').length;
  const ticks = Math.ceil((Date.now() - startedMs) / 100) + 1;
  assert.ok(pushes >= 10 && pushes <= 4 * ticks, `${pushes} pushes in ${ticks} ticks`);
  for (const typist of typists) sendStop(typist, 'crowd');
  await sleep(TTL_MS + 2000);
  const still = new Set();
  for (const { type, user_id: user, typing } of await viewer.settle())
    if (type === 'typing_changed') still[typing ? 'add' : 'delete'](user);
  assert.deepEqual([...still], [], 'nobody is still shown as typing');
});
