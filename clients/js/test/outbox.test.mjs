import assert from 'node:assert/strict';
import test from 'node:test';
import { OUTBOX_MAX, SEND_ATTEMPTS_MAX } from '../outbox.js';
import { codeOf, settle, world } from './support.mjs';

const sends = (w) => w.socket.ofType('send_message');

async function acknowledge(w, sequence, more = {}) {
  const frame = sends(w).at(-1);
  w.socket.reply(frame, {
    type: 'message_ack',
    chat_id: frame.chat_id,
    client_message_id: frame.client_message_id,
    message_id: `m${sequence}`,
    sequence,
    duplicate: false,
    ...more,
  });
  await settle();
}

async function refuse(w, code, more = {}) {
  w.socket.reply(sends(w).at(-1), { type: 'error', code, message: '', ...more });
  await settle();
}

test('a sent message is acknowledged and delivered in sequence', async () => {
  const w = world();
  await w.ready();
  const given = [];
  w.client.on('message', (message) => given.push(message));
  const sent = w.client.sendMessage('chat', 'hello');
  assert.match(sends(w)[0].client_message_id, /^[0-9a-f]{32}$/);
  await acknowledge(w, 4);
  assert.equal((await sent).sequence, 4);
  assert.deepEqual([given[0].sequence, given[0].sender_id, given[0].body], [4, 'alice', 'hello']);
});

test('a message is sent again with the same id after every lost connection', async () => {
  const w = world();
  await w.ready();
  const sent = w.client.sendMessage('chat', 'hello');
  const id = sends(w)[0].client_message_id;
  for (let round = 0; round < SEND_ATTEMPTS_MAX + 2; round += 1) {
    w.socket.serverCloses();
    await w.reconnect();
    assert.deepEqual(
      sends(w).map((frame) => frame.client_message_id),
      [id],
    );
  }
  await acknowledge(w, 1, { duplicate: true });
  assert.equal((await sent).duplicate, true);
});

test('a message that a sync has fetched already is not delivered twice', async () => {
  const w = world();
  await w.ready();
  const given = [];
  w.client.on('message', ({ sequence }) => given.push(sequence));
  w.socket.serverSends({
    type: 'message',
    chat_id: 'chat',
    sequence: 1,
    sender_id: 'alice',
    body: 'hello',
  });
  const sent = w.client.sendMessage('chat', 'hello');
  await acknowledge(w, 1, { duplicate: true });
  await sent;
  assert.deepEqual(given, [1]);
});

test('an id that was used with another body delivers that body', async () => {
  const w = world();
  await w.ready();
  const given = [];
  w.client.on('message', ({ sequence, body }) => given.push([sequence, body]));
  const sent = w.client.sendMessage('chat', 'second', { clientMessageId: 'x' });
  await acknowledge(w, 4, { duplicate: true, body_differs: true });
  assert.equal((await sent).sequence, 4);
  assert.deepEqual(given, []);
  const [sync] = w.socket.ofType('sync_request');
  assert.equal(sync.after_sequence, 3);
  const first = { chat_id: 'chat', sequence: 4, sender_id: 'alice', body: 'first' };
  const page = { chat_id: 'chat', messages: [first], has_more: false, latest_sequence: 4 };
  w.socket.reply(sync, { type: 'sync_response', ...page });
  await settle();
  assert.deepEqual(given, [[4, 'first']]);
});

test('a message without a reply is sent again', async () => {
  const w = world();
  await w.ready();
  w.client.sendMessage('chat', 'hello');
  for (let second = 0; second < 11; second += 1) {
    await w.time.advance(1000);
    w.socket.serverSends({ type: 'heartbeat_ack' });
  }
  assert.equal(sends(w).length, 2);
  assert.equal(sends(w)[0].client_message_id, sends(w)[1].client_message_id);
});

test('RATE_LIMITED waits for retry_after_seconds', async () => {
  const w = world();
  await w.ready();
  w.client.sendMessage('chat', 'hello');
  await refuse(w, 'RATE_LIMITED', { retry_after_seconds: 3 });
  await w.time.advance(2999);
  assert.equal(sends(w).length, 1);
  await w.time.advance(1);
  assert.equal(sends(w).length, 2);
});

test('temporary errors are retried with back-off, a bounded number of times', async () => {
  const w = world();
  await w.ready();
  const sent = codeOf(w.client.sendMessage('chat', 'hello'));
  for (let attempt = 1; attempt < SEND_ATTEMPTS_MAX; attempt += 1) {
    await refuse(w, 'SERVICE_UNAVAILABLE');
    for (let second = 0; second < 16; second += 1) {
      await w.time.advance(1000);
      w.socket.serverSends({ type: 'heartbeat_ack' });
      if (sends(w).length > attempt) break;
    }
    assert.equal(sends(w).length, attempt + 1);
  }
  await refuse(w, 'SERVICE_UNAVAILABLE');
  assert.equal(await sent, 'SERVICE_UNAVAILABLE');
});

test('permanent errors reject at once, and the next message is sent', async () => {
  const w = world();
  await w.ready();
  const first = codeOf(w.client.sendMessage('chat', 'too long'));
  const second = w.client.sendMessage('chat', 'fine');
  await refuse(w, 'MESSAGE_TOO_LARGE');
  assert.equal(await first, 'MESSAGE_TOO_LARGE');
  await acknowledge(w, 1);
  assert.equal((await second).sequence, 1);
});

test('a message that is too large for the server is rejected, not sent again', async () => {
  const w = world();
  await w.ready();
  const huge = codeOf(w.client.sendMessage('chat', 'x'.repeat(70000)));
  const small = w.client.sendMessage('chat', 'small');
  const other = codeOf(w.client.sendMessage('other', 'ö'.repeat(30000)));
  w.socket.serverCloses(1009, 'message too big');
  assert.equal(await huge, 'MESSAGE_TOO_LARGE');
  await w.reconnect();
  assert.deepEqual(
    sends(w).map((frame) => frame.body.length),
    [5, 30000],
  );
  w.socket.serverCloses(1009, 'message too big');
  assert.equal(await other, 'MESSAGE_TOO_LARGE');
  await w.reconnect();
  await acknowledge(w, 1);
  assert.equal((await small).sequence, 1);
});

test('a signal that is too large for the server loses no message', async () => {
  const w = world();
  await w.ready();
  const sent = w.client.sendMessage('chat', 'hello');
  w.client.signal('call', 'x'.repeat(70000));
  w.socket.serverCloses(1009, 'message too big');
  await w.reconnect();
  await acknowledge(w, 1);
  assert.equal((await sent).sequence, 1);
});

test('a message that is refused for its rate again and again is never given up', async () => {
  const w = world();
  await w.ready();
  const sent = w.client.sendMessage('chat', 'patient');
  for (let round = 0; round < 3 * SEND_ATTEMPTS_MAX; round += 1) {
    assert.equal(sends(w).length, round + 1);
    await refuse(w, 'RATE_LIMITED', { retry_after_seconds: 0.5 });
    await w.time.advance(500);
  }
  await acknowledge(w, 1);
  assert.equal((await sent).sequence, 1);
});

test('after RATE_LIMITED the chats take turns, and each message is sent once more', async () => {
  const CHATS = 20;
  const w = world();
  await w.ready();
  const acks = [];
  for (let i = 0; i < CHATS; i += 1) acks.push(w.client.sendMessage(`chat-${i}`, `${i}`));
  const first = sends(w);
  assert.equal(first.length, CHATS);
  for (const frame of first)
    w.socket.reply(frame, { type: 'error', code: 'RATE_LIMITED', message: '', retry_after_seconds: 1 });
  await settle();
  await w.time.advance(1000);
  for (let i = 0; i < CHATS; i += 1) {
    assert.equal(sends(w).length, CHATS + i + 1, 'one at a time');
    await acknowledge(w, i + 1);
  }
  await Promise.all(acks);
  const again = sends(w).slice(CHATS);
  assert.deepEqual(
    again.map((frame) => frame.client_message_id).sort(),
    first.map((frame) => frame.client_message_id).sort(),
  );
  w.client.sendMessage('chat-0', 'a');
  w.client.sendMessage('chat-1', 'b');
  await settle();
  assert.equal(sends(w).length, 2 * CHATS + 2, 'nothing is limited any more');
});

test('messages that wait for their turns survive a lost connection', async () => {
  const w = world();
  await w.ready();
  const acks = ['a', 'b', 'c'].map((chat) => w.client.sendMessage(chat, chat));
  for (const frame of sends(w))
    w.socket.reply(frame, { type: 'error', code: 'RATE_LIMITED', message: '', retry_after_seconds: 1 });
  await settle();
  await w.time.advance(1000);
  w.socket.serverCloses();
  await w.reconnect();
  assert.deepEqual(sends(w).map(({ body }) => body).sort(), ['a', 'b', 'c']);
  for (const { id, chat_id: chatId, client_message_id: clientMessageId } of sends(w))
    w.socket.reply({ id }, { type: 'message_ack', chat_id: chatId, client_message_id: clientMessageId, sequence: 1 });
  await settle();
  assert.equal((await Promise.all(acks)).length, 3);
});

test('one message per chat is in flight, so that a retry cannot be overtaken', async () => {
  const w = world();
  await w.ready();
  w.client.sendMessage('chat', 'first');
  w.client.sendMessage('chat', 'second');
  w.client.sendMessage('other', 'elsewhere');
  assert.deepEqual(
    sends(w).map((frame) => frame.body),
    ['first', 'elsewhere'],
  );
  w.socket.reply(sends(w)[0], { type: 'error', code: 'SERVER_BUSY', message: '' });
  await w.time.advance(1000);
  assert.deepEqual(
    sends(w).map((frame) => frame.body),
    ['first', 'elsewhere', 'first'],
  );
  await acknowledge(w, 1);
  assert.equal(sends(w).at(-1).body, 'second');
});

test('messages sent offline wait, bounded, and are sent in order', async () => {
  const w = world();
  const sent = Array.from({ length: OUTBOX_MAX }, (_, n) => w.client.sendMessage('chat', `#${n}`));
  assert.equal(await codeOf(w.client.sendMessage('chat', 'one too many')), 'QUEUE_FULL');
  await w.ready();
  for (let n = 0; n < OUTBOX_MAX; n += 1) {
    assert.equal(sends(w).at(-1).body, `#${n}`);
    await acknowledge(w, n + 1);
  }
  assert.equal((await Promise.all(sent)).length, OUTBOX_MAX);
});

test('clientMessageId may be given, to repeat a message of an earlier page', async () => {
  const w = world();
  await w.ready();
  w.client.sendMessage('chat', 'hello', { clientMessageId: 'mine' });
  assert.equal(sends(w)[0].client_message_id, 'mine');
});

test('after close() and connect() the outbox works again', async () => {
  const w = world();
  await w.ready();
  const lost = codeOf(w.client.sendMessage('chat', 'lost'));
  await refuse(w, 'SERVER_BUSY');
  w.client.close();
  assert.equal(await lost, 'CLOSED');
  assert.equal(w.time.running, 0, 'close() cancels the pending retry');
  await w.ready();
  const sent = w.client.sendMessage('chat', 'kept');
  await acknowledge(w, 1);
  assert.equal((await sent).sequence, 1);
});
