import assert from 'node:assert/strict';
import test from 'node:test';
import { KEPT_MESSAGES_MAX } from '../message_list.js';
import { codeOf, settle, world } from './support.mjs';

const message = (sequence) => ({
  chat_id: 'chat',
  message_id: `m${sequence}`,
  sequence,
  sender_id: 'bob',
  body: `#${sequence}`,
  sent_at: 'now',
});

/** A connected client and a server that has the messages 1 … `latest`; `gate` holds its answers back. */
async function chatWorld(latest) {
  const server = { latest, deleted: new Set(), gate: Promise.resolve(), reads: [] };
  const fetch = async (url) => {
    const query = new URL(url).searchParams;
    const [before, limit] = ['before_sequence', 'limit'].map((name) => Number(query.get(name)));
    server.reads.push([before, limit]);
    await server.gate;
    const first = Math.max(1, before - limit);
    const messages = [];
    for (let sequence = first; sequence < Math.min(before, server.latest + 1); sequence += 1) {
      const isDeleted = server.deleted.has(sequence);
      messages.push({ ...message(sequence), ...(isDeleted && { body: undefined, deleted: true }) });
    }
    const page = { messages, has_more: first > 1, latest_sequence: server.latest };
    return new Response(JSON.stringify(page));
  };
  const w = world({ fetch });
  await w.ready();
  return { ...w, server, get socket() { return w.socket; }, list: w.client.messageList('chat', { pageSize: 3 }) };
}

async function answerOpen(w) {
  await settle();
  w.socket.reply(w.socket.ofType('open_chat').at(-1), {
    type: 'chat_snapshot',
    chat_id: 'chat',
    presences: [],
    typing: [],
    latest_sequence: w.server.latest,
  });
  await settle();
}

async function opened(latest) {
  const w = await chatWorld(latest);
  const opening = w.list.open();
  await answerOpen(w);
  await opening;
  return w;
}

const push = (w, sequence) => w.socket.serverSends({ type: 'message', ...message(sequence) });
const sequences = ({ list }) => list.messages.map(({ sequence }) => sequence);
const bodies = ({ list }) => list.messages.map(({ body }) => body);
const states = ({ list }) => list.messages.map(({ body, state }) => [body, state]);

test('an opened list has the latest page, and grows with every message', async () => {
  const w = await opened(5);
  assert.deepEqual(sequences(w), [3, 4, 5]);
  assert.equal(w.list.hasEarlier, true);
  push(w, 6);
  push(w, 6);
  assert.deepEqual(sequences(w), [3, 4, 5, 6]);
  assert.equal(w.list.lastSequence, 6);
});

test('messages that arrive before the first page come once, after it', async () => {
  const w = await chatWorld(5);
  let open;
  w.server.gate = new Promise((resolve) => {
    open = resolve;
  });
  const opening = w.list.open();
  await answerOpen(w);
  push(w, 6);
  push(w, 7);
  assert.deepEqual(sequences(w), []);
  open();
  await opening;
  assert.deepEqual(sequences(w), [3, 4, 5, 6, 7]);
});

test('earlier pages are put in front, to the first message', async () => {
  const w = await opened(8);
  assert.equal(await w.list.fetchEarlier(), true);
  assert.deepEqual(sequences(w), [3, 4, 5, 6, 7, 8]);
  const [one, same] = [w.list.fetchEarlier(), w.list.fetchEarlier()];
  assert.equal(one, same, 'one fetch at a time');
  assert.equal(await one, false);
  assert.deepEqual(sequences(w), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal(await w.list.fetchEarlier(), false);
  assert.equal(w.server.reads.length, 3, 'nothing is asked for beyond the first message');
});

test('a message that arrives while an earlier page is fetched leaves neither gap nor duplicate', async () => {
  const w = await opened(8);
  const fetching = w.list.fetchEarlier();
  push(w, 9);
  await fetching;
  assert.deepEqual(sequences(w), [3, 4, 5, 6, 7, 8, 9]);
});

test('the list keeps a bounded number of messages, and can fetch the dropped ones', async () => {
  const w = await opened(3);
  for (let sequence = 4; sequence <= KEPT_MESSAGES_MAX + 2; sequence += 1) push(w, sequence);
  w.server.latest = KEPT_MESSAGES_MAX + 2;
  assert.equal(w.list.messages.length, KEPT_MESSAGES_MAX);
  assert.equal(w.list.hasEarlier, true);
  await w.list.fetchEarlier();
  assert.equal(sequences(w)[0], 1);
});

test('a message of the user is sending, then sent, with the same key', async () => {
  const w = await opened(1);
  const sent = w.list.send('hello');
  const [, { key }] = w.list.messages;
  assert.deepEqual(states(w), [['#1', 'sent'], ['hello', 'sending']]);
  const frame = w.socket.ofType('send_message')[0];
  w.socket.reply(frame, {
    type: 'message_ack',
    chat_id: 'chat',
    client_message_id: frame.client_message_id,
    message_id: 'm2',
    sequence: 2,
    duplicate: false,
  });
  assert.equal((await sent).sequence, 2);
  assert.deepEqual(states(w), [['#1', 'sent'], ['hello', 'sent']]);
  assert.equal(w.list.messages[1].key, key);
  assert.equal(w.list.messages[1].sequence, 2);
});

test('a refused message stays as failed until it is sent again or dropped', async () => {
  const w = await opened(1);
  const refuse = async () => {
    await settle();
    const frame = w.socket.ofType('send_message').at(-1);
    w.socket.reply(frame, { type: 'error', code: 'CHAT_HALTED', message: '' });
    return frame.client_message_id;
  };
  const first = codeOf(w.list.send('hello'));
  const key = await refuse();
  assert.equal(await first, 'CHAT_HALTED');
  assert.deepEqual(states(w).at(-1), ['hello', 'failed']);
  assert.equal(w.list.messages.at(-1).error.code, 'CHAT_HALTED');
  const second = codeOf(w.list.retry(key));
  assert.deepEqual(states(w).at(-1), ['hello', 'sending']);
  assert.equal(await refuse(), key, 'the same id');
  await second;
  w.list.drop(key);
  assert.deepEqual(sequences(w), [1]);
});

test('a message that a sync delivered before its acknowledgement appears once', async () => {
  const w = await opened(1);
  const sent = w.list.send('hello');
  const frame = w.socket.ofType('send_message')[0];
  push(w, 2);
  w.socket.reply(frame, { type: 'message_ack', chat_id: 'chat', sequence: 2, message_id: 'm2' });
  await sent;
  assert.deepEqual(sequences(w), [1, 2]);
});

for (const [first, isPushed] of [['the acknowledgement', false], ['the push', true]])
  test(`a message sent while the list opens appears once: ${first} comes before the page that has it`, async () => {
    const w = await chatWorld(0);
    const opening = w.list.open();
    const sent = w.list.send('hello');
    await settle();
    const frame = w.socket.ofType('send_message')[0];
    const { key } = w.list.messages[0];
    w.server.latest = 1; // stored: from now on a page has it
    const named = { ...message(1), client_message_id: frame.client_message_id };
    if (isPushed) w.socket.serverSends({ type: 'message', ...named });
    else w.socket.reply(frame, { type: 'message_ack', chat_id: 'chat', sequence: 1, message_id: 'm1' });
    await answerOpen(w);
    await opening;
    if (isPushed) w.socket.reply(frame, { type: 'message_ack', chat_id: 'chat', sequence: 1, message_id: 'm1' });
    else w.socket.serverSends({ type: 'message', ...named });
    await sent;
    await settle();
    assert.deepEqual(sequences(w), [1]);
    assert.equal(w.list.messages[0].key, key, 'its element stays');
  });

test('a deleted message stays in its place without its body', async () => {
  const w = await opened(3);
  w.socket.serverSends({ type: 'message_deleted', chat_id: 'chat', sequence: 2 });
  assert.deepEqual(bodies(w), ['#1', undefined, '#3']);
  assert.equal(w.list.messages[1].deleted, true);
});

test('a message deleted during an outage loses its body after the reconnect', async () => {
  const w = await opened(3);
  w.socket.serverCloses();
  w.server.deleted.add(2);
  await settle();
  await w.time.advance(w.changes.at(-1).delayMs);
  await w.accept();
  await answerOpen(w);
  await settle();
  w.socket.reply(w.socket.ofType('sync_request').at(-1), {
    type: 'sync_response',
    chat_id: 'chat',
    messages: [],
    has_more: false,
    latest_sequence: 3,
  });
  await settle();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(w.client.state, 'READY');
  assert.deepEqual(bodies(w), ['#1', undefined, '#3']);
});

test('a deleted message that is held behind a gap is delivered without its body', async () => {
  const w = await opened(1);
  push(w, 3);
  w.socket.serverSends({ type: 'message_deleted', chat_id: 'chat', sequence: 3 });
  w.socket.reply(w.socket.ofType('sync_request')[0], {
    type: 'sync_response',
    chat_id: 'chat',
    messages: [message(2)],
    has_more: false,
    latest_sequence: 3,
  });
  await settle();
  assert.deepEqual(bodies(w), ['#1', '#2', undefined]);
});

test('a message of the system has no sender', async () => {
  const w = await opened(0);
  w.socket.serverSends({ type: 'message', ...message(1), sender_id: null });
  assert.equal(w.list.messages[0].sender_id, null);
});

test('`messages` is the same array until something changes, and subscribers are told of each change', async () => {
  const w = await opened(1);
  let changes = 0;
  const stop = w.list.subscribe(() => {
    changes += 1;
  });
  const before = w.list.messages;
  assert.equal(w.list.messages, before);
  push(w, 2);
  assert.notEqual(w.list.messages, before);
  assert.deepEqual(before.map(({ sequence }) => sequence), [1], 'an old array does not change');
  assert.equal(changes, 1);
  stop();
  push(w, 3);
  w.list.dispose();
  push(w, 4);
  assert.equal(changes, 1);
  assert.deepEqual(sequences(w), [1, 2, 3]);
});

test('a list that could not be opened can be opened again', async () => {
  const w = await chatWorld(2);
  const refused = codeOf(w.list.open());
  await settle();
  w.socket.reply(w.socket.ofType('open_chat')[0], { type: 'error', code: 'NOT_FOUND', message: '' });
  assert.equal(await refused, 'NOT_FOUND');
  const opening = w.list.open();
  await answerOpen(w);
  await opening;
  assert.deepEqual(sequences(w), [1, 2]);
});
