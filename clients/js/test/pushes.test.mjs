import assert from 'node:assert/strict';
import test from 'node:test';
import { codeOf, settle, world } from './support.mjs';

async function readyWithChat(latest) {
  const w = world();
  await w.ready();
  w.client.openChat('chat');
  await answer(w, 'open_chat', { type: 'chat_snapshot', chat_id: 'chat', presences: [], typing: [], latest_sequence: latest });
  return w;
}

async function answer(w, type, fields) {
  await settle();
  w.socket.reply(w.socket.ofType(type).at(-1), fields);
  await settle();
}

test('sendEvent() promises the data of the acknowledgement', async () => {
  const w = world();
  await w.ready();
  const acknowledged = w.client.sendEvent('order', { id: 7 });
  const [frame] = w.socket.ofType('event');
  assert.deepEqual([frame.name, frame.data], ['order', { id: 7 }]);
  await answer(w, 'event', { type: 'event_ack', data: { placed: true } });
  assert.deepEqual(await acknowledged, { placed: true });
  const refused = codeOf(w.client.sendEvent('order'));
  await answer(w, 'event', { type: 'error', code: 'SERVICE_UNAVAILABLE', message: '' });
  assert.equal(await refused, 'SERVICE_UNAVAILABLE');
});

test('a delivery with an event name comes under that name too', async () => {
  const w = world();
  await w.ready();
  const events = [];
  w.client.on('delivery', ({ event, data }) => events.push([event, data]));
  w.client.on('delivery:shipped', (data) => events.push(data));
  w.socket.serverSends({ type: 'delivery', event: 'shipped', data: { order: 7 } });
  w.socket.serverSends({ type: 'delivery', data: 1 });
  assert.deepEqual(events, [['shipped', { order: 7 }], { order: 7 }, [undefined, 1]]);
});

test('sync_required syncs the open chats and is passed on', async () => {
  const w = await readyWithChat(3);
  const events = [];
  w.client.on('sync_required', ({ reason }) => events.push(reason));
  w.client.on('message', ({ sequence }) => events.push(sequence));
  w.socket.serverSends({ type: 'sync_required', reason: 'store_recovered' });
  await answer(w, 'open_chat', { type: 'chat_snapshot', chat_id: 'chat', presences: [], typing: [], latest_sequence: 4 });
  assert.equal(w.socket.ofType('sync_request')[0].after_sequence, 3);
  await answer(w, 'sync_request', {
    type: 'sync_response',
    chat_id: 'chat',
    messages: [{ chat_id: 'chat', sequence: 4 }],
    has_more: false,
    latest_sequence: 4,
  });
  assert.deepEqual(events, ['store_recovered', 4]);
  assert.equal(w.client.state, 'READY');
});

test('sync_required syncs a chat that is not open', async () => {
  const w = await readyWithChat(3);
  w.client.closeChat('chat').catch(() => {});
  w.socket.serverSends({ type: 'sync_required', reason: 'store_recovered' });
  await settle();
  assert.deepEqual(w.socket.ofType('sync_request').map((request) => request.after_sequence), [3]);
});

test('a snapshot that was not asked for leads to a sync if the chat is ahead', async () => {
  const w = await readyWithChat(3);
  const snapshot = { type: 'chat_snapshot', chat_id: 'chat', presences: [], typing: [] };
  w.socket.serverSends({ ...snapshot, latest_sequence: 3 });
  assert.equal(w.socket.ofType('sync_request').length, 0);
  w.socket.serverSends({ ...snapshot, latest_sequence: 5 });
  assert.equal(w.socket.ofType('sync_request')[0].after_sequence, 3);
});

test('a cancelled request rejects with the reason, and its late reply is ignored', async () => {
  const w = world();
  await w.ready();
  const controller = new AbortController();
  const request = w.client.request('query_presence', { user_ids: [] }, { signal: controller.signal });
  controller.abort();
  await assert.rejects(request, { name: 'AbortError' });
  await answer(w, 'query_presence', { type: 'presence_snapshot', presences: [] });
  await assert.rejects(w.client.request('x', {}, { signal: controller.signal }), { name: 'AbortError' });
  assert.equal(w.socket.ofType('x').length, 0);
  assert.deepEqual(w.errors, []);
});
