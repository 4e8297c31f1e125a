import assert from 'node:assert/strict';
import test from 'node:test';
import { HELD_MESSAGES_MAX } from '../chats.js';
import { codeOf, settle, world } from './support.mjs';

const message = (sequence, chat = 'chat') => ({
  chat_id: chat,
  message_id: `m${sequence}`,
  sequence,
  sender_id: 'bob',
  body: `#${sequence}`,
  sent_at: 'now',
});
const push = (w, sequence, chat) =>
  w.socket.serverSends({ type: 'message', ...message(sequence, chat) });

function recordSequences(w) {
  const sequences = [];
  w.client.on('message', ({ sequence }) => sequences.push(sequence));
  return sequences;
}

/** Answers the newest sync_request with the messages `from` … `to`. */
async function answerSync(w, from, to, { hasMore = false, latest = to } = {}) {
  await settle();
  const messages = [];
  for (let sequence = from; sequence <= to; sequence += 1) messages.push(message(sequence));
  const frame = w.socket.ofType('sync_request').at(-1);
  w.socket.reply(frame, {
    type: 'sync_response',
    chat_id: frame.chat_id,
    messages,
    has_more: hasMore,
    latest_sequence: latest,
  });
  await settle();
}

async function answerOpen(w, latest) {
  await settle();
  const frame = w.socket.ofType('open_chat').at(-1);
  w.socket.reply(frame, {
    type: 'chat_snapshot',
    chat_id: frame.chat_id,
    presences: [],
    typing: [],
    latest_sequence: latest,
  });
  await settle();
}

async function opened(w, latest, options) {
  const snapshot = w.client.openChat('chat', options);
  await answerOpen(w, latest);
  return snapshot;
}

test('a chat opened without afterSequence starts with the next message', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  assert.equal((await opened(w, 7)).latest_sequence, 7);
  push(w, 8);
  push(w, 9);
  assert.deepEqual(sequences, [8, 9]);
  assert.equal(w.socket.ofType('sync_request').length, 0);
});

test('a message that arrives before the snapshot is not lost', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  const snapshot = w.client.openChat('chat');
  push(w, 8);
  await answerOpen(w, 8);
  await snapshot;
  assert.deepEqual(sequences, [8]);
});

test('afterSequence syncs page by page until has_more is false', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  await opened(w, 5, { afterSequence: 0 });
  await answerSync(w, 1, 2, { hasMore: true, latest: 5 });
  assert.equal(w.socket.ofType('sync_request').at(-1).after_sequence, 2);
  await answerSync(w, 3, 5);
  assert.deepEqual(sequences, [1, 2, 3, 4, 5]);
  assert.equal(w.socket.ofType('sync_request').length, 2);
});

test('duplicates are delivered once', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  for (const sequence of [1, 2, 2, 1, 3, 3]) push(w, sequence);
  assert.deepEqual(sequences, [1, 2, 3]);
});

test('messages after a gap are held until a sync has filled it', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  push(w, 1);
  push(w, 4);
  push(w, 5);
  assert.deepEqual(sequences, [1]);
  assert.deepEqual(
    w.socket.ofType('sync_request').map((frame) => frame.after_sequence),
    [1],
    'one sync for one gap',
  );
  await answerSync(w, 2, 5);
  assert.deepEqual(sequences, [1, 2, 3, 4, 5]);
});

test('a late message fills the gap without a sync', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  push(w, 1);
  push(w, 3);
  push(w, 2);
  assert.deepEqual(sequences, [1, 2, 3]);
  await answerSync(w, 2, 3);
  assert.deepEqual(sequences, [1, 2, 3]);
});

test('a complete sync that leaves a gap skips it', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  push(w, 1);
  push(w, 4);
  await answerSync(w, 4, 4);
  assert.deepEqual(sequences, [1, 4]);
});

test('a sync that lags behind the pushes is repeated, a failing one with back-off', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  push(w, 1);
  push(w, 4);
  await answerSync(w, 2, 1, { latest: 1 });
  assert.deepEqual(sequences, [1]);
  await w.time.advance(1000);
  w.socket.reply(w.socket.ofType('sync_request').at(-1), {
    type: 'error',
    code: 'SERVICE_UNAVAILABLE',
    message: '',
  });
  await w.time.advance(2000);
  assert.equal(w.socket.ofType('sync_request').length, 3);
  await answerSync(w, 2, 4);
  assert.deepEqual(sequences, [1, 2, 3, 4]);
});

test('a sync refused for good delivers the held messages and reports an error', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  push(w, 1);
  push(w, 3);
  push(w, 4);
  w.socket.reply(w.socket.ofType('sync_request')[0], {
    type: 'error',
    code: 'FORBIDDEN',
    message: '',
  });
  await settle();
  assert.deepEqual(sequences, [1, 3, 4]);
  assert.deepEqual(
    w.errors.map(({ code, chatId }) => [code, chatId]),
    [['FORBIDDEN', 'chat']],
  );
});

test('a sync whose pages do not advance is given up', async () => {
  const w = world();
  await w.ready();
  const synced = codeOf(w.client.sync('chat'));
  await answerSync(w, 1, 0, { hasMore: true, latest: 9 });
  assert.equal(await synced, 'INVALID_MESSAGE');
});

test('messages held behind a gap are bounded, and the sync fetches the rest', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  push(w, 1);
  for (let n = 3; n < HELD_MESSAGES_MAX + 10; n += 1) push(w, n);
  const last = HELD_MESSAGES_MAX + 9;
  await answerSync(w, 2, last);
  assert.equal(sequences.length, last);

  const other = world();
  await other.ready();
  const given = recordSequences(other);
  push(other, 1);
  for (let n = 3; n < HELD_MESSAGES_MAX + 10; n += 1) push(other, n);
  other.socket.reply(other.socket.ofType('sync_request')[0], {
    type: 'error',
    code: 'FORBIDDEN',
    message: '',
  });
  await settle();
  assert.equal(given.length, 1 + HELD_MESSAGES_MAX);
});

test('a gap left by a lost connection is filled after reconnecting, also in chats that are not open', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  push(w, 1);
  push(w, 3);
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.socket.ofType('sync_request')[0].after_sequence, 1);
  await answerSync(w, 2, 4);
  assert.deepEqual(sequences, [1, 2, 3, 4]);
});

test('a chat whose opening was refused is not opened after a reconnect', async () => {
  const w = world();
  await w.ready();
  const refused = codeOf(w.client.openChat('chat'));
  w.socket.reply(w.socket.ofType('open_chat')[0], {
    type: 'error',
    code: 'NOT_FOUND',
    message: '',
  });
  assert.equal(await refused, 'NOT_FOUND');
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.socket.ofType('open_chat').length, 0);
});

test('after a reconnect open chats are opened and synced from the last sequence, then READY follows', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  await opened(w, 3);
  push(w, 4);
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.client.state, 'SYNCING');
  await answerOpen(w, 6);
  assert.equal(w.client.state, 'SYNCING');
  assert.equal(w.socket.ofType('sync_request')[0].after_sequence, 4);
  push(w, 7);
  await answerSync(w, 5, 5, { hasMore: true, latest: 7 });
  await answerSync(w, 6, 7);
  assert.deepEqual(sequences, [4, 5, 6, 7]);
  assert.equal(w.client.state, 'READY');
});

test('a closed chat is not opened after a reconnect', async () => {
  const w = world();
  await w.ready();
  await opened(w, 3);
  const closed = w.client.closeChat('chat');
  w.socket.reply(w.socket.ofType('close_chat')[0], { type: 'ok' });
  await closed;
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.client.state, 'READY');
  assert.equal(w.socket.ofType('open_chat').length, 0);
});

test('a chat that may no longer be opened does not prevent READY', async () => {
  const w = world();
  await w.ready();
  await opened(w, 3);
  w.socket.serverCloses();
  await w.reconnect();
  w.socket.reply(w.socket.ofType('open_chat')[0], {
    type: 'error',
    code: 'FORBIDDEN',
    message: 'not a member',
  });
  await settle();
  assert.equal(w.client.state, 'READY');
  assert.equal(w.errors[0].chatId, 'chat');
});

test('chats named in sync_from_sequence are synced although they are not open', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  w.socket.serverSends({
    type: 'connection_closing',
    reason: 'slow_consumer',
    reconnect_allowed: true,
    sync_from_sequence: { chat: 11 },
  });
  w.socket.serverCloses(4003);
  await w.reconnect();
  assert.equal(w.socket.ofType('open_chat').length, 0);
  assert.equal(w.socket.ofType('sync_request')[0].after_sequence, 11);
  await answerSync(w, 12, 13);
  assert.deepEqual(sequences, [12, 13]);
  assert.equal(w.client.state, 'READY');
});

test('a chat that the server closed is reported and not opened again', async () => {
  const w = world();
  await w.ready();
  await opened(w, 3);
  const closed = [];
  w.client.on('chat_closed', ({ chat_id: chatId }) => closed.push(chatId));
  w.socket.serverSends({ type: 'chat_closed', chat_id: 'chat', reason: 'removed' });
  assert.deepEqual(closed, ['chat']);
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.client.state, 'READY');
  assert.equal(w.socket.ofType('open_chat').length, 0);
});

test('a connection lost while syncing is restored from the start', async () => {
  const w = world();
  await w.ready();
  await opened(w, 3);
  w.socket.serverCloses();
  await w.reconnect();
  w.socket.serverCloses();
  await settle();
  assert.equal(w.client.state, 'BACKOFF');
  assert.equal(w.changes.at(-1).delayMs, 2000, 'READY was not reached: the delays go on');
  await w.reconnect();
  await answerOpen(w, 3);
  await answerSync(w, 4, 3);
  assert.equal(w.client.state, 'READY');
});

const CLOSING = { type: 'connection_closing', reason: 'draining', reconnect_allowed: true };

test('a server that closes in the middle of a sync loses no chat and no message', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  await opened(w, 3);
  w.socket.serverCloses();
  await w.reconnect();
  await answerOpen(w, 6);
  w.socket.serverSends(CLOSING);
  push(w, 7);
  await answerSync(w, 4, 4, { hasMore: true, latest: 7 });
  w.socket.serverCloses(1001);
  await w.reconnect();
  await answerOpen(w, 7);
  await answerSync(w, 5, 7);
  assert.deepEqual(sequences, [4, 5, 6, 7]);
  assert.equal(w.client.state, 'READY');
  assert.deepEqual(w.errors, []);
});

test('a gap seen while the server closes is filled after reconnecting', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  push(w, 1);
  w.socket.serverSends(CLOSING);
  push(w, 3);
  await settle();
  assert.deepEqual(sequences, [1]);
  w.socket.serverCloses(1001);
  await w.reconnect();
  await answerSync(w, 2, 3);
  assert.deepEqual(sequences, [1, 2, 3]);
});

test('chats are restored four at a time', async () => {
  const w = world();
  await w.ready();
  for (const chat of ['a', 'b', 'c', 'd', 'e', 'f']) {
    w.client.openChat(chat);
    await answerOpen(w, 0);
  }
  w.socket.serverCloses();
  await w.reconnect();
  assert.equal(w.socket.ofType('open_chat').length, 4);
});

test('fetchMessages() reads history without events', async () => {
  const w = world();
  await w.ready();
  const sequences = recordSequences(w);
  const page = w.client.fetchMessages('chat', 10, 5);
  const [frame] = w.socket.ofType('sync_request');
  assert.deepEqual([frame.after_sequence, frame.limit], [10, 5]);
  await answerSync(w, 11, 15);
  assert.equal((await page).messages.length, 5);
  assert.deepEqual(sequences, []);
});

test('snapshots and typing become events, and ack() sends a frame', async () => {
  const w = world();
  await w.ready();
  const events = [];
  w.client.on('chat', ({ chat_id: chat }) => events.push(chat));
  w.client.on('typing', ({ user_id: user, typing }) => events.push([user, typing]));
  await opened(w, 1);
  w.socket.serverSends({ type: 'typing_changed', chat_id: 'chat', user_id: 'bob', typing: true });
  assert.deepEqual(events, ['chat', ['bob', true]]);
  w.client.ack('chat', 1);
  assert.deepEqual(w.socket.ofType('ack')[0], { type: 'ack', chat_id: 'chat', sequence: 1 });
});
