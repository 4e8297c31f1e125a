/**
 * The events of Socket.IO clients, end to end with the npm client: friends, calls, typing, heartbeats and
 * native commands, between Socket.IO and native clients.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import {
  closeAll,
  connect,
  deliver,
  devToken,
  eventually,
  metric,
  rest,
  sleep,
} from '../support/client.mjs';
import { befriend, expectRest, requestContact, uniqueUsers } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';
import {
  closeAllSocketIo,
  connectError,
  connectSocketIo,
  expectRefused,
  openSocketIo,
  TRANSPORTS,
} from '../support/socketio.mjs';

let server;

before(async () => {
  server = await startServer({ args: ['--workers', '1'] });
});
after(async () => assert.equal(await server.stop(), 0));
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

const isAbout = (userId) => (event) => event.userId === userId;

/** Creates a chat on behalf of the first member; returns its id. */
const makeChat = async (...members) =>
  (await expectRest(server, 201, 'POST', '/v1/chats', members[0], { members })).chat_id;

for (const [transport, transports] of Object.entries(TRANSPORTS))
  describe(`events, ${transport}`, () => {
    const join = (user, options) => connectSocketIo(server, user, { transports, ...options });

    test('Socket.IO and native friends receive each other’s presence', async () => {
      const [ann, bob, cat] = uniqueUsers('ann', 'bob', 'cat');
      await befriend(server, ann, bob);
      await befriend(server, cat, bob);
      const first = await join(ann);
      const native = await connect(server, cat);
      const second = await join(bob);
      assert.deepEqual(await first.next('friend_online', isAbout(bob)), { userId: bob });
      assert.equal((await first.next('presence_changed')).status, 'online');
      assert.equal((await native.nextChange(bob)).status, 'online');
      second.close();
      assert.deepEqual(await first.next('friend_offline', isAbout(bob)), { userId: bob });
      assert.equal((await native.nextChange(bob, 'offline')).status, 'offline');
      const again = await connect(server, bob);
      await first.next('friend_online', isAbout(bob));
      again.terminate();
      await first.next('friend_offline', isAbout(bob));
      assert.equal(first.count('friend_online') + first.count('friend_offline'), 0);
    });

    test('a call rings, is accepted, signalled and ended, and friends see both users in it', async () => {
      const [ann, bob, cat] = uniqueUsers('ann', 'bob', 'cat');
      await befriend(server, ann, bob);
      await befriend(server, ann, cat);
      await befriend(server, bob, cat);
      const [caller, callee, friend] = [await join(ann), await join(bob), await join(cat)];
      const ringing = await caller.ask('call:request', { to: bob });
      const incoming = await callee.next('call:incoming');
      assert.equal(incoming.from, ann);
      assert.equal(incoming.callId, ringing.call_id);
      callee.emit('call:accept', { from: ann });
      await caller.next('call:accepted');
      await friend.next('friend_in_call', isAbout(ann));
      await friend.next('friend_in_call', isAbout(bob));
      caller.emit('call_signal', { call_id: incoming.callId, data: { sdp: 'offer' } });
      assert.deepEqual((await callee.next('call_signal')).data, { sdp: 'offer' });
      caller.emit('call:end');
      await callee.next('call:ended');
      await friend.next('friend_out_of_call', isAbout(ann));
      await friend.next('friend_out_of_call', isAbout(bob));
      await friend.settle();
      for (const name of ['friend_in_call', 'friend_out_of_call'])
        assert.equal(friend.count(name), 0, name);
    });

    test('calls are rejected and accepted under both names of the events', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(server, ann, bob);
      const [caller, callee] = [await join(ann), await connect(server, bob)];
      caller.emit('call:request', { to: bob });
      const { call_id: first } = await callee.next('call_incoming');
      await callee.ask({ type: 'call_reject', call_id: first });
      await caller.next('call:rejected');
      const answering = await join(bob, { device: 'other' });
      await caller.ask('call:request', { to: bob });
      await answering.next('call:incoming');
      answering.emit('call:rejected', { from: ann });
      await caller.next('call:rejected');
      await caller.ask('call:request', { to: bob });
      await answering.next('call:incoming');
      answering.emit('call:accepted', { from: ann });
      await caller.next('call:accepted');
      answering.emit('call:end');
      await caller.next('call:ended');
    });

    for (const [how, leave] of Object.entries({
      'disconnect()': (client) => client.close(),
      'user:disconnect': (client) => client.emit('user:disconnect'),
    }))
      test(`a device that leaves during a call hangs up, ${how}`, async () => {
        const [ann, bob] = uniqueUsers('ann', 'bob');
        await befriend(server, ann, bob);
        const [caller, callee] = [await join(ann), await join(bob)];
        const bystander = await join(bob);
        await caller.ask('call:request', { to: bob });
        await callee.next('call:incoming');
        await callee.ask('call:accept', { from: ann });
        const left = bystander.disconnected();
        leave(bystander);
        await left;
        assert.equal((await caller.ask('call:request', { to: bob })).code, 'CALL_BUSY');
        leave(callee);
        assert.equal((await caller.next('call:ended')).reason, 'hangup');
      });

    test('friends see call:start and call:end', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(server, ann, bob);
      const [caller, friend] = [await join(ann), await join(bob)];
      caller.emit('call:start');
      await friend.next('friend_in_call', isAbout(ann));
      const [{ status, in_call: inCall }] = (
        await friend.ask('query_presence', { user_ids: [ann] })
      ).presences;
      assert.deepEqual([status, inCall], ['online', true]);
      caller.emit('call:end');
      await friend.next('friend_out_of_call', isAbout(ann));
    });

    test('a new contact who is in a call is shown online and in the call', async () => {
      const [ann, bob, cat] = uniqueUsers('ann', 'bob', 'cat');
      const [caller, friend] = [await join(ann), await join(bob)];
      const idle = await join(cat);
      await caller.ask('call:start');
      await befriend(server, bob, ann);
      await befriend(server, bob, cat);
      await friend.next('friend_online', isAbout(ann));
      await friend.next('friend_in_call', isAbout(ann));
      await friend.next('friend_online', isAbout(cat));
      await caller.next('friend_online', isAbout(bob));
      await Promise.all([caller, friend, idle].map((client) => client.settle()));
      for (const client of [caller, friend, idle]) assert.equal(client.count('friend_in_call'), 0);
      caller.emit('call:end');
      await friend.next('friend_out_of_call', isAbout(ann));
    });

    test('a call to an offline user is answered CALL_UNAVAILABLE', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(server, ann, bob);
      const caller = await join(ann);
      assert.equal((await caller.ask('call:request', { to: bob })).code, 'CALL_UNAVAILABLE');
    });

    test('heartbeats are acknowledged, and change between active and idle', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(server, ann, bob);
      const [client, friend] = [await join(ann), await connect(server, bob)];
      const answer = await client.ask('HEARTBEAT', {});
      assert.ok(Math.abs(Date.parse(answer.server_time) - Date.now()) < 5000);
      assert.ok('server_time' in (await client.ask('HEARTBEAT')));
      client.emit('HEARTBEAT', { active: false });
      await friend.nextChange(ann, 'away');
      client.emit('HEARTBEAT', { active: true });
      await friend.nextChange(ann, 'online');
    });

    test('typing, and members coming online and going offline, are seen in the room', async () => {
      const [ann, bob, cat] = uniqueUsers('ann', 'bob', 'cat');
      const roomId = await makeChat(ann, bob, cat);
      for (const user of [ann, bob, cat])
        await expectRest(server, 200, 'PATCH', '/v1/me', user, { presence_visibility: 'everyone' });
      const [watcher, native] = [await join(ann), await connect(server, cat)];
      await watcher.ask('open_chat', { chat_id: roomId });
      await native.ask({ type: 'open_chat', chat_id: roomId });
      const typist = await join(bob);
      await watcher.next('USER_ONLINE', isAbout(bob));
      await typist.ask('open_chat', { chat_id: roomId });
      typist.emit('typing:start', { roomId });
      assert.deepEqual(await watcher.next('typing'), { roomId, userId: bob, typing: true });
      assert.equal((await native.next('typing_changed')).user_id, bob);
      typist.emit('typing:stop', { roomId });
      assert.deepEqual(await watcher.next('typing'), { roomId, userId: bob, typing: false });
      native.send({ type: 'typing_start', chat_id: roomId });
      assert.equal((await watcher.next('typing')).userId, cat);
      typist.close();
      await watcher.next('USER_OFFLINE', isAbout(bob));
    });

    test('user:connect changes nothing, user:disconnect ends the connection', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(server, ann, bob);
      const friend = await join(bob);
      const client = await join(ann);
      await friend.next('friend_online', isAbout(ann));
      await client.ask('user:connect', {});
      await client.ask('user:connect');
      await friend.settle();
      assert.equal(friend.count('friend_online'), 0);
      client.emit('user:disconnect');
      assert.equal(await client.disconnected(), 'io server disconnect');
      await friend.next('friend_offline', isAbout(ann));
    });

    test('native commands are events whose acknowledgement is the reply', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(server, ann, bob);
      const chatId = await makeChat(ann, bob);
      const [client, native] = [await join(ann), await connect(server, bob)];
      const { presences } = await client.ask('subscribe_presence', { user_ids: [bob] });
      assert.deepEqual(
        presences.map(({ user_id: user, status }) => [user, status]),
        [[bob, 'online']],
      );
      const sent = await client.ask('send_message', {
        chat_id: chatId,
        client_message_id: 'one',
        body: 'hello \u{1f600} "there"\\',
      });
      assert.deepEqual([sent.chat_id, sent.sequence, sent.duplicate], [chatId, 1, false]);
      const message = await native.next('message');
      assert.equal(message.body, 'hello \u{1f600} "there"\\');
      native.send({
        type: 'send_message', chat_id: chatId, client_message_id: 'two', body: 'and you',
      });
      assert.equal((await client.next('message')).body, 'and you');
      client.emit('ack', { chat_id: chatId, sequence: 2 });
      const synced = await client.ask('sync_request', { chat_id: chatId, after_sequence: 0 });
      assert.deepEqual(
        synced.messages.map(({ body }) => body),
        ['hello \u{1f600} "there"\\', 'and you'],
      );
      await eventually(async () => {
        const chat = await expectRest(server, 200, 'GET', `/v1/chats/${chatId}`, ann);
        return chat.unread === 0;
      }, 'the cursor is at the end');
    });

    test('every event with a callback is acknowledged', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      const roomId = await makeChat(ann, bob);
      const client = await join(ann);
      await client.ask('open_chat', { chat_id: roomId });
      const starts = Array.from({ length: 5 }, () => client.ask('typing:start', { roomId }));
      for (const { type, code } of await Promise.all(starts))
        assert.ok(type === 'ok' || code === 'RATE_LIMITED', `${type} ${code}`);
      assert.equal((await client.ask('ack', { chat_id: roomId, sequence: 0 })).type, 'ok');
      for (const name of ['user:connect', 'call:start', 'call:end', 'typing:stop', 'HEARTBEAT'])
        assert.ok((await client.ask(name, { roomId })).type, name);
    });

    test('a command without a callback is answered by an event', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann);
      client.emit('query_presence', { user_ids: [ann] });
      assert.equal((await client.next('presence_snapshot')).presences[0].user_id, ann);
      client.emit('subscribe_presence', {});
      assert.equal((await client.next('error')).code, 'INVALID_MESSAGE');
    });

    test('errors are sent as the acknowledgement', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann);
      const many = Array.from({ length: 21 }, (_, at) => `${ann}-${at}`);
      const answer = await client.ask('subscribe_presence', { user_ids: many });
      assert.equal(answer.code, 'SUBSCRIPTION_LIMIT');
      assert.equal((await client.ask('open_chat', { chat_id: 'none' })).code, 'NOT_FOUND');
      assert.equal((await client.ask('nonsense', {})).code, 'INVALID_MESSAGE');
      assert.equal((await client.ask('query_presence', 'x')).code, 'INVALID_MESSAGE');
    });

    test('contact requests and deliveries are pushed', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      const client = await join(bob);
      await requestContact(server, ann, bob);
      assert.equal((await client.next('contact_request')).from, ann);
      const backend = await server.token('backend', { scope: 'deliver' });
      assert.equal(await deliver(server, backend, bob, { any: ['thing', 1] }), 1);
      assert.deepEqual((await client.next('delivery')).data, { any: ['thing', 1] });
    });

    for (const [what, value, options] of [
      ['binary', Buffer.from('hi')],
      ['binary in base64', Buffer.from('hi'), { forceBase64: true }],
      ['half a character', '\ud83d'],
      ['nested too deep', JSON.parse(`${'['.repeat(50)}${']'.repeat(50)}`)],
    ])
      test(`an argument that is ${what} is refused, and the connection stays`, async () => {
        const [ann] = uniqueUsers('ann');
        await expectRefused(await join(ann, options), value);
      });

    test('too many messages are refused with a retry time', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      const chatId = await makeChat(ann, bob);
      const client = await join(ann);
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, at) =>
          client.ask('send_message', {
            chat_id: chatId, client_message_id: `m${at}`, body: 'x',
          }),
        ),
      );
      const refused = answers.filter(({ code }) => code === 'RATE_LIMITED');
      assert.ok(refused.length > 0 && refused.length < 20, String(refused.length));
      assert.ok(refused.every(({ retry_after_seconds: seconds }) => seconds > 0));
    });

    test('an invalid token is refused in auth and in the query', async () => {
      const expired = await server.token('eve', { ttlSeconds: -3600 });
      for (const options of [
        { token: 'nonsense' },
        { token: expired },
        { auth: {}, query: { access_token: 'nonsense' } },
      ]) {
        const client = openSocketIo(server, { transports, ...options });
        const { message } = await connectError(client);
        assert.match(message, /token/);
        client.close();
      }
    });

    test('the token may be in the query or in a header', async () => {
      const token = await devToken(server, 'otto');
      for (const options of [
        { query: { access_token: token } },
        { extraHeaders: { authorization: `Bearer ${token}` } },
      ]) {
        const client = openSocketIo(server, { transports, auth: {}, ...options });
        await client.connected();
        assert.ok('server_time' in (await client.ask('heartbeat', {})));
      }
    });

    test('the token in requests may expire after the session has a new one', async () => {
      const [ann] = uniqueUsers('ann');
      const token = await server.token(ann, { ttlSeconds: 2 });
      const expiredMs = Date.now() + 2500;
      const clients = [
        { query: { access_token: token } },
        { extraHeaders: { authorization: `Bearer ${token}` } },
      ].map((options) => openSocketIo(server, { transports, auth: {}, reconnection: false, ...options }));
      await Promise.all(clients.map((client) => client.connected()));
      const renewed = await devToken(server, ann);
      for (const client of clients)
        assert.equal((await client.ask('refresh_token', { token: renewed })).type, 'ok');
      await sleep(expiredMs - Date.now());
      for (const client of clients)
        assert.ok('server_time' in (await client.ask('heartbeat', {})));
    });

    test('an expired token closes the connection with the reason, unless it was refreshed', async () => {
      const [ann] = uniqueUsers('ann');
      const token = await server.token(ann, { ttlSeconds: 2 });
      const [client, renewed] = [await join(ann, { token }), await join(ann, { token })];
      await renewed.ask('refresh_token', { token: await devToken(server, ann) });
      const closing = client.next('connection_closing');
      const disconnected = client.disconnected();
      assert.equal((await closing).reason, 'token_expired');
      await disconnected;
      assert.equal(renewed.socket.connected, true);
    });

    test('an administrator closes a Socket.IO connection', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { reconnection: false });
      const admin = await server.token('root', { scope: 'admin' });
      const list = async () =>
        (await rest(server, 'GET', `/admin/v1/connections?user=${ann}`, { token: admin })).body;
      const [{ conn_id: id }] = (await list()).connections;
      const disconnected = client.disconnected();
      await rest(server, 'DELETE', `/admin/v1/connections/${id}`, { token: admin });
      assert.equal((await client.next('connection_closing')).reason, 'admin');
      await disconnected;
    });
  });

test('a drain notifies clients, which reconnect to the next server', async () => {
  const draining = await startServer({ args: ['--workers', '1'] });
  const { port } = draining;
  const clients = [];
  for (const transports of Object.values(TRANSPORTS))
    clients.push(await connectSocketIo(draining, 'dora', { transports }));
  const closings = clients.map((client) => client.next('connection_closing'));
  const stopped = draining.stop();
  for (const closing of await Promise.all(closings)) assert.equal(closing.reason, 'draining');
  assert.equal(await stopped, 0);
  const next = await startServer({ args: ['--workers', '1'], port });
  try {
    const token = await devToken(next, 'dora');
    for (const { socket } of clients) {
      socket.auth = { token };
      if (!socket.active) socket.connect();
    }
    await Promise.all(
      clients.map((client) => eventually(() => client.socket.connected, 'the client has reconnected')),
    );
    for (const client of clients) assert.ok('server_time' in (await client.ask('heartbeat', {})));
  } finally {
    closeAllSocketIo();
    await next.stop();
  }
});

test('the lease of a Socket.IO connection ends with it', async () => {
  const [ann] = uniqueUsers('ann');
  const before = await metric(server, 'gateway_connections_active');
  const client = await connectSocketIo(server, ann);
  await client.upgraded();
  const { body } = await rest(server, 'GET', `/v1/presence/${ann}`, { user: ann });
  assert.equal(body.status, 'online');
  const disconnected = client.disconnected();
  client.cut();
  await disconnected;
  client.close();
  await eventually(
    async () => (await metric(server, 'gateway_connections_active')) === before,
    'the end of the lease',
  );
});
