/** Sending messages: acknowledgement, delivery to all devices, repetition, and invalid input. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import {
  AMPLE_RATES,
  BODY_BYTES_MAX,
  fillChat,
  history,
  makeChat,
  newChat,
  postMessage,
  sendMessage,
} from '../support/chats.mjs';
import { closeAll, connect, devToken, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

let server;

before(async () => {
  server = await startServer({ settings: { ...AMPLE_RATES, 'gateway.workers': 2 } });
});
after(() => server.stop());
afterEach(closeAll);

test('a message is acknowledged, and reaches every other device of every member', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const sender = await connect(server, 'alice', { device: 'phone' });
  const others = await Promise.all([
    connect(server, 'alice', { device: 'laptop' }),
    connect(server, 'bob', { device: 'phone' }),
    connect(server, 'bob', { device: 'tablet' }),
  ]);
  const nonMember = await connect(server, 'mallory');
  const ack = await sendMessage(sender, chatId, 'good morning', 'first');
  assert.deepEqual(
    { ...ack, id: undefined, message_id: undefined },
    {
      type: 'message_ack',
      id: undefined,
      chat_id: chatId,
      client_message_id: 'first',
      message_id: undefined,
      sequence: 1,
      duplicate: false,
    },
  );
  assert.match(ack.message_id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
  for (const other of others) {
    const { sent_at: sentAt, ...message } = await other.next('message');
    assert.deepEqual(message, {
      type: 'message',
      chat_id: chatId,
      message_id: ack.message_id,
      sequence: 1,
      sender_id: 'alice',
      body: 'good morning',
    });
    assert.match(sentAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  for (const client of [sender, nonMember]) {
    const received = await client.settle();
    assert.ok(!received.some(({ type }) => type === 'message'), JSON.stringify(received));
  }
});

test('a message sent over REST is answered like message_ack, and reaches all devices', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const devices = await Promise.all([connect(server, 'alice'), connect(server, 'bob')]);
  const { status, body } = await postMessage(server, 'alice', chatId, {
    client_message_id: 'r',
    body: 'hello',
  });
  assert.equal(status, 201);
  assert.deepEqual(Object.keys(body).sort(), [
    'chat_id',
    'client_message_id',
    'duplicate',
    'message_id',
    'sequence',
  ]);
  for (const device of devices)
    assert.equal((await device.next('message')).message_id, body.message_id);
});

test('a repeated client_message_id returns the first message, per sender and chat', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const other = await newChat(server, 'alice', 'bob');
  const alice = await connect(server, 'alice');
  const bob = await connect(server, 'bob');
  const first = await sendMessage(alice, chatId, 'once', 'same');
  assert.equal((await bob.next('message')).sequence, 1);

  const again = await sendMessage(alice, chatId, 'once', 'same');
  assert.deepEqual({ ...again, id: first.id }, { ...first, duplicate: true });
  const otherBody = await sendMessage(alice, chatId, 'twice', 'same');
  assert.deepEqual(
    { ...otherBody, id: first.id },
    { ...first, duplicate: true, body_differs: true },
  );
  const overRest = await postMessage(server, 'alice', chatId, {
    client_message_id: 'same',
    body: 'once',
  });
  assert.equal(overRest.status, 201);
  assert.equal(overRest.body.duplicate, true);
  assert.equal(overRest.body.message_id, first.message_id);

  assert.equal((await sendMessage(bob, chatId, 'mine', 'same')).sequence, 2);
  assert.equal((await sendMessage(alice, other, 'there', 'same')).sequence, 1);
  const { messages } = (await history(server, 'bob', chatId)).body;
  assert.deepEqual(
    messages.map(({ body }) => body),
    ['once', 'mine'],
  );
  const received = (await bob.settle()).filter(({ type }) => type === 'message');
  assert.deepEqual(
    received.map(({ body }) => body),
    ['there'],
    'a repetition is not delivered again',
  );
});

test('twenty devices that send at once get dense sequences, in the order of the history', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const clients = await Promise.all(
    Array.from({ length: 20 }, (_, i) => connect(server, i % 2 ? 'alice' : 'bob')),
  );
  const acks = await Promise.all(
    clients.flatMap((client) =>
      Array.from({ length: 10 }, () => sendMessage(client, chatId, 'storm')),
    ),
  );
  const sequences = acks.map(({ sequence }) => sequence).sort((a, b) => a - b);
  assert.deepEqual(
    sequences,
    Array.from({ length: 200 }, (_, i) => i + 1),
  );
  const { messages } = (await history(server, 'bob', chatId, '?limit=500')).body;
  assert.deepEqual(
    messages.map(({ sequence }) => sequence),
    sequences,
  );
});

test('invalid input over WebSocket gets an error that names the message, and the connection stays', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const alice = await connect(server, 'alice');
  const mallory = await connect(server, 'mallory');
  const send = { type: 'send_message', chat_id: chatId, client_message_id: 'x', body: 'text' };
  const cases = [
    [{ ...send, body: '' }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, body: undefined }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, body: 7 }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, body: null }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, chat_id: '' }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, chat_id: undefined }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, chat_id: 'c'.repeat(129) }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, client_message_id: '' }, 'INVALID_MESSAGE', ''],
    [{ ...send, client_message_id: undefined }, 'INVALID_MESSAGE', undefined],
    [{ ...send, client_message_id: 'i'.repeat(129) }, 'INVALID_MESSAGE', 'i'.repeat(129)],
    [{ ...send, body: 'b'.repeat(BODY_BYTES_MAX + 1) }, 'MESSAGE_TOO_LARGE', 'x'],
    [{ ...send, body: 'é'.repeat(BODY_BYTES_MAX / 2) + 'b' }, 'MESSAGE_TOO_LARGE', 'x'],
    [{ ...send, chat_id: 'no such chat' }, 'NOT_FOUND', 'x'],
    [{ type: 'sync_request', chat_id: chatId, after_sequence: -1 }, 'INVALID_MESSAGE', undefined],
    [{ type: 'sync_request', chat_id: chatId, after_sequence: 1.5 }, 'INVALID_MESSAGE', undefined],
    [{ type: 'sync_request', chat_id: chatId, after_sequence: '1' }, 'INVALID_MESSAGE', undefined],
    [{ type: 'sync_request', chat_id: chatId }, 'INVALID_MESSAGE', undefined],
    [{ type: 'sync_request', chat_id: 'nowhere', after_sequence: 0 }, 'NOT_FOUND', undefined],
    [{ type: 'ack', chat_id: chatId, sequence: -1 }, 'INVALID_MESSAGE', undefined],
  ];
  for (const [command, code, clientMessageId] of cases) {
    const error = await alice.ask(command);
    const what = JSON.stringify({ command, error }).slice(0, 400);
    assert.equal(error.type, 'error', what);
    assert.equal(error.code, code, what);
    assert.equal(error.client_message_id, clientMessageId, what);
  }
  const forbidden = await sendMessage(mallory, chatId, 'let me in', 'y');
  assert.equal(forbidden.code, 'NOT_FOUND');
  assert.equal(forbidden.client_message_id, 'y');
  const unread = await mallory.ask({ type: 'sync_request', chat_id: chatId, after_sequence: 0 });
  assert.equal(unread.code, 'NOT_FOUND');

  const loneSurrogate = '{"type":"send_message","id":"s","chat_id":"c","client_message_id":"z","body":"\\ud800"}';
  alice.send(loneSurrogate);
  assert.equal((await alice.next('error')).code, 'INVALID_MESSAGE');
  const full = await sendMessage(alice, chatId, 'é'.repeat(BODY_BYTES_MAX / 2));
  assert.equal(full.sequence, 1, 'no invalid message was stored');
});

test('invalid input over REST gets the matching status', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const good = { client_message_id: 'x', body: 'text' };
  const cases = [
    ['alice', chatId, { ...good, body: '' }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { ...good, body: 5 }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { body: 'text' }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { ...good, client_message_id: '' }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { ...good, client_message_id: 'i'.repeat(129) }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { ...good, body: 'b'.repeat(BODY_BYTES_MAX + 1) }, 413, 'MESSAGE_TOO_LARGE'],
    ['alice', 'c'.repeat(129), good, 400, 'INVALID_MESSAGE'],
    ['alice', 'no such chat', good, 404, 'NOT_FOUND'],
    ['mallory', chatId, good, 404, 'NOT_FOUND'],
  ];
  for (const [user, chat, body, status, code] of cases) {
    const answer = await postMessage(server, user, chat, body);
    const what = JSON.stringify([user, chat, body, answer.body]).slice(0, 400);
    assert.equal(answer.status, status, what);
    assert.equal(answer.body.error.code, code, what);
  }
  const raw = await fetch(new URL(`/v1/chats/${chatId}/messages`, server.url), {
    method: 'POST',
    headers: { Authorization: `Bearer ${await devToken(server, 'alice')}` },
    body: Buffer.from('{"client_message_id":"x","body":"\xff"}', 'latin1'),
  });
  assert.equal(raw.status, 400);
  for (const query of [
    '?after_sequence=-1',
    '?after_sequence=x',
    '?before_sequence=1.5',
    '?limit=-1',
    '?after_sequence=1&before_sequence=2',
    '?after_sequence=',
  ])
    assert.equal((await history(server, 'alice', chatId, query)).status, 400, query);
  assert.equal((await history(server, 'mallory', chatId)).status, 404);
  assert.equal((await history(server, 'alice', 'nowhere')).status, 404);
  assert.equal((await rest(server, 'GET', `/v1/chats/${chatId}/messages`)).status, 401);
  assert.equal((await history(server, 'alice', chatId)).body.latest_sequence, 0);
});

test('a user who joins receives the next message, one who leaves does not', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const alice = await connect(server, 'alice');
  const bob = await connect(server, 'bob');
  const carol = await connect(server, 'carol');
  const member = (method, user) =>
    rest(server, method, `/v1/chats/${chatId}/members/${user}`, { user: 'alice' });
  for (let round = 0; round < 5; round += 1) {
    await sendMessage(alice, chatId, 'before');
    assert.equal((await bob.next('message')).body, 'before');
    await member('PUT', 'carol');
    await sendMessage(alice, chatId, 'with carol');
    assert.equal((await carol.next('message')).body, 'with carol');
    await member('DELETE', 'carol');
    await sendMessage(alice, chatId, 'without');
    await bob.next(({ body }) => body === 'without');
    const received = (await carol.settle()).filter(({ type }) => type === 'message');
    assert.deepEqual(received, []);
    bob.messages.length = 0;
  }
});

test('messages of numbered chats are all delivered: none is taken for a duplicate of another', async () => {
  const CHATS = 60;
  const MESSAGES = 60;
  const chatIds = Array.from({ length: CHATS }, (_, i) => (i % 2 ? `${i}` : `g${i}`));
  await Promise.all(chatIds.map((chatId) => makeChat(server, chatId, 'nora', 'oscar')));
  const [nora, oscar] = await Promise.all([connect(server, 'nora'), connect(server, 'oscar')]);
  for (const chatId of chatIds) await fillChat(nora, chatId, MESSAGES);
  const places = new Set();
  while (places.size < CHATS * MESSAGES) {
    const { chat_id: chatId, sequence } = await oscar.next('message');
    places.add(`${chatId}#${sequence}`);
  }
});
