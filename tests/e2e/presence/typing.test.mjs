/** Typing: who types, who sees it, for how long, how often. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, setVisibility, sleep } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const TTL_MS = 3000;
const PER_SECOND = 1;
/** Typing is delivered within 200 ms; a busy machine is given some more. */
const AT_ONCE_MS = 1000;

let server;

before(async () => {
  server = await startServer({
    args: ['--workers', '1'],
    settings: { 'typing.ttl_seconds': TTL_MS / 1000 },
  });
});

after(() => server.stop());
afterEach(closeAll);

const start = (client, chat) => client.send({ type: 'typing_start', chat_id: chat });
/** Waits until it is taken: of a member without the chat open the ledger is asked first. */
const started = async (client, chat) =>
  assert.equal((await client.ask({ type: 'typing_start', chat_id: chat })).type, 'ok');
const stop = (client, chat) => client.send({ type: 'typing_stop', chat_id: chat });
const open = (client, chat) => client.ask({ type: 'open_chat', chat_id: chat });
const limits = (client) => client.messages.filter(({ code }) => code === 'RATE_LIMITED');

/** A chat whose members everybody may see, with a connection of each, the chat not open yet. */
async function room(chat, ...users) {
  for (const user of users) await setVisibility(server, user, 'everyone');
  await makeChat(server, chat, ...users);
  return Promise.all(users.map((user) => connect(server, user)));
}

const seen = async (client, user, typing, timeoutMs = AT_ONCE_MS) =>
  client.next(
    (message) =>
      message.type === 'typing_changed' && message.user_id === user && message.typing === typing,
    timeoutMs,
  );

test('those with the chat open see who types, and nobody else', async () => {
  const [alice, bob, carol] = await room('seen', 'alice', 'bob', 'carol');
  await open(bob, 'seen');
  const typist = await connect(server, 'alice');
  await open(typist, 'seen');
  start(alice, 'seen');
  assert.deepEqual(await seen(bob, 'alice', true), {
    type: 'typing_changed',
    chat_id: 'seen',
    user_id: 'alice',
    typing: true,
  });
  stop(alice, 'seen');
  await seen(bob, 'alice', false);
  assert.deepEqual(await carol.settle(), [], 'the chat is not open there');
  assert.deepEqual(await typist.settle(), [], 'nor does one see oneself');
  assert.deepEqual(await alice.settle(), []);
});

test('silence ends it', async () => {
  const [alice, bob] = await room('silent', 'alice2', 'bob2');
  await open(bob, 'silent');
  start(alice, 'silent');
  await seen(bob, 'alice2', true);
  const startedMs = Date.now();
  await seen(bob, 'alice2', false, TTL_MS + AT_ONCE_MS);
  assert.ok(Date.now() - startedMs > TTL_MS - 200);
});

test('renewing keeps it and is not told again', async () => {
  const [alice, bob] = await room('renewed', 'alice3', 'bob3');
  await open(bob, 'renewed');
  start(alice, 'renewed');
  await seen(bob, 'alice3', true);
  for (let i = 0; i < 2; i += 1) {
    await sleep(1000 / PER_SECOND + 50);
    start(alice, 'renewed');
  }
  assert.deepEqual(await bob.settle(), []);
  stop(alice, 'renewed');
  await seen(bob, 'alice3', false);
});

test('excess is dropped and told once; a stop is not dropped', async () => {
  const [alice, bob] = await room('excess', 'alice4', 'bob4');
  await open(bob, 'excess');
  for (let i = 0; i < 10; i += 1) start(alice, 'excess');
  const told = await alice.next('error');
  assert.equal(told.code, 'RATE_LIMITED');
  assert.ok(told.retry_after_seconds > 0 && told.retry_after_seconds <= 1);
  await alice.settle();
  assert.equal(limits(alice).length, 0, 'once');
  await seen(bob, 'alice4', true);
  for (let i = 0; i < 200; i += 1) stop(alice, 'excess');
  await seen(bob, 'alice4', false);
  assert.deepEqual(await bob.settle(), []);
  assert.equal(limits(alice).length, 0, 'a stop is never too soon');
  await sleep(1050);
  start(alice, 'excess');
  await seen(bob, 'alice4', true);
  start(alice, 'excess');
  assert.equal((await alice.next('error')).code, 'RATE_LIMITED', 'once more, after one was taken');
});

test('two devices share one limit, and the last to stop ends it', async () => {
  const [phone, bob] = await room('devices', 'alice5', 'bob5');
  const laptop = await connect(server, 'alice5');
  await open(bob, 'devices');
  start(phone, 'devices');
  await seen(bob, 'alice5', true);
  start(laptop, 'devices');
  assert.equal((await laptop.next('error')).code, 'RATE_LIMITED');
  await sleep(1050);
  await started(laptop, 'devices');
  stop(phone, 'devices');
  await phone.settle();
  assert.deepEqual(await bob.settle(), []);
  laptop.terminate();
  await seen(bob, 'alice5', false);
});

test('closing the chat and leaving end it', async () => {
  const [alice, bob] = await room('ending', 'alice6', 'bob6');
  await open(bob, 'ending');
  await open(alice, 'ending');
  start(alice, 'ending');
  await seen(bob, 'alice6', true);
  await alice.ask({ type: 'close_chat', chat_id: 'ending' });
  await seen(bob, 'alice6', false);
  await sleep(1050);
  start(alice, 'ending');
  await seen(bob, 'alice6', true);
  alice.terminate();
  await seen(bob, 'alice6', false);
});

test('a message sent ends it, on whatever device it was', async () => {
  const [phone, bob] = await room('sent', 'alice11', 'bob11');
  const laptop = await connect(server, 'alice11');
  await open(bob, 'sent');
  start(phone, 'sent');
  await seen(bob, 'alice11', true);
  const message = { type: 'send_message', chat_id: 'sent', client_message_id: '1', body: 'done' };
  assert.equal((await laptop.ask(message)).type, 'message_ack');
  await seen(bob, 'alice11', false);
});

test('the snapshot says who types already, and the end is told', async () => {
  const [alice, bob, shy] = await room('joined', 'alice7', 'bob7', 'shy7');
  await setVisibility(server, 'shy7', 'nobody');
  await started(alice, 'joined');
  await started(shy, 'joined');
  const snapshot = await open(bob, 'joined');
  assert.deepEqual(snapshot.typing, ['alice7']);
  await seen(bob, 'alice7', false, TTL_MS + AT_ONCE_MS);
  assert.deepEqual(await bob.settle(), []);
});

test('only members type', async () => {
  const [, bob] = await room('members', 'alice8', 'bob8');
  const mallory = await connect(server, 'mallory');
  await open(bob, 'members');
  const typing = { type: 'typing_start', chat_id: 'members' };
  assert.equal((await mallory.ask(typing)).code, 'FORBIDDEN');
  assert.equal((await mallory.ask({ ...typing, chat_id: 'nowhere' })).code, 'NOT_FOUND');
  assert.equal((await mallory.ask({ ...typing, chat_id: 7 })).code, 'INVALID_MESSAGE');
  assert.equal((await mallory.ask({ type: 'typing_stop', chat_id: 'members' })).type, 'ok');
  assert.deepEqual(await bob.settle(), []);
});

test('who may not see a user does not see them typing', async () => {
  const [alice, bob, carol] = await room('privacy', 'alice9', 'bob9', 'carol9');
  await setVisibility(server, 'alice9', 'contacts_only');
  await open(bob, 'privacy');
  await open(carol, 'privacy');
  start(alice, 'privacy');
  start(carol, 'privacy');
  await seen(bob, 'carol9', true);
  await setVisibility(server, 'alice9', 'nobody');
  await sleep(1050);
  start(alice, 'privacy');
  await alice.settle();
  await sleep(200);
  const heard = await bob.settle();
  assert.deepEqual(
    heard.filter(({ user_id: user }) => user === 'alice9'),
    [],
  );
});

test('a change of privacy ends what was shown with the next renewal', async () => {
  const [alice, bob] = await room('changed', 'alice10', 'bob10');
  await open(bob, 'changed');
  start(alice, 'changed');
  await seen(bob, 'alice10', true);
  await setVisibility(server, 'alice10', 'nobody');
  const renewing = setInterval(() => start(alice, 'changed'), 1020);
  await seen(bob, 'alice10', false, 5000).finally(() => clearInterval(renewing));
  await setVisibility(server, 'alice10', 'everyone');
});

test('many who type in one room cost a bounded number of pushes', async () => {
  const count = 60;
  const users = Array.from({ length: count }, (_, i) => `crowd-${i}`);
  const [viewer, ...typists] = await room('crowd', 'viewer', ...users);
  await open(viewer, 'crowd');
  const startedMs = Date.now();
  for (const typist of typists) start(typist, 'crowd');
  await sleep(1000);
  const pushes = (await viewer.settle()).filter(({ type }) => type === 'typing_changed').length;
  const ticks = Math.ceil((Date.now() - startedMs) / 100) + 1;
  assert.ok(pushes >= 10 && pushes <= 4 * ticks, `${pushes} pushes in ${ticks} ticks`);
  for (const typist of typists) stop(typist, 'crowd');
  await sleep(TTL_MS + 2000);
  const still = new Set();
  for (const { type, user_id: user, typing } of await viewer.settle())
    if (type === 'typing_changed') still[typing ? 'add' : 'delete'](user);
  assert.deepEqual([...still], [], 'nobody types for ever');
});
