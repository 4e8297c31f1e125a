/** The JavaScript client's HTTP API and message lists, from the packed client, against the real server. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { WebSocket } from 'ws';
import { startApplication } from '../support/application.mjs';
import { installPackedClient } from '../support/client_package.mjs';
import { startServer } from '../support/server.mjs';

const LIVE_MS = 30000;

let server;
let installed;
let devToken;
let Rollcall;
let RollcallApi;
const clients = [];

before(async () => {
  [server, installed] = await Promise.all([startServer(), installPackedClient()]);
  const main = join(installed.folder, 'node_modules/rollcall/rollcall.js');
  ({ devToken, Rollcall, RollcallApi } = await import(pathToFileURL(main).href));
});
after(async () => {
  await server?.stop();
  await installed?.remove();
});
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

const apiOf = (user) => new RollcallApi({ url: server.url, getToken: () => server.token(user) });

async function clientOf(user) {
  const client = new Rollcall({ url: server.url, getToken: () => server.token(user), WebSocket });
  clients.push(client);
  await client.connect();
  return client;
}

async function befriend(one, other) {
  const { id } = await apiOf(one).requestContact(other);
  await apiOf(other).acceptContact(id);
}

function nextEvent(client, type, matches = () => true) {
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(() => reject(new Error(`no ${type}`)), LIVE_MS);
    const off = client.on(type, (payload) => {
      if (!matches(payload)) return;
      clearTimeout(timeout);
      off();
      resolve(payload);
    });
  });
}

/** Waits until `list` satisfies the condition. */
function listed(list, condition) {
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(
      () => reject(new Error(`only ${JSON.stringify(list.messages)}`)),
      LIVE_MS,
    );
    const check = () => {
      if (!condition(list.messages)) return;
      clearTimeout(timeout);
      stop();
      resolve(list.messages);
    };
    const stop = list.subscribe(check);
    check();
  });
}

const collect = async (iterable) => {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
};

const denied = (code, status) => ({ name: 'RollcallError', code, status });

test('contacts: request, list, withdraw, decline, accept, filter, remove', async () => {
  const [ann, ben] = [apiOf('ann'), apiOf('ben')];
  const { id, status } = await ann.requestContact('ben');
  assert.equal(status, 'pending');
  assert.deepEqual((await ann.contactRequests()).outgoing.map(({ to }) => to), ['ben']);
  assert.deepEqual((await ben.contactRequests()).incoming.map(({ from }) => from), ['ann']);
  assert.equal(await ann.withdrawContact(id), null);
  assert.deepEqual((await ben.contactRequests()).incoming, []);
  const second = await ann.requestContact('ben');
  assert.equal((await ben.declineContact(second.id)).status, 'declined');
  const third = await ann.requestContact('ben');
  assert.equal((await ben.acceptContact(third.id)).status, 'accepted');
  const { friends, has_more: more } = await ann.friends();
  assert.deepEqual(friends.map(({ user_id: user }) => user), ['ben']);
  assert.equal(more, false);
  assert.deepEqual((await ann.friends({ status: 'online' })).friends, []);
  assert.deepEqual((await ann.friends({ inCall: true })).friends, []);
  assert.equal(await ann.removeContact('ben'), null);
  assert.deepEqual((await ben.friends()).friends, []);
  await assert.rejects(ann.acceptContact('no-such-request'), denied('NOT_FOUND', 404));
});

test('lists are read to the end, page by page', async () => {
  const names = ['p1', 'p2', 'p3'];
  for (const name of names) await befriend('pat', name);
  const friends = await collect(apiOf('pat').eachFriend({ limit: 2 }));
  assert.deepEqual(friends.map(({ user_id: user }) => user), names);
  for (const name of names) await apiOf('pat').directChat(name);
  const chats = await collect(apiOf('pat').eachChat({ limit: 1 }));
  assert.equal(new Set(chats.map(({ chat_id: id }) => id)).size, 3);
});

test('blocks: block, list, unblock', async () => {
  const api = apiOf('blair');
  await api.block('bo/b');
  assert.deepEqual(await api.blocks(), ['bo/b']);
  await api.unblock('bo/b');
  assert.deepEqual(await api.blocks(), []);
});

test('settings: read and change', async () => {
  const api = apiOf('sam');
  assert.equal((await api.me()).presence_visibility, 'contacts_only');
  const changed = await api.updateMe({ presence_visibility: 'everyone', display_name: 'Sam' });
  assert.deepEqual([changed.presence_visibility, changed.display_name], ['everyone', 'Sam']);
  await assert.rejects(api.updateMe({ group_adds: 'nobody' }), denied('INVALID_MESSAGE', 400));
  assert.equal((await apiOf('tom').presence('sam')).status, 'offline');
  const presences = await apiOf('tom').presences(['sam', 'nobody-known']);
  assert.deepEqual(presences.map(({ status }) => status), ['offline', 'unknown']);
});

test('groups: create, members, admins, rights, leave', async () => {
  const [gil, hal, ida] = ['gil', 'hal', 'ida'].map(apiOf);
  const group = await gil.createGroup({ chatId: 'crew', members: ['hal'] });
  assert.deepEqual([group.kind, group.members, group.admins], ['group', ['gil', 'hal'], ['gil']]);
  await hal.addMember('crew', 'ida');
  assert.equal((await gil.updateChat('crew', { membersCanAdd: false })).members_can_add, false);
  await assert.rejects(hal.addMember('crew', 'joe'), denied('FORBIDDEN', 403));
  await gil.addAdmin('crew', 'hal');
  assert.deepEqual((await ida.chat('crew')).admins, ['gil', 'hal']);
  await gil.removeAdmin('crew', 'hal');
  await ida.removeMember('crew', 'ida');
  await assert.rejects(ida.chat('crew'), denied('NOT_FOUND', 404));
  assert.match((await gil.createGroup({ members: [] })).chat_id, /./);
});

test('messages: send, unread, read mark with receipt, history backwards', async () => {
  const api = apiOf('mia');
  const { chat_id: chat, kind } = await api.directChat('ned');
  assert.equal(kind, 'direct');
  assert.equal((await apiOf('ned').directChat('mia')).chat_id, chat);
  for (let n = 1; n <= 5; n += 1) await api.sendMessage(chat, `#${n}`);
  const again = await api.sendMessage(chat, '#5', { clientMessageId: 'same' });
  const repeated = await api.sendMessage(chat, '#5', { clientMessageId: 'same' });
  assert.deepEqual([repeated.sequence, repeated.duplicate], [again.sequence, true]);
  assert.equal((await apiOf('ned').chat(chat)).unread, 6);

  const mia = await clientOf('mia');
  await mia.openChat(chat);
  const receipt = nextEvent(mia, 'receipt');
  assert.deepEqual(await apiOf('ned').markRead(chat, 4), { chat_id: chat, sequence: 4 });
  assert.equal((await receipt).sequence, 4);
  assert.equal((await apiOf('ned').chat(chat)).unread, 2);

  const backwards = await collect(api.eachMessage(chat, { limit: 4 }));
  assert.deepEqual(backwards.map(({ sequence }) => sequence), [6, 5, 4, 3, 2, 1]);
  const page = await api.messages(chat, { afterSequence: 1, limit: 2 });
  assert.deepEqual(page.messages.map(({ body }) => body), ['#2', '#3']);
});

test('calls: the history has the call that was declined', async () => {
  await befriend('ola', 'pia');
  const [ola, pia] = await Promise.all(['ola', 'pia'].map(clientOf));
  const incoming = nextEvent(pia, 'call_incoming');
  await ola.requestCall('pia');
  const rejected = nextEvent(ola, 'call_rejected');
  await pia.rejectCall((await incoming).call_id);
  await rejected;
  const endMs = Date.now() + LIVE_MS;
  let call; // it is stored after the push
  while (call === undefined && Date.now() < endMs) [call] = await ola.api.calls({ limit: 1 });
  assert.deepEqual([call.peer, call.direction, call.reason], ['pia', 'outgoing', 'rejected']);
});

test('a message list merges history, pushes and what was missed while disconnected', async () => {
  const writer = apiOf('rob');
  const { chat_id: chat } = await writer.directChat('sue');
  for (let n = 1; n <= 7; n += 1) await writer.sendMessage(chat, `#${n}`);
  const sue = await clientOf('sue');
  const list = sue.messageList(chat, { pageSize: 3 });
  await list.open();
  const bodies = () => list.messages.map(({ body }) => body);
  assert.deepEqual(bodies(), ['#5', '#6', '#7']);
  await writer.sendMessage(chat, '#8');
  await listed(list, (messages) => messages.at(-1)?.body === '#8');
  sue.close();
  await writer.sendMessage(chat, '#9');
  await sue.connect();
  await list.send('#10');
  await list.fetchEarlier();
  await listed(list, (messages) => messages.at(-1)?.sequence === 10);
  assert.deepEqual(bodies(), ['#2', '#3', '#4', '#5', '#6', '#7', '#8', '#9', '#10']);
  assert.equal(await list.fetchEarlier(), false);
  assert.equal(list.messages[0].sequence, 1);
});

test('events of the application: sent with an acknowledgement, and delivered by name', async () => {
  const application = await startApplication();
  const own = await startServer({ settings: { 'hooks.event_url': application.url } });
  try {
    const wes = new Rollcall({ url: own.url, getToken: () => own.token('wes'), WebSocket });
    clients.push(wes);
    await wes.connect();
    application.answer = () => ({ body: { placed: true } });
    assert.deepEqual(await wes.sendEvent('order', { id: 7 }), { placed: true });
    const [{ user_id: user, name, data }] = application.questions;
    assert.deepEqual([user, name, data], ['wes', 'order', { id: 7 }]);
    application.answer = () => ({ status: 500 });
    await assert.rejects(wes.sendEvent('order'), { code: 'SERVICE_UNAVAILABLE', retryable: true });

    const shipped = nextEvent(wes, 'delivery:shipped');
    const backend = new RollcallApi({ url: own.url, token: await own.token('backend', { scope: 'service' }) });
    const body = { to: { users: ['wes'] }, event: 'shipped', data: { order: 7 } };
    assert.deepEqual(await backend.request('POST', '/v1/service/deliver', { body }), { accepted: 1 });
    assert.deepEqual(await shipped, { order: 7 });
  } finally {
    await own.stop();
    await application.stop();
  }
});

test('a message list shows messages of the system, and what the application deletes', async () => {
  const xia = await clientOf('xia');
  const { chat_id: chat } = await xia.api.createGroup({ members: [] });
  const list = xia.messageList(chat);
  await list.open();
  await list.send('mine');
  const backend = new RollcallApi({ url: server.url, token: await server.token('backend', { scope: 'service' }) });
  const path = `/v1/service/chats/${chat}/messages`;
  const body = { client_message_id: 'first', body: 'welcome' };
  const { sequence } = await backend.request('POST', path, { body });
  await listed(list, (messages) => messages.length === 2);
  assert.deepEqual([list.messages[1].sender_id, list.messages[1].body], [null, 'welcome']);

  await backend.request('DELETE', `${path}/${sequence}`);
  await listed(list, (messages) => messages[1].deleted === true);
  assert.equal(list.messages[1].body, undefined);
  xia.close();
  await backend.request('DELETE', `${path}/1`);
  await xia.connect();
  await listed(list, (messages) => messages[0].deleted === true);
  const [last] = await collect(xia.api.eachMessage(chat));
  assert.deepEqual([last.deleted, last.body], [true, undefined]);
});

test('an expired token is replaced, and a wrong one is UNAUTHENTICATED', async () => {
  const tokens = ['expired.token.here', await server.token('tia')];
  const api = new RollcallApi({ url: server.url, getToken: async () => tokens.shift() });
  assert.equal((await api.me()).user_id, 'tia');
  const wrong = new RollcallApi({ url: server.url, token: 'wrong' });
  await assert.rejects(wrong.me(), denied('UNAUTHENTICATED', 401));
});

test('a request over budget says when to try again', async () => {
  const api = apiOf('una');
  const answers = await Promise.allSettled(
    Array.from({ length: 60 }, (item, n) => api.requestContact(`flood${n}`)),
  );
  const refused = answers.find(({ status }) => status === 'rejected').reason;
  assert.deepEqual([refused.code, refused.status, refused.retryable], ['RATE_LIMITED', 429, true]);
  assert.ok(refused.retryAfterSeconds > 0);
});

test('a token by name from a server in dev mode', async () => {
  const token = await devToken('vic', { url: server.url });
  assert.equal((await new RollcallApi({ url: server.url, token }).me()).user_id, 'vic');
});

test('the page writes no HTTP by hand', async () => {
  const folder = new URL('../../../console/', import.meta.url);
  for (const name of await readdir(folder)) {
    const text = await readFile(new URL(name, folder), 'utf8');
    assert.doesNotMatch(text, /\bfetch\(|XMLHttpRequest|new WebSocket|sendBeacon/, name);
  }
});
