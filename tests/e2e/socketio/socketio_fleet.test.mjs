/** Socket.IO on two gateways with Redis: friends, calls, chats and deliveries across both. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, deliver } from '../support/client.mjs';
import { BACKENDS, startFleet } from '../support/fleet.mjs';
import { befriend, uniqueUsers } from '../support/contacts.mjs';
import { closeAllSocketIo, connectSocketIo, TRANSPORTS } from '../support/socketio.mjs';

const isAbout = (userId) => (event) => event.userId === userId;

let redis;
let fleet;
let one;
let two;

before(async () => {
  redis = await BACKENDS.standalone.start();
  fleet = await startFleet({ redis });
  [one, two] = fleet.gateways;
});
after(async () => {
  await fleet?.stop();
  await redis?.stop();
});
afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

for (const [transport, transports] of Object.entries(TRANSPORTS))
  describe(`a fleet, ${transport}`, () => {
    const join = (server, user) => connectSocketIo(server, user, { transports });

    test('friends on two gateways receive each other’s presence', async () => {
      const [ann, bob, cat] = uniqueUsers('ann', 'bob', 'cat');
      await befriend(one, ann, bob);
      await befriend(one, ann, cat);
      const [client, native] = [await join(one, ann), await connect(two, cat)];
      const friend = await join(two, bob);
      await client.next('friend_online', isAbout(bob));
      friend.close();
      await client.next('friend_offline', isAbout(bob));
      client.close();
      await native.nextChange(ann, 'offline');
    });

    test('a call works across gateways', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(one, ann, bob);
      const [caller, callee] = [await join(one, ann), await join(two, bob)];
      caller.emit('call:request', { to: bob });
      assert.equal((await callee.next('call:incoming')).from, ann);
      callee.emit('call:accept', { from: ann });
      await caller.next('call:accepted');
      await caller.next('friend_in_call', isAbout(bob));
      caller.emit('call:end');
      await callee.next('call:ended');
      await callee.next('friend_out_of_call', isAbout(ann));
    });

    test('messages, typing and deliveries reach clients on the other gateway', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      await befriend(one, ann, bob);
      const chatId = `chat-${ann}`;
      await makeChat(one, chatId, ann, bob);
      const [client, other] = [await join(one, ann), await join(two, bob)];
      await client.ask('open_chat', { chat_id: chatId });
      await other.ask('open_chat', { chat_id: chatId });
      other.emit('typing:start', { roomId: chatId });
      assert.equal((await client.next('typing')).userId, bob);
      await other.ask('send_message', { chat_id: chatId, client_message_id: 'm', body: 'hello' });
      assert.equal((await client.next('message')).body, 'hello');
      const backend = await two.token('backend', { scope: 'deliver' });
      assert.equal(await deliver(two, backend, ann, { far: true }), 1);
      assert.deepEqual((await client.next('delivery')).data, { far: true });
    });
  });
