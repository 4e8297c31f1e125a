/**
 * Connection state recovery with the npm client: after a short interruption it is `recovered`, keeps its id and
 * gets the events it missed. What cannot be recovered becomes a new session.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { closeAll, connect, deliver, metric } from '../support/client.mjs';
import { befriend, expectRest, uniqueUsers } from '../support/contacts.mjs';
import { startProxy } from '../support/proxy.mjs';
import { cutOff, nextText, waitUntilOffline, waitUntilSettled } from '../support/recovery.mjs';
import { startServer } from '../support/server.mjs';
import { closeAllSocketIo, connectSocketIo, TRANSPORTS } from '../support/socketio.mjs';

const RECOVERY_MS = 3000;

let server;
let backend;
let proxy;

before(async () => {
  server = await startServer({
    args: ['--workers', '3'],
    settings: {
      'socketio.recovery_ms': RECOVERY_MS,
      'socketio.ping_interval_ms': 300,
      'socketio.ping_timeout_ms': 300,
      'call.reconnect_grace_seconds': 20,
    },
  });
  backend = await server.token('backend', { scope: 'deliver' });
  proxy = await startProxy(server.port);
});
after(async () => {
  proxy.close();
  assert.equal(await server.stop(), 0);
});
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

const send = (user, text) => deliver(server, backend, user, { text });

/** Cuts the client off while `meanwhile` runs. */
const cutOffWhile = (client, user, meanwhile) =>
  cutOff(client, user, { server, awayMs: 600, cut: () => proxy.cut(), meanwhile });

for (const [transport, transports] of Object.entries(TRANSPORTS))
  describe(`recovery, ${transport}`, () => {
    const join = (user, options) => {
      const throughProxy = { ...server, url: proxy.url };
      return connectSocketIo(throughProxy, user, { transports, randomizationFactor: 0, ...options });
    };

    test('a client that was cut off is recovered, with its id and the events it missed', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann);
      const { id } = client.socket;
      assert.equal(client.socket.recovered, false);
      await send(ann, 'before');
      assert.equal(await nextText(client), 'before');
      await cutOffWhile(client, ann, async () => {
        await send(ann, 'one');
        await send(ann, 'two');
      });
      assert.equal(client.socket.recovered, true);
      assert.equal(client.socket.id, id);
      assert.equal(await nextText(client), 'one');
      assert.equal(await nextText(client), 'two');
      await send(ann, 'after');
      assert.equal(await nextText(client), 'after');
      await client.settle();
      assert.equal(client.count('delivery'), 0, 'each event comes once');
    });

    test('a client is recovered repeatedly', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann);
      const { id } = client.socket;
      for (const text of ['one', 'two', 'three']) {
        await cutOffWhile(client, ann, () => send(ann, text));
        assert.equal(client.socket.recovered, true);
        assert.equal(client.socket.id, id);
        assert.equal(await nextText(client), text);
      }
      await client.settle();
      assert.equal(client.count('delivery'), 0, 'each event comes once');
    });

    test('messages are recovered, and chats and subscriptions stay open', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(server, ann, bob);
      const body = { members: [ann, bob] };
      const { chat_id: chatId } = await expectRest(server, 201, 'POST', '/v1/chats', ann, body);
      const client = await join(ann);
      const native = await connect(server, bob);
      await client.ask('open_chat', { chat_id: chatId });
      await client.ask('subscribe_presence', { user_ids: [bob] });
      await cutOffWhile(client, ann, () =>
        native.ask({
          type: 'send_message', chat_id: chatId, client_message_id: 'x', body: 'missed',
        }),
      );
      assert.equal(client.socket.recovered, true);
      assert.equal((await client.next('message')).body, 'missed');
      await client.next('chat_snapshot');
      await client.next('presence_snapshot');
      await native.ask({ type: 'open_chat', chat_id: chatId });
      native.send({ type: 'typing_start', chat_id: chatId });
      assert.equal((await client.next('typing')).userId, bob);
    });

    test('a call continues after a recovery', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(server, ann, bob);
      const client = await join(ann);
      const native = await connect(server, bob);
      await client.ask('call:request', { to: bob });
      const { call_id: callId } = await native.next('call_incoming');
      await native.ask({ type: 'call_accept', call_id: callId });
      await client.next('call:accepted');
      await cutOffWhile(client, ann, () => {});
      assert.equal(client.socket.recovered, true);
      const answer = await client.ask('call_signal', { call_id: callId, data: 'here again' });
      assert.equal(answer.type, 'ok', JSON.stringify(answer));
      assert.equal((await native.next('call_signal')).data, 'here again');
    });

    test('a client that is away too long gets a new session', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann);
      const { id } = client.socket;
      client.socket.io.reconnectionDelay(RECOVERY_MS + 1000);
      client.socket.io.reconnectionDelayMax(RECOVERY_MS + 1000);
      await waitUntilSettled(client);
      const reconnected = client.connected();
      proxy.cut();
      await reconnected;
      assert.equal(client.socket.recovered, false);
      assert.notEqual(client.socket.id, id);
    });

    test('a client that disconnects by itself gets a new session', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann);
      const { id } = client.socket;
      client.socket.disconnect();
      await waitUntilOffline(server, ann);
      client.socket.connect();
      await client.connected();
      assert.equal(client.socket.recovered, false);
      assert.notEqual(client.socket.id, id);
    });
  });

test('a client with too many missed events is not recovered in part', async () => {
  const [ann] = uniqueUsers('ann');
  const client = await connectSocketIo({ ...server, url: proxy.url }, ann, {
    transports: ['websocket'],
    reconnection: false,
  });
  await client.settle();
  proxy.cut();
  await waitUntilOffline(server, ann);
  for (let at = 0; at < 120; at += 1) await send(ann, `${at}`);
  client.socket.connect();
  await client.connected();
  assert.equal(client.socket.recovered, false);
  await client.settle();
  assert.equal(client.count('delivery'), 0);
});

test('another user’s private id recovers nothing', async () => {
  const [ann, eve] = uniqueUsers('ann', 'eve');
  const client = await connectSocketIo({ ...server, url: proxy.url }, ann, {
    transports: ['websocket'],
    reconnection: false,
  });
  await client.settle();
  const { _pid: pid, _lastOffset: offset, id } = client.socket;
  assert.match(offset, /^[0-9a-f]{16}$/);
  proxy.cut();
  await waitUntilOffline(server, ann);
  await send(ann, 'secret');
  const token = await server.token(eve);
  const thief = await connectSocketIo(server, eve, { auth: { token, pid, offset } });
  assert.notEqual(thief.socket.id, id);
  await thief.settle();
  assert.equal(thief.count('delivery'), 0);
});

test('a metric counts recoveries', async () => {
  assert.ok((await metric(server, 'socketio_recovered')) > 0);
});
